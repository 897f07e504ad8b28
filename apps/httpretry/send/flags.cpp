// The flags of sending: curl's, which keep their meaning, and our own.
#include "send/flags.hpp"
#include "send/shared.hpp"

#include "send/compression.hpp"
#include "send/connection_flags.hpp"
#include "send/data.hpp"
#include "send/poll_until.hpp"

#include <limits>

namespace httpretry::cli {
namespace {

std::string in_microseconds(Duration time) {
  return std::to_string(std::chrono::ceil<std::chrono::microseconds>(time).count()) + "us";
}

// Adds the value of -b. As in curl, text with "=" is cookies, and other text names a file, which
// may be missing.
void add_cookies(Text value, SendOptions& to) {
  if (value.find('=') != std::string::npos) return to.cookies.push_back(value);
  to.use_cookies = true;
  if (!value.empty()) to.cookie_files.push_back(value);
}

// Checks the value of -r. As in curl, a single number means "from there on".
std::string byte_range(Text value) {
  const bool valid = !value.empty() &&
                     value.find_first_not_of("0123456789-,") == std::string::npos &&
                     value.find_first_of("0123456789") != std::string::npos;
  if (!valid) {
    throw UsageError("option -r: \"" + value + "\" is not a range of bytes, such as 0-99 or -500" +
                     (value == "etry" || value == "etries" ? "; did you mean --retry?" : ""));
  }
  return value.find('-') == std::string::npos ? value + '-' : value;
}

// Returns the flags for method and headers. Each has a letter ('\0': none), a name, the name of its
// value (empty: none), a help text, and an action that stores the value `v` in `to`, which must
// outlive the flags. kMayBeEmpty says that the value may be "".
std::vector<Flag> request_flags(SendOptions& to) {
  const std::vector<Flag> message{
      {'X', "request", "METHOD", "the request method", store(to.method)},
      {'H', "header", "LINE",
       "add a header, or the headers in @FILE; \"Name:\" removes a default header; \"\": none",
       append(to.headers), kMayBeEmpty},
      {'A', "user-agent", "NAME", "the User-Agent header; \"\": send none", store(to.user_agent),
       kMayBeEmpty},
      {'e', "referer", "URL", "the Referer header; \"\": send none",
       [&](Text v) {
         if (v.ends_with(";auto")) {
           throw UsageError("option -e: \";auto\" is not supported: a redirect keeps the Referer");
         }
         to.referer = v;
       },
       kMayBeEmpty},
  };
  const auto credentials = credential_flags(
      to.user, to.auth, to.connection,
      "name and password; prompts for a missing password on the terminal; \"\": an empty name");
  const std::vector<Flag> more{
      {'\0', "ntlm", "", "with -u: NTLM authentication; each request has a separate connection",
       set(to.auth, Credentials::Scheme::Ntlm)},
      {'\0', "anyauth", "",
       "with -u: the best of basic, digest and NTLM that the server offers; the first request is "
       "sent without credentials",
       set(to.auth, Credentials::Scheme::Any)},
      {'\0', "aws-sigv4", "PROVIDER",
       "with -u KEY:SECRET: sign the request with AWS Signature V4, such as "
       "aws:amz:eu-central-1:s3; each attempt has a new signature; a -T file is read into memory, "
       "and -F is not possible",
       [&](Text v) {
         to.signer = v;
         to.auth = Credentials::Scheme::AwsSigV4;
       }},
      {'\0', "oauth2-bearer", "TOKEN", "send this token in the Authorization header",
       store(to.bearer)},
      {'b', "cookie", "DATA",
       "send cookies (\"NAME=VALUE; ...\"), or those in a file; \"\": only those that servers set",
       [&](Text v) { add_cookies(v, to); }, kMayBeEmpty},
      {'c', "cookie-jar", "FILE",
       "use cookies, and write them to FILE at the end; - is standard output",
       [&](Text v) {
         to.cookie_jar = v;
         to.use_cookies = true;
       }},
      {'j', "junk-session-cookies", "", "leave out the session cookies in the files of -b",
       enable(to.junk_session_cookies)},
      {'\0', "netrc-optional", "", "the same as --netrc; -u and a name in the URL take precedence",
       set(to.connection.netrc, "")},
      {'r', "range", "RANGE",
       "request these bytes only: 0-99, 500-, -100; a retry requests the same ones",
       [&](Text v) { to.range = byte_range(v); }},
      {'z', "time-cond", "DATE",
       "request only a response newer than DATE, or than the file of that name; -DATE: only an "
       "older one",
       store(to.time_condition)},
      {'\0', "etag-compare", "FILE",
       "request only a response whose ETag is not the one in FILE; a missing FILE is an error "
       "without --etag-save",
       store(to.etag_compare)},
      {'I', "head", "", "send HEAD, and show the headers only", enable(to.head)},
      {'\0', "path-as-is", "", "keep /./ and /../ in the path of the URL",
       enable(to.keep_dot_segments)},
      {'\0', "compressed", "", kAboutCompressed, enable(to.compressed)},
      {'\0', "disallow-username-in-url", "", "refuse a URL with a name or a password",
       enable(to.refuse_userinfo)},
      {'\0', "proto-default", "http|https", "the scheme of a URL that has none (http)",
       store(to.default_scheme)},
      {'\0', "url", "URL", "a URL, for use in a file of options (-K)", append(to.urls)},
  };
  return joined(joined(message, credentials),
                joined(joined(oauth2_flags(to.oauth2), paging_flags(to.pagination)), more));
}

// Returns the flags for the request body. Each has a letter ('\0': none), a name, the name of its
// value (empty: none), a help text, and an action that stores the value `v` in `to`, which must
// outlive the flags. kMayBeEmpty says that the value may be "".
std::vector<Flag> body_flags(SendOptions& to) {
  // A field or an item is read when all flags are known, because -m limits the wait for a pipe.
  const auto add_field = [&to](FormField::Syntax syntax) {
    return [&to, syntax](Text v) { to.form.push_back({.value = v, .syntax = syntax}); };
  };
  const auto add_data = [&to](auto read) {
    return [&to, read](Text v) { to.data_items.push_back({.value = v, .read = read}); };
  };
  return {
      {'d', "data", "DATA",
       "send DATA with POST; @FILE reads a file, @- standard input; \"\": an empty body",
       add_data(data_text), kMayBeEmpty},
      {'\0', "data-ascii", "DATA", "like --data", add_data(data_text), kMayBeEmpty},
      {'\0', "data-raw", "DATA", "like --data, but \"@\" has no special meaning",
       add_data(data_raw), kMayBeEmpty},
      {'\0', "data-binary", "DATA", "like --data, but keep line endings", add_data(data_bytes),
       kMayBeEmpty},
      {'\0', "data-urlencode", "DATA", "like --data, percent-encoded: TEXT, NAME=TEXT, NAME@FILE",
       add_data(data_encoded), kMayBeEmpty},
      {'\0', "json", "DATA", "like --data-binary, with the Content-Type and Accept headers of JSON",
       [&](Text v) {
         to.json = true;
         // Several --json are joined without "&".
         to.data_items.push_back({.value = v, .read = data_bytes, .separated = false});
       },
       kMayBeEmpty},
      {'F', "form", "NAME=CONTENT",
       "a field of a multipart/form-data form; CONTENT is text, <FILE or @FILE,FILE..., optionally "
       "followed by ;type=TYPE, ;filename=NAME or ;headers=LINE",
       add_field(FormField::Syntax::Curl)},
      {'\0', "form-string", "NAME=TEXT", "like --form, but no character of TEXT is special",
       add_field(FormField::Syntax::Literal)},
      {'G', "get", "", "put the data into the query of the URL, and send a GET",
       enable(to.data_in_url)},
      {'\0', "url-query", "DATA",
       "add DATA to the query of the URL, encoded; +TEXT is added as it is", append(to.url_query)},
      {'T', "upload-file", "FILE",
       "upload FILE with PUT; - is standard input, which is read before sending, up to 64 MiB, so "
       "that a retry can send it again",
       append(to.uploads)},
      {'\0', "compress", kCodings,
       "compress the body; if the server refuses that with status 415, it gets the uncompressed "
       "body",
       store(to.compress_with)},
      {'\0', "expect100-timeout", "SECONDS",
       "with -H \"Expect: 100-continue\": how long the body waits for the server (1)",
       [&](Text v) { to.expect_timeout = parse_seconds(v, "--expect100-timeout"); }},
  };
}

// Returns the flags for redirects. Each has a letter ('\0': none), a name, the name of its value
// (empty: none), a help text, and an action that stores the value `v` in `to`, which must outlive
// the flags.
std::vector<Flag> redirect_flags(SendOptions& to) {
  const auto keep_post = [&to](int status) {
    return [&to, status](Text /*v*/) { to.keep_post_after.push_back(status); };
  };
  return {
      {'L', "location", "", "follow redirects", enable(to.follow)},
      {'\0', "location-trusted", "",
       "follow redirects, and send credentials, cookies, all headers and bodies to other origins "
       "too",
       [&](Text /*v*/) { to.follow = to.trust_other_origins = true; }},
      {'\0', "post301", "", "keep the method POST after a 301", keep_post(301)},
      {'\0', "post302", "", "keep the method POST after a 302", keep_post(302)},
      {'\0', "post303", "", "keep the method POST after a 303", keep_post(303)},
      {'\0', "max-redirs", "N", "follow at most N redirects (10); -1: no limit",
       [&](Text v) {
         to.max_redirects = v == "-1" ? std::numeric_limits<int>::max()
                                      : static_cast<int>(parse_count(v, "--max-redirs"));
       }},
      {'\0', "proto", "PROTOCOLS",
       "allow only these: =https, or a list such as -all,https; also for redirects",
       // A list such as "-http" changes the protocols that are allowed so far.
       [&](Text v) { to.protocols = parse_protocols(v, "--proto", to.protocols); }},
      {'\0', "proto-redir", "PROTOCOLS", "the same, for redirects only",
       [&](Text v) {
         to.redirect_protocols = parse_protocols(v, "--proto-redir", to.redirect_protocols);
       }},
  };
}

// Returns the flags for the policy, polling and shared limits. Each has a letter ('\0': none), a
// name, the name of its value (empty: none), a help text, and an action that stores the value `v`
// in `to`, which must outlive the flags. The actions of curl's flags set keys of the policy, as
// --set KEY=VALUE does. Such a VALUE is JSON; a string may lack its quotes.
std::vector<Flag> retry_flags(SendOptions& to) {
  const std::vector<Flag> flags{
      {'\0', "idempotency-key", "[=KEY]",
       "send an idempotency key, the same for all attempts; generated if KEY is not given",
       [&](Text v) {
         to.use_idempotency_key = true;
         to.idempotency_key = v;
       }},
      {'\0', "cost", "N",
       "what each attempt takes from a \"rate\" of the policy that counts costs, such as the "
       "tokens of a language model (1)",
       [&](Text v) { to.cost = static_cast<std::uint64_t>(parse_count(v, "--cost")); }},
      {'\0', "until", "EXPR",
       "send the request until EXPR is true: status=200, status=2xx,304, json:/state=DONE, "
       "json:/state!=RUNNING; every second or every --retry-delay, within -m or --retry-max-time; "
       "exit status 28 if it never is",
       [&](Text v) {
         static_cast<void>(PollCondition::parse(v, "--until"));  // throws if it is invalid
         to.until = v;
       }},
      {'\0', "until-fail", "EXPR", "with --until: end with exit status 22 when EXPR is true",
       [&](Text v) {
         static_cast<void>(PollCondition::parse(v, "--until-fail"));  // throws if it is invalid
         to.until_fail = v;
       }},
      {'\0', "retry", "N",
       "retry up to N times (4): sets max_attempts to N + 1; if nothing succeeds, a budget of "
       "about 100 retries per host may end them earlier, unless --set budget=none",
       [&](Text v) {
         const std::int64_t retries = parse_count(v, "--retry");
         constexpr std::int64_t kMost = std::numeric_limits<int>::max();  // of max_attempts
         to.policy.set("max_attempts", std::to_string(std::min(retries + 1, kMost)));
       }},
      {'\0', "retry-delay", "SECONDS", "wait this long before each retry; 0: as the policy says",
       [&](Text v) {
         const auto delay = parse_seconds(v, "--retry-delay");
         if (delay == Duration::zero()) return;  // the policy decides
         to.retry_delay = delay;                 // for --until
         to.policy.set("backoff",
                       R"({"kind": "constant", "interval": ")" + in_microseconds(delay) + R"("})");
         // A policy may have another backoff for the retries after a throttle, such as 429. With
         // "none", they use `backoff` like all others.
         to.policy.set("throttle_backoff", R"("none")");
       }},
      {'\0', "retry-max-time", "SECONDS",
       "time limit for all attempts and waits (60, unless a policy sets it); 0: none",
       [&](Text v) {
         const auto limit = parse_seconds(v, "--retry-max-time");
         const bool none = limit == Duration::zero();
         to.policy.set("max_elapsed_time", none ? "none" : in_microseconds(limit));
       }},
      {'\0', "retry-all-errors", "",
       "retry after any failure, even if the server may have processed the request",
       enable(to.retry_all_errors)},
      {'\0', "retry-connrefused", "",
       "retry after every kind of network failure, as most policies do",
       [&](Text) { to.policy.set("retry_on.transport", kAllTransport); }},
  };
  return joined(joined(policy_flags(to.policy), flags), shared_flags(to.shared));
}

// Returns the flags for several URLs, for files of options, for --version and --help, and curl's
// flags that have no effect here. Each has a letter ('\0': none), a name, the name of its value
// (empty: none), a help text, and an action that stores the value `v` in `to`, which must outlive
// the flags.
std::vector<Flag> other_flags(SendOptions& to) {
  return {
      {'Z', "parallel", "", "send all requests at the same time", enable(to.parallel)},
      {'\0', "parallel-max", "N", "with -Z: at most N requests at a time (50)",
       [&](Text v) {
         to.parallel_max = parse_count(v, "--parallel-max");
         if (to.parallel_max == 0) throw UsageError("option --parallel-max must be at least 1");
       }},
      {'\0', "parallel-max-host", "N", "with -Z: at most N requests at a time to each host",
       // 0: no limit
       [&](Text v) { to.parallel_max_host = parse_count(v, "--parallel-max-host"); }},
      {'\0', "parallel-immediate", "",
       "accepted, but has no effect: over HTTP/2, requests share connections", [](Text) {}},
      {'\0', "fail-early", "", "stop at the first URL that fails", enable(to.fail_early)},
      {':', "next", "",
       "start a new group of URLs, which is sent after this one and has its own options; also as a "
       "line of a file of options",
       [&](Text) { begin_next_group(to); }},
      {'K', "config", "FILE", "read options from FILE, one per line; - is standard input",
       [&](Text v) { read_config(v, to); }},
      {'q', "disable", "", "accepted, because there is no file of options to skip", [](Text) {}},
      {'g', "globoff", "", "accepted, because [] and {} have no special meaning in a URL",
       // It permits a -o with "#1" for a URL with [] or {}, which check_globs() refuses otherwise.
       enable(to.globoff)},
      {'V', "version", "", "show our version and libcurl's", enable(to.version)},
      help_flag(),
  };
}

}  // namespace

FlagTable send_flags(SendOptions& to) {
  return {{"Request", request_flags(to)},
          {"Body", body_flags(to)},
          {"Files", file_flags(to)},
          {"Response", response_flags(to)},
          {"Retries", retry_flags(to)},
          {"Redirects", redirect_flags(to)},
          {"Connection", connection_flags(to)},
          {"Proxy", proxy_flags(to)},
          {"TLS", tls_flags(to.connection)},
          {"Messages", message_flags(to)},
          {"Other", other_flags(to)}};
}

FlagTable send_table() { return unused_table(send_flags); }

void parse_send(const Args& args, SendOptions& to) {
  parse(
      args, send_flags(to), [&](Text url) { to.urls.push_back(url); },
      [](std::string_view option, Text /*value*/) { return about_unknown_option(option); });
}

void begin_next_group(SendOptions& to) {
  if (to.urls.empty() && to.config_depth > 0) return;  // as curl
  if (to.urls.empty() && to.read_config)
    throw UsageError("option --next: no URL is given before it");
  SendOptions next;
  static_cast<RunOptions&>(next) = to;
  next.earlier = std::exchange(to.earlier, {});
  next.earlier.push_back(std::move(to));
  to = std::move(next);
}

}  // namespace httpretry::cli
