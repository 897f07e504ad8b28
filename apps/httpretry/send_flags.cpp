// The flags of sending: curl's words with curl's meaning, and ours.
#include "data.hpp"
#include "send_options.hpp"

#include <iterator>
#include <limits>

namespace httpretry::cli {
namespace {

using Text = const std::string&;

std::string in_microseconds(Duration time) {
  return std::to_string(std::chrono::ceil<std::chrono::microseconds>(time).count()) + "us";
}

std::vector<Flag> request_flags(SendOptions& to) {
  return {
      {'X', "request", "METHOD", "the request's method", [&](Text v) { to.method = v; }},
      {'H', "header", "LINE", "a header, or @FILE with some; \"Name:\" leaves one of ours out",
       [&](Text v) { to.headers.push_back(v); }},
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
      {'G', "get", "", "put the data into the URL, and GET it",
       [&](Text) { to.data_in_url = true; }},
      {'\0', "url-query", "DATA", "add to the URL's query, encoded; +TEXT as it stands",
       [&](Text v) { to.url_query.push_back(query_item(v)); }},
      {'F', "form", "", "", {}},
      {'T', "upload-file", "FILE", "PUT the file; - reads standard input",
       [&](Text v) { to.uploads.push_back(v); }},
      {'I', "head", "", "ask for the headers only", [&](Text) { to.head = true; }},
      {'A', "user-agent", "NAME", "the User-Agent header", [&](Text v) { to.user_agent = v; }},
      {'e', "referer", "URL", "the Referer header", [&](Text v) { to.referer = v; }},
      {'u', "user", "NAME:PASSWORD", "for basic authentication", [&](Text v) { to.user = v; }},
      {'\0', "oauth2-bearer", "TOKEN", "the token of an Authorization header",
       [&](Text v) { to.bearer = v; }},
      {'\0', "compressed", "", "ask for gzip and show the decoded body",
       [&](Text) { to.compressed = true; }},
  };
}

std::vector<Flag> output_flags(SendOptions& to) {
  return {
      {'i', "include", "", "show the headers of the answer, too", [&](Text) { to.include = true; }},
      {'o', "output", "FILE", "write the answer there; the n-th belongs to the n-th URL",
       [&](Text v) { to.outputs.push_back(v); }},
      {'O', "remote-name", "", "", {}},
      {'C', "continue-at", "OFFSET", "", {}},
      {'s', "silent", "", "no messages", [&](Text) { to.silent = true; }},
      {'S', "show-error", "", "with -s: messages about failures",
       [&](Text) { to.show_error = true; }},
      {'v', "verbose", "", "show the headers of each attempt on standard error",
       [&](Text) { to.verbose = true; }},
      {'w', "write-out", "FORMAT", "write that after each answer: %{http_code}, %{time_total}, ...",
       [&](Text v) { to.write_out = v.starts_with('@') ? data_bytes(v) : v; }},
      {'f', "fail", "", "an answer of 400 or more is not shown",
       [&](Text) { to.on_bad_answer = OnBadAnswer::FailWithout; }},
      {'\0', "fail-with-body", "", "it is shown, and the exit status is 22: as without any flag",
       [&](Text) { to.on_bad_answer = OnBadAnswer::Fail; }},
      {'\0', "no-fail", "", "exit with 0 for any answer, as curl does without -f",
       [&](Text) { to.on_bad_answer = OnBadAnswer::TakeAsAnswer; }},
      {'\0', "no-progress-meter", "", "no progress while waiting (there is none yet)", [](Text) {}},
      {'#', "progress-bar", "", "", {}},
  };
}

std::vector<Flag> connection_flags(SendOptions& to) {
  return {
      {'L', "location", "", "follow redirects", [&](Text) { to.follow = true; }},
      {'\0', "max-redirs", "N", "at most that many (10); -1: any number",
       [&](Text v) {
         to.max_redirects = v == "-1" ? std::numeric_limits<int>::max()
                                      : static_cast<int>(parse_count(v, "--max-redirs"));
       }},
      {'m', "max-time", "SECONDS", "for the whole of a URL: attempts, waits, redirects",
       [&](Text v) { to.max_time = parse_seconds(v, "--max-time"); }},
      {'\0', "connect-timeout", "SECONDS", "for each connection",
       [&](Text v) { to.connect_timeout = parse_seconds(v, "--connect-timeout"); }},
      {'k', "insecure", "", "take any certificate", [&](Text) { to.insecure = true; }},
      {'\0', "cacert", "FILE", "the certificates to trust", [&](Text v) { to.ca_file = v; }},
      {'\0', "http1.1", "", "speak HTTP/1.1 only", [&](Text) { to.http1 = true; }},
  };
}

std::vector<Flag> retry_flags(SendOptions& to) {
  return {
      {'\0', "retry", "N", "send again up to N times: max_attempts is N + 1",
       [&](Text v) {
         to.policy.set("max_attempts", std::to_string(parse_count(v, "--retry") + 1));
       }},
      {'\0', "retry-delay", "SECONDS", "wait that long each time; 0: as the policy says",
       [&](Text v) {
         const auto delay = parse_seconds(v, "--retry-delay");
         if (delay == Duration::zero()) return;
         to.policy.set("backoff",
                       R"({"kind": "constant", "interval": ")" + in_microseconds(delay) + R"("})");
         to.policy.set("throttle_backoff", R"("none")");
       }},
      {'\0', "retry-max-time", "SECONDS", "for all attempts and waits; 0: no limit",
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
}

std::vector<Flag> own_flags(SendOptions& to) {
  auto flags = policy_flags(to.policy);
  const std::vector<Flag> more{
      {'\0', "idempotency-key", "[=KEY]", "send one, the same on all attempts",
       [&](Text v) {
         to.give_key = true;
         to.idempotency_key = v;
       }},
      {'\0', "until", "EXPR", "ask until it holds: status=200, json:/state=DONE",
       [&](Text v) { to.until = v; }},
      {'\0', "report", "FILE", "a JSON report; - is standard output",
       [&](Text v) { to.report = v; }},
      {'\0', "trace", "", "each attempt and decision, on standard error, as it happens",
       [&](Text) { to.trace = true; }},
      {'\0', "color", "WHEN", "auto, always or never",
       [&](Text v) {
         to.color = one_of(v, "--color", {"auto", "always", "never"});
       }},
      {'h', "help", "", "this", [&](Text) { to.help = true; }},
      {'V', "version", "", "our version and libcurl's", [&](Text) { to.version = true; }},
  };
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

// Of the contract, and not built yet: refused by name rather than taken for something else.
std::vector<Flag> coming_flags() {
  return {
      {'b', "cookie", "DATA", "", {}},
      {'c', "cookie-jar", "FILE", "", {}},
      {'E', "cert", "FILE", "", {}},
      {'\0', "key", "FILE", "", {}},
      {'\0', "pinnedpubkey", "HASH", "", {}},
      {'x', "proxy", "URL", "", {}},
      {'\0', "noproxy", "LIST", "", {}},
      {'U', "proxy-user", "USER", "", {}},
      {'\0', "resolve", "ENTRY", "", {}},
      {'\0', "connect-to", "ENTRY", "", {}},
      {'4', "ipv4", "", "", {}},
      {'6', "ipv6", "", "", {}},
      {'\0', "interface", "NAME", "", {}},
      {'\0', "unix-socket", "PATH", "", {}},
      {'\0', "http2", "", "", {}},
      {'\0', "http2-prior-knowledge", "", "", {}},
      {'\0', "tlsv1.2", "", "", {}},
      {'\0', "tlsv1.3", "", "", {}},
      {'\0', "max-filesize", "BYTES", "", {}},
      {'\0', "limit-rate", "SPEED", "", {}},
      {'K', "config", "FILE", "", {}},
      {'Z', "parallel", "", "", {}},
      {'\0', "parallel-max", "N", "", {}},
  };
}

}  // namespace

std::vector<Flag> send_flags(SendOptions& to) {
  std::vector<Flag> all;
  for (auto& part : {request_flags(to), output_flags(to), connection_flags(to), retry_flags(to),
                     own_flags(to), coming_flags()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace httpretry::cli
