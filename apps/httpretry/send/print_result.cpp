#include "send/print_result.hpp"

#include "cli/exit_status.hpp"
#include "cli/input.hpp"
#include "cli/message.hpp"
#include "cli/output.hpp"
#include "cli/text.hpp"
#include "send/body_output.hpp"
#include "send/poll_until.hpp"
#include "send/targets.hpp"

#include <unistd.h>

namespace httpretry::cli {
namespace {

int status_of(const SendOptions& options, const Outcome& outcome) {
  if (ended_pending(outcome)) return kTimeout;
  if (!outcome) return exit_status(outcome.error());
  if (options.on_error_status == OnErrorStatus::Succeed) return kOk;
  return succeeded(outcome) ? kOk : kErrorStatus;
}

// The place for the response of a URL.
struct Destination {
  const SendOptions& options;
  std::size_t index;
  std::string target;
  const WaitLimit& limit;
};

void write_text(const Destination& to, const std::string& head, const std::string& body) {
  if (to.target != "-") return write_to(to.target, head + body, &to.limit);
  BodyOutput out(to.options, to.index, to.target, to.limit, to.limit.signals().descriptor());
  out.set_head(head);
  out.write(body);
  out.finish();
}

// Writes a response that is in memory to standard output or to its file. An existing file stays as
// it is if the response has no new content for it. Returns whether anything was to be written.
bool write_response(const Destination& to, const Response& response) {
  const auto& options = to.options;
  const bool with_head = options.include || options.head;
  const bool headers_only =
      response.status >= 400 && options.on_error_status == OnErrorStatus::FailWithoutBody;
  if (headers_only && !with_head) return false;
  // The existing file has the whole body (304), or its beginning (-C -).
  const bool file_has_content =
      response.status == 304 || (options.resume && response.status >= 300);
  const bool is_failure =
      response.status >= 400 && options.on_error_status != OnErrorStatus::Succeed;
  // A file with an ETag must not become an error page, because a later 304 would confirm that page.
  const bool has_etag = options.etag || !options.etag_save.empty();
  const bool would_be_removed = is_failure && options.remove_on_error;
  // With -i, the file gets at least the headers of the response.
  const bool keeps_file = !options.include && (file_has_content || (is_failure && has_etag));
  if (to.target != "-" && (would_be_removed || keeps_file)) return false;
  const bool with_body = !options.head && !headers_only;
  const auto head = with_head ? head_of(response) : std::string();
  write_text(to, head, with_body ? response.body : std::string());
  return true;
}

// Writes a response whose body is in the buffer.
void write_buffer(const Destination& to, const Response& response, const BodyBuffer& buffer) {
  BodyOutput out(to.options, to.index, to.target, to.limit, to.limit.signals().descriptor());
  if (to.options.include) out.set_head(head_of(response));
  buffer.read([&](std::string_view bytes) { out.write(bytes); });
  out.finish();
}

// Returns whether only the beginning of the body was shown. The body of another response must not
// follow it.
bool was_cut_off(const EndedCall& ended) {
  return ended.download != nullptr && !ended.download->complete && ended.download->shown() > 0;
}

// Writes the part of a response that was not written while it was received: the body in the buffer
// of the download, or the whole response if it is in memory. Writes nothing if only the beginning
// of a body was shown, because another body must not follow it. Throws WriteError.
void write_body(Destination destination, const EndedCall& ended) {
  const auto* download = ended.download;  // null: the body is in the outcome
  if (was_cut_off(ended)) return;
  if (download != nullptr && download->complete) {
    // A body that is not in the buffer was written while it was received.
    if (download->in_buffer()) write_buffer(destination, *ended.outcome, download->buffer);
    return;
  }
  if (!ended.outcome) return;  // an error: there is no response
  // The whole response is in memory: it is an error page, for example, or there is no Download.
  NamedFile named(destination.options);
  if (server_may_name_file(destination.options, destination.index)) {  // -J
    auto chosen = named.choose(ended.outcome->headers);
    if (!chosen) throw WriteError(chosen.error().message);
    if (!chosen->empty()) destination.target = *std::move(chosen);
  }
  // The destructor of `named` removes the new file if nothing was written to it.
  if (write_response(destination, *ended.outcome)) named.keep();
}

std::uint64_t received_of(const EndedCall& ended) {
  if (ended.download != nullptr && ended.download->complete) return ended.download->received;
  return ended.outcome ? ended.outcome->body.size() : 0;
}

// Returns the file that has the response of a call, for -w: the one that the server named (-J), or
// `target`. Returns "" if it went to standard output, or if there is no response.
std::string file_of(const EndedCall& ended, const std::string& target) {
  const auto chosen = ended.download != nullptr ? ended.download->chosen_file : std::string();
  const auto& name = chosen.empty() ? target : chosen;
  return ended.outcome && name != "-" ? name : std::string();
}

// Returns the failure of a call in one line: "GET http://h/a: gave up after 3 attempts in 2.1 s:
// 503, 503, timeout (attempts_exhausted)". For an error, the line has its message, and then the
// attempts if they say more.
std::string failure_text(const EndedCall& ended) {
  const auto& history = history_of(ended.outcome);
  const auto summary = describe(ended.outcome);
  const auto& method = ended.request.method();
  const auto subject = method + " " + shown_url(ended.request) + ": ";
  if (ended.outcome || history.stop_reason == Reason::Canceled) return subject + summary;
  const auto& message = ended.outcome.error().message;
  const bool names_url = message.starts_with(method + " ");  // as the transport's errors do
  const bool is_in_summary = summary.find(message) != std::string::npos;
  const bool says_more = history.attempts.size() > 1 || history.stop_reason != Reason::NotRetryable;
  if (is_in_summary && says_more) return (names_url ? "" : subject) + summary;
  return (names_url ? "" : subject) + message + (says_more ? "; " + summary : "");
}

// Explains a failure on standard error: prints a warning if the request may have been executed
// twice, a hint at a helpful option, and the failure. `status` is the exit status. Prints at most
// the warning after a success, and after a final error status that --no-fail accepts. Prints
// nothing with -s, unless -S asks for messages about failures.
void print_explanation(const SendOptions& options, const EndedCall& ended, int status) {
  if (!shows_errors(options)) return;
  const auto& outcome = ended.outcome;
  const auto reason = history_of(outcome).stop_reason;
  // A response of 400 or more that the policy does not retry.
  const bool is_final_error = reason == Reason::NotRetryable && outcome && outcome->status >= 400;
  // The label is "[2] URL: " if there are several URLs, and otherwise "".
  const auto print = [&ended](const std::string& text) {
    print_message("httpretry: " + ended.label + text);
  };
  if (const auto warning = repeat_warning(ended); !warning.empty()) print(warning);
  if (status == kOk && (reason == Reason::Success || is_final_error)) return;
  if (was_cut_off(ended) && status != kWriteError) {
    print("the response was cut off after " + std::to_string(ended.download->shown()) +
          " bytes, which were written; the rest is missing");
  }
  if (!ended.explained) return;  // many URLs fail in the same way; only the first are explained
  if (outcome && outcome->incomplete) print("part of the response body is missing");
  if (const auto hint = advice(options, ended); !hint.empty()) print(hint);
  // The text of the failure has the URL, so only the number of the label precedes it: "[2] ".
  // An empty label has no number; npos + 1 is 0.
  const auto number = ended.label.substr(0, ended.label.find(' ') + 1);
  const auto shown_status = status == kOk ? "" : "(" + std::to_string(status) + ") ";
  print_message("httpretry: " + number + shown_status + printable(failure_text(ended)));
}

}  // namespace

// Sets the time of the file (-R) and writes the file of --etag-save, after a successful response.
// Throws WriteError.
void set_time_and_save_etag(const SendOptions& options, const EndedCall& ended,
                            const std::string& file, const WaitLimit& limit) {
  const auto& headers = ended.outcome->headers;
  if (options.remote_time && !file.empty()) set_remote_time(file, headers);
  if (options.etag_save.empty()) return;
  const auto etag = std::string(headers.get("ETag").value_or(""));
  write_to(options.etag_save, etag.empty() ? etag : etag + '\n', &limit);
}

// Ends the output for one URL: writes the response and the text of -w, explains a failure, and
// returns the exit status. An error in one write does not prevent the next, but makes the status
// kWriteError.
int print_result(const SendOptions& options, const EndedCall& ended, const WaitLimit& limit) {
  const StatusPause pause;  // the status line is hidden until the end of this function
  const int cancel = limit.signals().descriptor();  // a signal ends the wait for a slow reader
  const auto& outcome = ended.outcome;
  const auto target = target_for(options, ended.index, ended.request);  // a file, or "-"
  auto status = status_of(options, outcome);
  // A read error after the time of -m means that a pipe with the request body was not read to its
  // end in that time. Any other read error comes earlier.
  const bool pipe_timed_out = status == kReadError && limit.has_expired();
  if (pipe_timed_out) status = kTimeout;
  // The output has only a part of the body. The status is kOk so far if the response is a redirect
  // that is not followed, for example.
  const bool has_part = was_cut_off(ended) || (outcome && outcome->incomplete);
  if (status == kOk && has_part) status = kPartial;
  bool write_failed = false;
  const auto try_write = [&](const auto& write) {
    try {
      write();
    } catch (const WriteError& error) {
      if (shows_errors(options)) print_message(std::string("httpretry: ") + error.what());
      status = kWriteError;
      write_failed = true;
    }
  };
  try_write([&] { write_body({options, ended.index, target, limit}, ended); });
  const bool is_new_content = outcome && outcome->status / 100 == 2;
  if (status == kOk && is_new_content) {
    try_write([&] { set_time_and_save_etag(options, ended, file_of(ended, target), limit); });
  }
  if (!options.write_out.empty()) {
    std::string to_stderr;  // the part of the text after %{stderr}
    const Transferred transferred{ended, file_of(ended, target), status, received_of(ended),
                                  options.keep_post_after};
    const auto text = write_out(options.write_out, transferred, to_stderr);
    // With --log-json, every line on standard error is JSON.
    const bool as_json = options.log_json && !to_stderr.empty();
    if (as_json) print_message(std::exchange(to_stderr, {}));
    try_write([&] { write_all(STDERR_FILENO, to_stderr, cancel, "standard error"); });
    try_write([&] { write_stdout(text, cancel); });
  }
  // After a failed write, its message is the explanation.
  if (!write_failed) print_explanation(options, ended, status);
  if (pipe_timed_out && shows_errors(options))
    print_message("httpretry: the time limit of -m has passed");
  return status;
}

}  // namespace httpretry::cli
