// The flags of sending: curl's words with curl's meaning, and ours.
#include "cli/config_file.hpp"
#include "send/connection.hpp"
#include "send/data.hpp"
#include "send/send_options.hpp"

#include <limits>

namespace httpretry::cli {
namespace {

using Text = const std::string&;

std::string in_microseconds(Duration time) {
  return std::to_string(std::chrono::ceil<std::chrono::microseconds>(time).count()) + "us";
}

// A text with "=" is cookies; else it names a file, which need not be there yet.
void add_cookies(Text value, SendOptions& to) {
  if (value.find('=') != std::string::npos) {
    to.cookies.push_back(value);
  } else {
    to.keeps_cookies = true;
    if (!value.empty()) to.cookie_files.push_back(value);
  }
}

std::vector<Flag> request_flags(SendOptions& to) {
  return {
      {'X', "request", "METHOD", "the request's method", [&](Text v) { to.method = v; }},
      {'H', "header", "LINE", "a header, or @FILE with some; \"Name:\" leaves one of ours out",
       [&](Text v) { to.headers.push_back(v); }},
      {'A', "user-agent", "NAME", "the User-Agent header; empty: none",
       [&](Text v) { to.user_agent = v; }},
      {'e', "referer", "URL", "the Referer header", [&](Text v) { to.referer = v; }},
      {'u', "user", "NAME:PASSWORD", "for basic authentication", [&](Text v) { to.user = v; }},
      {'\0', "oauth2-bearer", "TOKEN", "the token of an Authorization header",
       [&](Text v) { to.bearer = v; }},
      {'b', "cookie", "DATA", "cookies: \"NAME=VALUE; ...\", or a file with some",
       [&](Text v) { add_cookies(v, to); }},
      {'c', "cookie-jar", "FILE", "keep cookies, and write them there in the end; - prints them",
       [&](Text v) {
         to.cookie_jar = v;
         to.keeps_cookies = true;
       }},
      {'n', "netrc", "", "look for name and password in ~/.netrc",
       [&](Text) { to.connection.netrc = ""; }},
      {'\0', "netrc-file", "FILE", "the same, in this file",
       [&](Text v) { to.connection.netrc = v; }},
      {'I', "head", "", "ask for the headers only", [&](Text) { to.head = true; }},
      {'\0', "compressed", "", "ask for gzip and show the decoded body",
       [&](Text) { to.compressed = true; }},
      {'\0', "url", "URL", "the same as the URL alone; for files of options",
       [&](Text v) { to.urls.push_back(v); }},
  };
}

std::vector<Flag> body_flags(SendOptions& to) {
  return {
      {'d', "data", "DATA", "send it with POST; @FILE or @- reads it",
       [&](Text v) { add_data(to.data, data_text(v)); }},
      {'\0', "data-raw", "DATA", "as --data, but \"@\" is a letter like others",
       [&](Text v) { add_data(to.data, v); }},
      {'\0', "data-binary", "DATA", "as --data, and line ends stay as they are",
       [&](Text v) { add_data(to.data, data_bytes(v)); }},
      {'\0', "data-urlencode", "DATA", "as --data, percent-encoded: TEXT, NAME=TEXT, NAME@FILE",
       [&](Text v) { add_data(to.data, data_encoded(v)); }},
      {'\0', "json", "DATA", "as --data-binary, with the headers that say that it is JSON",
       [&](Text v) {
         to.json = true;
         to.data = to.data.value_or("") + data_bytes(v);
       }},
      {'F', "form", "NAME=CONTENT",
       "a field of a form, as multipart/form-data; CONTENT is a text, <FILE or @FILE,FILE..., with "
       ";type=TYPE, ;filename=NAME and ;headers=LINE behind it",
       [&](Text v) {
         to.form.push_back({v, false});
       }},
      {'\0', "form-string", "NAME=TEXT", "as --form, and TEXT is nothing but a text",
       [&](Text v) {
         to.form.push_back({v, true});
       }},
      {'G', "get", "", "put the data into the URL, and GET it",
       [&](Text) { to.data_in_url = true; }},
      {'\0', "url-query", "DATA", "add to the URL's query, encoded; +TEXT as it stands",
       [&](Text v) { to.url_query.push_back(query_item(v)); }},
      {'T', "upload-file", "FILE",
       "PUT the file; - reads standard input: 64 MiB before it sends, to send them again; no "
       "limit of time ends a wait for more of it",
       [&](Text v) { to.uploads.push_back(v); }},
  };
}

std::vector<Flag> answer_flags(SendOptions& to) {
  return {
      {'o', "output", "FILE",
       "write the answer there when it has come whole; the n-th belongs to the n-th URL",
       [&](Text v) {
         if (v == kRemoteName) throw UsageError("option --output has an empty value");
         to.outputs.push_back(v);
       }},
      {'O', "remote-name", "", "the same, into a file that is named as the end of the URL's path",
       [&](Text) { to.outputs.emplace_back(kRemoteName); }},
      {'C', "continue-at", "OFFSET",
       "leave out so many bytes of the answer, or of -T; -: go on where an earlier download broke "
       "off (where the server's ETag or Last-Modified tell that it is the same; else anew), and "
       "keep "
       "what came in FILE.part where this one does, too",
       [&](Text v) {
         to.resume = v == "-";
         to.offset = to.resume ? 0 : parse_bytes(v, "-C");
       }},
      {'i', "include", "", "show the headers of the answer, too", [&](Text) { to.include = true; }},
      {'f', "fail", "", "an answer of 400 or more is not shown",
       [&](Text) { to.on_bad_answer = OnBadAnswer::FailWithout; }},
      {'\0', "fail-with-body", "", "it is shown, and the exit status is 22: as without any flag",
       [&](Text) { to.on_bad_answer = OnBadAnswer::Fail; }},
      {'\0', "no-fail", "", "exit with 0 for any answer, as curl does without -f",
       [&](Text) { to.on_bad_answer = OnBadAnswer::TakeAsAnswer; }},
      {'w', "write-out", "FORMAT",
       "write that after each answer: curl's variables, as %{http_code} and %{json}, and "
       "%{attempts}, %{stop_reason}, %{wire_sends}; @FILE reads it",
       [&](Text v) { to.write_out = v.starts_with('@') ? data_bytes(v) : v; }},
      {'\0', "max-filesize", "BYTES", "fail where an answer is larger; 20K, 3M, 1G",
       [&](Text v) {
         to.max_file_size = parse_bytes(v, "--max-filesize");
         if (*to.max_file_size == 0) to.max_file_size.reset();
       }},
      {'\0', "limit-rate", "SPEED",
       "at most so many bytes a second, down and up; 20K, 3M; not for an answer that is taken as a "
       "whole: of --until, or of -i into a file",
       [&](Text v) {
         to.bytes_per_second = parse_bytes(v, "--limit-rate");
         if (*to.bytes_per_second == 0) to.bytes_per_second.reset();
       }},
  };
}

std::vector<Flag> connection_flags(SendOptions& to) {
  auto& way = to.connection;
  return {
      {'L', "location", "", "follow redirects", [&](Text) { to.follow = true; }},
      {'\0', "max-redirs", "N", "at most that many (10); -1: any number",
       [&](Text v) {
         to.max_redirects = v == "-1" ? std::numeric_limits<int>::max()
                                      : static_cast<int>(parse_count(v, "--max-redirs"));
       }},
      {'m', "max-time", "SECONDS",
       "for the whole of a URL: attempts, waits, redirects; for one attempt: --set "
       "attempt_timeout=5s",
       [&](Text v) { to.max_time = parse_seconds(v, "--max-time"); }},
      {'\0', "connect-timeout", "SECONDS", "for each connection",
       [&](Text v) {
         to.connect_timeout = parse_seconds(v, "--connect-timeout");
         if (*to.connect_timeout == Duration::zero()) to.connect_timeout.reset();
       }},
      {'x', "proxy", "URL", "http, https, socks4, socks4a, socks5 or socks5h; \"\": none",
       [&](Text v) { way.proxy.url = v; }},
      {'U', "proxy-user", "NAME:PASSWORD", "for the proxy alone",
       [&](Text v) { way.proxy.credentials = proxy_credentials(v); }},
      {'\0', "noproxy", "LIST", "hosts that are reached without it; * is all",
       [&](Text v) { way.proxy.no_proxy = v; }},
      {'\0', "resolve", "HOST:PORT:ADDRESS", "connect there for this host and port",
       [&](Text v) { way.connect_to.push_back(resolve_entry(v)); }},
      {'\0', "connect-to", "HOST:PORT:TO:PORT", "the same by name; empty parts are any",
       [&](Text v) { way.connect_to.push_back(v); }},
      {'4', "ipv4", "", "only IPv4 addresses", [&](Text) { way.ip_version = IpVersion::V4; }},
      {'6', "ipv6", "", "only IPv6 addresses", [&](Text) { way.ip_version = IpVersion::V6; }},
      {'\0', "interface", "NAME", "from this interface, address or host",
       [&](Text v) { way.local_interface = v; }},
      {'\0', "unix-socket", "FILE", "connect to this socket", [&](Text v) { way.unix_socket = v; }},
      {'\0', "http1.1", "", "speak HTTP/1.1 only",
       [&](Text) { to.http_version = HttpVersion::Http1; }},
      {'\0', "http2", "", "HTTP/2 where TLS negotiates it: as without any flag",
       [&](Text) { to.http_version = HttpVersion::Any; }},
      {'\0', "http2-prior-knowledge", "", "HTTP/2 from the first byte",
       [&](Text) { to.http_version = HttpVersion::Http2PriorKnowledge; }},
  };
}

std::vector<Flag> tls_flags(SendOptions& to) {
  auto& tls = to.connection;
  auto& own = tls.client_certificate;
  return {
      {'k', "insecure", "", "take any certificate", [&](Text) { tls.verify_tls = false; }},
      {'\0', "cacert", "FILE", "the certificates to trust", [&](Text v) { tls.ca_file = v; }},
      {'\0', "capath", "FOLDER", "a folder of them, hashed", [&](Text v) { tls.ca_path = v; }},
      {'E', "cert", "FILE[:PASSWORD]", "our own certificate, PEM or PKCS #12",
       [&](Text v) { set_certificate(own, v); }},
      {'\0', "key", "FILE", "its key, where it is not in the same file",
       [&](Text v) { own.key_file = v; }},
      {'\0', "pass", "PASSWORD", "the key's", [&](Text v) { own.key_password = v; }},
      {'\0', "pinnedpubkey", "HASHES", "the server's public key: sha256//..., or a file",
       [&](Text v) { tls.pinned_keys = v; }},
      {'\0', "tlsv1.2", "", "TLS 1.2 or later: as without any flag",
       [&](Text) { tls.min_tls = TlsVersion::Tls12; }},
      {'\0', "tlsv1.3", "", "TLS 1.3 or later", [&](Text) { tls.min_tls = TlsVersion::Tls13; }},
  };
}

std::vector<Flag> retry_flags(SendOptions& to) {
  auto flags = policy_flags(to.policy);
  const std::vector<Flag> more{
      {'\0', "idempotency-key", "[=KEY]", "send one, the same on all attempts",
       [&](Text v) {
         to.give_key = true;
         to.idempotency_key = v;
       }},
      {'\0', "until", "EXPR",
       "ask until it holds: status=200, json:/state=DONE; every second, or as --retry-delay says, "
       "within "
       "the time of -m or --retry-max-time; 28 where it never does",
       [&](Text v) { to.until = v; }},
      {'\0', "retry", "N",
       "send again up to N times (3): max_attempts is N + 1; a budget allows a host some 35 "
       "retries in "
       "a row, or any number with --set budget=none",
       [&](Text v) {
         const auto most =
             std::min<long>(parse_count(v, "--retry"), std::numeric_limits<int>::max() - 1);
         to.policy.set("max_attempts", std::to_string(most + 1));
       }},
      {'\0', "retry-delay", "SECONDS", "wait that long each time; 0: as the policy says",
       [&](Text v) {
         const auto delay = parse_seconds(v, "--retry-delay");
         if (delay == Duration::zero()) return;
         to.retry_delay = delay;
         to.policy.set("backoff",
                       R"({"kind": "constant", "interval": ")" + in_microseconds(delay) + R"("})");
         to.policy.set("throttle_backoff", R"("none")");
       }},
      {'\0', "retry-max-time", "SECONDS",
       "for all attempts and waits (60, unless a policy says otherwise); 0: no limit",
       [&](Text v) {
         const auto limit = parse_seconds(v, "--retry-max-time");
         const bool none = limit == Duration::zero();
         to.policy.set("max_elapsed_time", none ? "none" : in_microseconds(limit));
       }},
      {'\0', "retry-all-errors", "", "after any failure, whatever the request may have done",
       [&](Text) { to.retry_all_errors = true; }},
      {'\0', "retry-connrefused", "", "after a refused connection, too (most policies do)",
       [&](Text) { to.policy.set("retry_on.transport", kAllTransport); }},
  };
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

std::vector<Flag> message_flags(SendOptions& to) {
  return {
      {'\0', "report", "FILE", "a JSON report; - is standard output",
       [&](Text v) { to.report = v; }},
      {'\0', "trace", "", "each attempt and decision, on standard error, as it happens",
       [&](Text) { to.trace = true; }},
      {'v', "verbose", "",
       "show the headers of each attempt on standard error; URLs without their query, which may be "
       "secret",
       [&](Text) { to.verbose = true; }},
      {'s', "silent", "", "no messages", [&](Text) { to.silent = true; }},
      {'S', "show-error", "", "with -s: messages about failures",
       [&](Text) { to.show_error = true; }},
      {'\0', "no-progress-meter", "", "no live line on a terminal",
       [&](Text) { to.progress = false; }},
      {'#', "progress-bar", "", "a bar for long transfers: a terminal has it anyway",
       [&](Text) { to.progress = true; }},
      {'\0', "color", "auto|always|never", "auto: on a terminal, unless NO_COLOR is set",
       [&](Text v) { to.color = v; }},
  };
}

std::vector<Flag> other_flags(SendOptions& to) {
  return {
      {'Z', "parallel", "", "send to all URLs at once", [&](Text) { to.parallel = true; }},
      {'\0', "parallel-max", "N", "with -Z: at most that many at a time (50)",
       [&](Text v) {
         to.parallel_max = parse_count(v, "--parallel-max");
         if (to.parallel_max == 0) throw UsageError("option --parallel-max: at least 1");
       }},
      {'K', "config", "FILE", "read options from a file, one a line; - is standard input",
       [&](Text v) { read_config(v, to); }},
      {'V', "version", "", "our version and libcurl's", [&](Text) { to.version = true; }},
      help_flag(),
  };
}

}  // namespace

FlagTable send_flags(SendOptions& to) {
  return {{"Request", request_flags(to)},       {"Body", body_flags(to)},
          {"Answer", answer_flags(to)},         {"Retries", retry_flags(to)},
          {"Connection", connection_flags(to)}, {"TLS", tls_flags(to)},
          {"Messages", message_flags(to)},      {"Others", other_flags(to)}};
}

FlagTable send_table() {
  static SendOptions unused;
  return send_flags(unused);
}

void parse_send(const Args& args, SendOptions& to) {
  parse(args, send_flags(to), [&](Text url) { to.urls.push_back(url); });
}

}  // namespace httpretry::cli
