#include "batch/options.hpp"

#include "send/connection.hpp"
#include "send/shared.hpp"

#include <algorithm>

namespace httpretry::cli {
namespace {

std::size_t parse_positive(Text text, std::string_view flag) {
  const auto count = parse_count(text, flag);
  if (count < 1) throw UsageError("option " + std::string(flag) + " must be 1 or more");
  return static_cast<std::size_t>(count);
}

// Parses "100/s", "6000/m" or "10/500ms". After an idle time, a tenth of that number may be sent at
// once.
RatePolicy parse_rate(Text text) {
  const auto slash = text.find('/');
  if (slash == std::string::npos || slash == 0) {
    throw UsageError("option --rate: \"" + text + "\" is not a rate, such as 100/s or 6000/m");
  }
  RatePolicy rate;
  rate.requests = static_cast<std::int64_t>(parse_positive(text.substr(0, slash), "--rate"));
  auto per = text.substr(slash + 1);
  const bool unit_alone = !per.empty() && per.find_first_of("0123456789") == std::string::npos;
  if (unit_alone) per.insert(0, "1");
  rate.per = parse_seconds(per, "--rate");
  if (rate.per <= Duration::zero()) throw UsageError("option --rate: the time must be above zero");
  rate.burst = std::max<std::int64_t>(rate.requests / 10, 1);
  return rate;
}

void set_bodies(Text value, batch::BatchOptions& to) {
  to.directory.clear();
  if (value == "inline" || value == "none") {
    to.bodies = value == "none" ? batch::Bodies::None : batch::Bodies::Inline;
    return;
  }
  to.bodies = batch::Bodies::Files;
  to.directory = value;
}

std::vector<Flag> input_flags(BatchCommand& to) {
  auto& batch = to.batch;
  return {
      {'\0', "input-format", "auto|jsonl|urls",
       "what the lines are: requests as JSON, URLs, or both (auto)",
       choose(batch.format, "auto|jsonl|urls")},
      {'\0', "check", "", "only read the input, and name every mistake in it", enable(to.check)},
      {'\0', "dry-run", "",
       "the same, and count the requests by host and policy, and estimate the time",
       enable(to.dry_run)},
  };
}

std::vector<Flag> journal_flags(BatchCommand& to) {
  auto& batch = to.batch;
  return {
      {'\0', "journal", "FILE",
       "where the state of each job is kept (default: INPUT.httpretry.db; needed for -)",
       store(batch.journal)},
      {'\0', "fresh", "",
       "begin anew; journal, results and dead letters of before get the end .old",
       enable(batch.fresh)},
      {'\0', "durability", "power|process",
       "what a commit survives: the end of the power (default), or only that of the process",
       choose(batch.durability, "power|process")},
      key_lifetime_flag(to),
      {'\0', "retry-unknown", "", "send again what may have been executed and is unknown",
       enable(batch.retry_unknown)},
  };
}

std::vector<Flag> output_flags(BatchCommand& to) {
  auto& batch = to.batch;
  return {
      {'\0', "results", "FILE",
       "a JSON line for each job that ended (default: INPUT.results.jsonl)", store(batch.results)},
      {'\0', "no-results", "", "write no results; the journal knows the states",
       enable(to.no_results)},
      {'\0', "dead", "FILE", "the jobs that failed, as an input for another run",
       store(batch.dead)},
  };
}

#ifdef HTTPRETRY_WITH_QUEUE
std::vector<Flag> queue_flags(BatchCommand& to) {
  return {
      {'\0', "enqueue", "", "add the requests to a queue, which `httpretry work` sends",
       enable(to.enqueue)},
      queue_flag(to),
      {'\0', "force", "", "also on a server that may delete keys when its memory is full",
       enable(to.force)},
  };
}
#endif

std::vector<Flag> question_flags(BatchCommand& to) {
  return {
      {'\0', "status", "", "print what a journal says of its jobs (operand: JOURNAL)",
       enable(to.status)},
      {'\0', "explain", "", "print what is known of a job (operands: JOURNAL ID)",
       enable(to.explain)},
      {'\0', "export", "dead|unknown|waiting|queued",
       "print the input lines of these jobs (operand: JOURNAL)",
       [&](Text v) {
         to.print_jobs = v == "dead"      ? batch::State::Dead
                         : v == "unknown" ? batch::State::Unknown
                         : v == "waiting" ? batch::State::Waiting
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
      {'\0', "compressed", "", "request gzip, and decode the bodies", enable(to.batch.compressed)},
  };
}

Flag key_lifetime_flag(BatchCommand& to) {
  return {'\0', "key-lifetime", "TIME",
          "how long servers are trusted to remember an idempotency key (default: 24h)",
          [&](Text v) { to.batch.key_lifetime = parse_seconds(v, "--key-lifetime"); }};
}

std::vector<Flag> response_flags(BatchCommand& to) {
  auto& batch = to.batch;
  const std::vector<Flag> flags{
      {'\0', "bodies", "WHERE",
       "where the bodies of responses go: inline (into the results, up to 64 KiB; default), none, "
       "or a directory, into a file for each",
       [&](Text v) { set_bodies(v, batch); }},
      {'\0', "response-headers", "", "have the headers of the responses in the results, too",
       enable(batch.headers)},
      {'\0', "progress", "auto|line|lines|json|none",
       "a line that changes, a line every 10 s, or JSON every 10 s (auto: what standard error is)",
       choose(to.progress, "auto|line|lines|json|none")},
  };
  return joined(
      flags,
      telemetry_flags(
          to.telemetry,
          "write an HTTP archive with an entry for each send, without bodies and secrets; it is "
          "kept in memory until the end",
          "send traces to an OpenTelemetry collector: OTLP over HTTP, in JSON, to URL/v1/traces"));
}

std::vector<Flag> flow_flags(BatchCommand& to) {
  auto& runner = to.batch.runner;
  const std::vector<Flag> flags{
      {'\0', "parallel", "N", "how many requests are on their way at once (default: 64)",
       [&](Text v) { runner.parallel = parse_positive(v, "--parallel"); }},
      {'\0', "rate", "N/TIME", "send at most N requests, retries included, in that time: 100/s",
       [&](Text v) { runner.rate = parse_rate(v); }},
      {'\0', "max-idle", "TIME", "end if nothing can be sent for longer than this (default: 1m)",
       [&](Text v) { runner.max_idle = runner.max_shortage = parse_seconds(v, "--max-idle"); }},
      {'\0', "max-failures", "N", "end when N jobs have failed in this run (default: 0, never)",
       [&](Text v) {
         runner.max_failures = static_cast<std::uint64_t>(parse_count(v, "--max-failures"));
       }},
      {'\0', "grace", "TIME", "how long requests may go on after the first signal (default: 10s)",
       [&](Text v) { runner.grace = parse_seconds(v, "--grace"); }},
  };
  return joined(flags, shared_flags(to.shared));
}

std::vector<Flag> connection_flags(BatchCommand& to) {
  auto& connection = to.batch.client.connection;
  return {
      {'k', "insecure", "", "do not verify the server's certificate",
       set(connection.verify_tls, false)},
      {'\0', "cacert", "FILE", "trust the certificates in FILE", store(connection.ca_file)},
      {'x', "proxy", "URL", "use a proxy; \"\": none", store(connection.proxy.url), kMayBeEmpty},
      {'\0', "connect-timeout", "TIME", "a limit for making a connection",
       [&](Text v) { to.policy.set("connect_timeout", v); }},
  };
}

Flag queue_flag(BatchCommand& to) {
  return {'\0', "queue", "URL",
          "the queue: redis://[:PASSWORD@]HOST[:PORT][/DB]?job=NAME (default: $HTTPRETRY_QUEUE)",
          store(to.queue)};
}

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
