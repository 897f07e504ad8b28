#include "batch/options.hpp"

#include "send/compression.hpp"
#include "send/connection_flags.hpp"
#include "send/oauth2.hpp"
#include "send/shared.hpp"

#include <algorithm>

namespace httpretry::cli {
namespace {

std::size_t parse_positive(Text text, std::string_view flag) {
  const auto count = parse_count(text, flag);
  if (count < 1) throw UsageError("option " + std::string(flag) + " must be 1 or more");
  return static_cast<std::size_t>(count);
}

// Parses "100/s", "6000/m" or "10/500ms". After an idle time, a tenth of the number may be sent at
// once. Throws UsageError.
RatePolicy parse_rate(Text text) {
  const auto slash = text.find('/');
  if (slash == std::string::npos || slash == 0) {
    throw UsageError("option --rate: \"" + text + "\" is not a rate, such as 100/s or 6000/m");
  }
  RatePolicy rate;
  rate.requests = static_cast<std::int64_t>(parse_positive(text.substr(0, slash), "--rate"));
  auto period = text.substr(slash + 1);
  const bool has_digit = period.find_first_of("0123456789") != std::string::npos;
  if (!period.empty() && !has_digit) period.insert(0, "1");  // "s" is "1s"
  rate.per = parse_seconds(period, "--rate");
  if (rate.per <= Duration::zero())
    throw UsageError("option --rate: the time must be greater than zero");
  rate.burst = std::max<std::int64_t>(rate.requests / 10, 1);
  return rate;
}

// Applies --bodies: "inline", "none", or a directory.
void set_bodies(Text value, batch::BatchOptions& to) {
  to.bodies = value == "none"     ? batch::Bodies::None
              : value == "inline" ? batch::Bodies::Inline
                                  : batch::Bodies::Files;
  to.directory = to.bodies == batch::Bodies::Files ? value : "";
}

std::vector<Flag> input_flags(BatchCommand& to) {
  auto& batch = to.batch;
  return {
      {'\0', "input-format", "auto|jsonl|urls",
       "the format of the lines: requests as JSON, URLs, or both (auto)",
       choose(batch.format, "auto|jsonl|urls")},
      {'\0', "check", "", "only read the input, and report every error in it", enable(to.check)},
      {'\0', "dry-run", "",
       "like --check; also count the requests by host and policy, and estimate the time",
       enable(to.dry_run)},
  };
}

// Returns the flags for the journal. Each has a letter ('\0' if it has none), a name, the name of
// its value in --help (empty if it takes none), a help text, and an action that stores the value in
// `to`, which must outlive the flags. choose() sets the enumerator that has the same position in
// its enum as the word in the list.
std::vector<Flag> journal_flags(BatchCommand& to) {
  auto& batch = to.batch;
  return {
      {'\0', "journal", "FILE",
       "the file for the state of each job (default: INPUT.httpretry.db; required if INPUT is -)",
       store(batch.journal)},
      {'\0', "fresh", "",
       "start over; the old journal, results and dead letters are renamed with the suffix .old",
       enable(batch.fresh)},
      {'\0', "durability", "power|process",
       "what a commit survives: a power failure (default), or only the end of the process",
       choose(batch.durability, "power|process")},
      key_lifetime_flag(to),
      {'\0', "retry-unknown", "", "send the unknown jobs again, which may execute them twice",
       enable(batch.retry_unknown)},
  };
}

std::vector<Flag> output_flags(BatchCommand& to) {
  auto& batch = to.batch;
  return {
      {'\0', "results", "FILE",
       "write a JSON line for each job that ended to FILE (default: INPUT.results.jsonl)",
       store(batch.results)},
      {'\0', "no-results", "", "write no results; the journal still has the state of each job",
       enable(to.no_results)},
      {'\0', "dead", "FILE", "write the jobs that failed to FILE, as input for another run",
       store(batch.dead)},
  };
}

#ifdef HTTPRETRY_WITH_QUEUE
std::vector<Flag> queue_flags(BatchCommand& to) {
  return {
      {'\0', "enqueue", "", "add the requests to a queue, which httpretry work sends",
       enable(to.enqueue)},
      queue_flag(to),
      {'\0', "force", "", "allow a server that may evict keys when its memory is full",
       enable(to.force)},
  };
}
#endif

// Returns the flags that print something about a journal instead of sending requests. Each has a
// letter ('\0' if it has none), a name, the name of its value in --help (empty if it takes none), a
// help text, and an action that stores the value in `to`, which must outlive the flags.
std::vector<Flag> question_flags(BatchCommand& to) {
  return {
      {'\0', "status", "", "print how many jobs of a journal are in each state (operand: JOURNAL)",
       enable(to.status)},
      format_flag(to),
      {'\0', "explain", "", "print what is known about a job (operands: JOURNAL ID)",
       enable(to.explain)},
      {'\0', "export", "dead|unknown|waiting|queued",
       "print the input lines of the jobs in this state (operand: JOURNAL)",
       // The parser of the command line has rejected any other word.
       [&](Text state) {
         to.print_jobs = state == "dead"      ? batch::State::Dead
                         : state == "unknown" ? batch::State::Unknown
                         : state == "waiting" ? batch::State::Waiting
                                              : batch::State::Queued;
       }},
      help_flag(),
  };
}

}  // namespace

std::vector<Flag> request_flags(BatchCommand& to) {
  return {
      {'H', "header", "LINE", "add a header to the requests that do not have it",
       append(to.headers)},
      {'\0', "compressed", "", kAboutCompressed, enable(to.batch.compressed)},
  };
}

void check_format(const BatchCommand& command) {
  if (command.format == StatusFormat::Text) return;
  throw UsageError("option --format needs --status; the progress as JSON is --progress json");
}

std::string policy_time(Text seconds, std::string_view flag) {
  const auto ms =
      std::chrono::ceil<std::chrono::milliseconds>(parse_seconds(seconds, flag)).count();
  if (ms == 0) return "none";
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + "s" : std::to_string(ms) + "ms";
}

Flag format_flag(BatchCommand& to) {
  return {'\0', "format", "text|json", "with --status: text for people (default), or a JSON object",
          choose(to.format, "text|json")};
}

Flag key_lifetime_flag(BatchCommand& to) {
  return {'\0', "key-lifetime", "TIME",
          "how long servers are trusted to remember an idempotency key (default: 24h)",
          [&](Text v) { to.batch.key_lifetime = parse_seconds(v, "--key-lifetime"); }};
}

// Returns the flags for the results, the progress and the telemetry. Each has a letter ('\0' if it
// has none), a name, the name of its value in --help (empty if it takes none), a help text, and an
// action that stores the value `v` in `to`, which must outlive the flags. choose() sets the
// enumerator that has the same position in its enum as the word in the list.
std::vector<Flag> response_flags(BatchCommand& to) {
  auto& batch = to.batch;
  const std::vector<Flag> flags{
      {'\0', "bodies", "WHERE",
       "where to write response bodies: inline (in the results, up to 64 KiB; default), none, or a "
       "directory, with a file for each",
       [&](Text v) { set_bodies(v, batch); }},
      {'\0', "response-headers", "", "include the response headers in the results",
       enable(batch.headers)},
      {'\0', "progress", "auto|line|lines|json|none",
       "a status line, a new line every 10 s, or JSON every 10 s (auto: line on a terminal, "
       "otherwise lines)",
       choose(to.progress, "auto|line|lines|json|none")},
  };
  return joined(
      flags,
      telemetry_flags(
          to.telemetry,
          "write an HTTP archive with an entry for each send, without secrets; it is "
          "kept in memory until the end",
          "send traces to an OpenTelemetry collector: OTLP over HTTP, in JSON, to URL/v1/traces"));
}

// Returns the flags that limit how fast and how long requests are sent, and --shared. Each has a
// letter ('\0' if it has none), a name, the name of its value in --help (empty if it takes none), a
// help text, and an action that stores the value `v` in `to`, which must outlive the flags.
std::vector<Flag> flow_flags(BatchCommand& to) {
  auto& runner = to.batch.runner;
  const std::vector<Flag> flags{
      {'\0', "parallel", "N", "how many requests may be in flight at once (default: 64)",
       [&](Text v) { runner.parallel = parse_positive(v, "--parallel"); }},
      {'\0', "rate", "N/TIME", "send at most N requests in each TIME, including retries: 100/s",
       [&](Text v) { runner.rate = parse_rate(v); }},
      {'\0', "max-idle", "TIME",
       "end if nothing can be sent for longer than this (default: 1m); jobs that wait longer for "
       "their server are left for the next run",
       // max_idle limits the wait of the jobs for their next attempt, max_shortage the time in
       // which this machine lacks the resources for even one request.
       [&](Text v) { runner.max_idle = runner.max_shortage = parse_seconds(v, "--max-idle"); }},
      {'\0', "max-failures", "N", "end when N jobs have failed in this run (default: 0, never)",
       [&](Text v) {
         runner.max_failures = static_cast<std::uint64_t>(parse_count(v, "--max-failures"));
       }},
      {'\0', "grace", "TIME",
       "how long requests in flight may continue after the first signal (default: 10s)",
       [&](Text v) { runner.grace = parse_seconds(v, "--grace"); }},
  };
  return joined(flags, shared_flags(to.shared));
}

// Returns the flags for connections: credentials, OAuth 2.0, the proxy, time limits, addresses and
// TLS. Each has a letter ('\0' if it has none), a name, the name of its value in --help (empty if
// it takes none), a help text, and an action that stores the value `v` in `to`, which must outlive
// the flags. With kMayBeEmpty, the value may be "", which is an error for other flags.
std::vector<Flag> connection_flags(BatchCommand& to) {
  auto& batch = to.batch;
  auto& connection = batch.client.connection;
  const std::vector<Flag> flags{
      {'x', "proxy", "URL", "use a proxy; \"\": none", store(connection.proxy.url), kMayBeEmpty},
      {'U', "proxy-user", "NAME[:PASSWORD]", "name and password for the proxy, as with -u",
       store(to.proxy_user)},
      {'\0', "connect-timeout", "TIME", "time limit for connecting",
       // A setting of the retry policies, which overrides that of the policy file.
       [&](Text v) { to.policy.set("connect_timeout", policy_time(v, "--connect-timeout")); }},
      {'\0', "limit-rate", "SPEED",
       "transfer at most this many bytes a second for each request, down and up: 20K, 3M",
       // unless_zero() returns nullopt for 0, which removes the limit.
       [&](Text v) { batch.bytes_per_second = unless_zero(parse_bytes(v, "--limit-rate")); }},
  };
  const auto credentials = credential_flags(
      to.user, to.auth, connection,
      "name and password for each request whose line has no Authorization header and no name in "
      "its URL, regardless of its host; not sent to another origin after a redirect; prompts for a "
      "missing password on the terminal; \"\": an empty name");
  return joined(joined(joined(credentials, oauth2_flags(to.oauth2)), flags),
                joined(address_flags(connection), tls_flags(connection)));
}

Flag queue_flag(BatchCommand& to) {
  return {'\0', "queue", "URL",
          "the queue: redis://[:PASSWORD@]HOST[:PORT][/DB]?job=NAME (default: $HTTPRETRY_QUEUE)",
          store(to.queue)};
}

// Returns all flags of `httpretry batch` in groups, with the title of each group in --help. They
// set the members of `to`.
FlagTable batch_flags(BatchCommand& to) {
  return {
      {"Input", joined(input_flags(to), request_flags(to))},
#ifdef HTTPRETRY_WITH_QUEUE
      {"Queue", queue_flags(to)},
#endif
      {"Journal", journal_flags(to)},
      {"Output", joined(output_flags(to), response_flags(to))},
      {"Flow", flow_flags(to)},
      {"Policy", policy_flags(to.policy)},
      {"Connection", connection_flags(to)},
      {"Questions", question_flags(to)},
  };
}

}  // namespace httpretry::cli
