// The flags for what is written: the response, messages and reports.
#include "send/flags.hpp"

namespace httpretry::cli {

// Returns the flags for the files of the responses. Each has a letter ('\0': none), a name, the
// name of its value (empty: none), a help text, and an action that stores the value `v` in `to`,
// which must outlive the flags.
std::vector<Flag> file_flags(SendOptions& to) {
  return {
      {'o', "output", "FILE",
       "write the response to FILE when it is complete; the n-th -o belongs to the n-th URL",
       append(to.outputs)},
      {'O', "remote-name", "", "like --output, with the last part of the URL's path as FILE",
       // The name is taken from the URL when the request is created.
       [&](Text) { to.outputs.emplace_back(kRemoteName); }},
      {'\0', "remote-name-all", "", "-O for each URL that has no -o", enable(to.name_all_files)},
      {'J', "remote-header-name", "",
       "with -O: the name that the server gives in Content-Disposition, if it gives one; a file of "
       "that name is not replaced",
       enable(to.name_from_header)},
      {'\0', "output-dir", "FOLDER", "put the files of -o and -O into FOLDER",
       store(to.output_folder)},
      {'\0', "create-dirs", "", "create the folders of -o, --output-dir and -D",
       enable(to.create_folders)},
      {'\0', "out-null", "", "discard the response, as -o /dev/null does",
       [&](Text) { to.outputs.emplace_back("/dev/null"); }},
      {'\0', "no-clobber", "",
       "if the file of -o or -O exists, write to FILE.1 or the next free name up to FILE.100",
       enable(to.no_clobber)},
      {'\0', "skip-existing", "", "send no request if the file of its -o or -O exists",
       enable(to.skip_existing)},
      {'R', "remote-time", "", "give the file the time in Last-Modified", enable(to.remote_time)},
      {'\0', "etag-save", "FILE", "write the ETag of a successful response to FILE",
       store(to.etag_save)},
      {'\0', "remove-on-error", "",
       "do not write a response of 400 or more to a file (an incomplete one never gets its name)",
       enable(to.remove_on_error)},
      {'D', "dump-header", "FILE",
       "write the headers of every response to FILE, including those of redirects and failed "
       "attempts; - is standard output",
       store(to.headers_file)},
      {'N', "no-buffer", "",
       "write to standard output while the response is received, if its status is good; an "
       "interrupted response is continued or is an error; no effect with -Z, --until or -D -",
       enable(to.stream)},
      {'C', "continue-at", "OFFSET",
       "skip this many bytes of the response, or of the -T file; -: resume an interrupted "
       "download, which is kept in FILE.part, if the server's ETag or Last-Modified shows that the "
       "file is unchanged, otherwise start again; without FILE.part, FILE is continued unchecked",
       [&](Text v) {
         to.resume = v == "-";
         to.offset = to.resume ? 0 : parse_bytes(v, "-C");
       }},
  };
}

// Returns the flags that choose which parts of a response are shown. Each has a letter ('\0':
// none), a name, the name of its value (empty: none), a help text, and an action that stores the
// value `v` in `to`, which must outlive the flags.
std::vector<Flag> response_flags(SendOptions& to) {
  return {
      {'i', "include", "", "show the response headers too", enable(to.include)},
      {'f', "fail", "", "do not show a response of 400 or more",
       set(to.on_error_status, OnErrorStatus::FailWithoutBody)},
      {'\0', "fail-with-body", "", "show it, and exit with 22 (the default)",
       set(to.on_error_status, OnErrorStatus::Fail)},
      {'\0', "no-fail", "", "exit with 0 for any response, as curl does without -f",
       set(to.on_error_status, OnErrorStatus::Succeed)},
      {'w', "write-out", "FORMAT",
       "print FORMAT after each response: curl's variables, such as %{http_code} and %{json}, and "
       "%{attempts}, %{stop_reason}, %{wire_sends}; @FILE reads FORMAT from a file",
       store(to.write_out)},
      {'\0', "max-filesize", "BYTES",
       "fail if the body of a response is larger than this: 500, 20K, 3M, 1G",
       [&](Text v) { to.max_file_size = unless_zero(parse_bytes(v, "--max-filesize")); }},
      {'\0', "limit-rate", "SPEED",
       "transfer at most this many bytes a second, down and up: 20K, 3M; has no effect on a "
       "response that is held in memory, with --until or with -i into a file",
       [&](Text v) { to.bytes_per_second = unless_zero(parse_bytes(v, "--limit-rate")); }},
  };
}

// Returns the flags for messages, reports and telemetry. Each has a letter ('\0': none), a name,
// the name of its value (empty: none), a help text, and an action that stores the value in `to`,
// which must outlive the flags.
std::vector<Flag> message_flags(SendOptions& to) {
  const auto telemetry = telemetry_flags(
      to,
      /*about_har=*/
      "write an HTTP archive with an entry for each send, without secrets; - is "
      "standard output",
      /*about_otlp=*/
      "send traces to an OpenTelemetry collector: OTLP over HTTP, in JSON, to URL/v1/traces "
      "(http://localhost:4318, or what OTEL_EXPORTER_OTLP_ENDPOINT says); waits for it at the end, "
      "for at most 1 s, or as many ms as OTEL_EXPORTER_OTLP_TIMEOUT says");
  const std::vector<Flag> flags{
      {'\0', "trace", "", "show each attempt and decision on standard error as it happens",
       enable(to.trace)},
      {'v', "verbose", "",
       "show on standard error: the connection, TLS, first lines and headers of each attempt, and "
       "each decision; URLs are shown without their query, which may be secret",
       enable(to.verbose)},
      {'s', "silent", "", "show no messages", enable(to.silent)},
      {'S', "show-error", "", "with -s: show messages about failures", enable(to.show_error)},
      {'\0', "no-progress-meter", "", "show no status line on a terminal", set(to.progress, false)},
      {'#', "progress-bar", "",
       "show a progress bar for long transfers (the default on a terminal)", enable(to.progress)},
      {'\0', "stderr", "FILE",
       "write messages to FILE instead of standard error; - is standard output",
       store(to.messages_file)},
      {'\0', "color", "auto|always|never",
       "use colors; auto: on a terminal, unless NO_COLOR is set", store(to.color)},
  };
  const Flag report{'\0', "report", "FILE", "write a JSON report; - is standard output",
                    store(to.report)};
  return joined(joined({report}, telemetry), flags);
}

}  // namespace httpretry::cli
