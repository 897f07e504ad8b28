#include <httpretry/policy/policy_set.hpp>

#include "lib/core/client/detail/report.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <ctime>

namespace httpretry {
namespace {

// Writes a time in milliseconds, such as 12.0 or 0.000125, with as many digits as it needs. Ten
// times as fast as JsonWriter with a double.
void write_ms(JsonWriter& json, Duration time) {
  constexpr std::int64_t kPerMillisecond = 1'000'000;
  const std::int64_t nanoseconds = time.count();
  if (nanoseconds < 0) return json.value(std::chrono::duration<double, std::milli>(time).count());
  std::array<char, 32> text{};
  auto* end = std::to_chars(text.begin(), text.end(), nanoseconds / kPerMillisecond).ptr;
  *end++ = '.';
  auto rest = nanoseconds % kPerMillisecond;
  do {
    *end++ = static_cast<char>('0' + rest / (kPerMillisecond / 10));
    rest = rest % (kPerMillisecond / 10) * 10;
  } while (rest > 0);
  json.raw({text.data(), static_cast<std::size_t>(end - text.data())});
}

// Adds a member with a text or an optional value. An empty one becomes null.
template <class Name, class Value>
void add_or_null(JsonWriter& json, const Name& name, const Value& value) {
  json.key(name);
  if constexpr (std::is_convertible_v<Value, std::string_view>) {
    const std::string_view text = value;
    text.empty() ? json.null() : json.value(text);
  } else if (!value) {
    json.null();
  } else if constexpr (std::is_convertible_v<decltype(*value), Duration>) {
    write_ms(json, *value);
  } else if constexpr (std::is_convertible_v<decltype(*value), WallTime>) {
    json.value(rfc3339(*value));
  } else {
    json.value(*value);
  }
}

// Writes null for the status 0, which means that no status was received.
void write_status(JsonWriter& json, int status) {
  json.key("status");
  status == 0 ? json.null() : json.value(status);
}

void write_error(JsonWriter& json, std::optional<Errc> code, int curl_code,
                 std::string_view message, Sent sent) {
  if (!code) return json.null_member("error");
  json.key("error").begin_object();
  json.member("kind", to_string(*code));
  json.member("curl_code", curl_code);
  json.member("message", message);
  json.member("maybe_sent", sent != Sent::Never);
  json.end_object();
}

// Returns what the call did after the attempt: "lost" if another send of the attempt won.
std::string_view decision_text(const Attempt& attempt) {
  return attempt.race == Race::Lost ? "lost" : attempt.retried ? "retry" : "stop";
}

// Returns "", which is written as null, for a send that won no race and lost none.
std::string_view race_text(Race race) {
  return race == Race::Won ? "won" : race == Race::Lost ? "lost" : "";
}

void write_hedge(JsonWriter& json, const Hedge* hedge) {
  if (hedge == nullptr) return json.null_member("hedge");
  json.key("hedge").begin_object();
  json.member("of", hedge->of);
  write_ms(json.key("after_ms"), hedge->after);
  json.member("from", hedge->from);
  json.end_object();
}

// Writes one attempt, an object in the array "attempts" of a call's report: what was sent, how it
// ended, and what was decided about a retry. Members without a value are null; "polled_url" and
// "ambiguous" are left out instead. `polled` is the URL that an earlier response had named for
// polling, or nullptr if this attempt sent the request itself.
//
// With hedging, an attempt may be sent a second time, and the sends race. The report then has an
// object for each send: "outcome" is the result of the race, "won" or "lost", and null without one.
void write_attempt(JsonWriter& json, const Attempt& attempt, const PolledUrl* polled) {
  json.begin_object();
  json.member("number", attempt.number);
  if (polled != nullptr) json.member("polled_url", polled->url);
  write_ms(json.key("start_ms"), attempt.start);
  write_ms(json.key("duration_ms"), attempt.duration);
  write_status(json, attempt.status);
  write_error(json, attempt.error, attempt.curl_code, attempt.error_message, attempt.sent);
  json.member("class", to_string(attempt.cls));
  json.member("rule", attempt.rule);
  json.member("sent", to_string(attempt.sent));
  json.member("wire_sends", attempt.wire_sends);  // above 1 after rounds of authentication
  write_ms(json.key("queued_ms"), attempt.exchange().timings.queued);
  add_or_null(json, "queued_by", to_string(attempt.queued_by));
  add_or_null(json, "server_delay_ms", attempt.server_delay);
  add_or_null(json, "server_delay_source", attempt.server_delay_source);
  add_or_null(json, "backoff_ms", attempt.backoff);
  // The policy combines the server's delay and the backoff into the wait.
  add_or_null(json, "wait_ms", attempt.wait);
  add_or_null(json, "budget_left", attempt.budget_left);
  json.member("decision", decision_text(attempt));
  write_hedge(json, attempt.hedge.get());
  add_or_null(json, "outcome", race_text(attempt.race));
  // For example a 404 for a DELETE, after an earlier attempt that may have deleted the resource.
  if (attempt.ambiguous) json.member("ambiguous", true);
  json.end_object();
}

// Writes the policy of the first attempt. All members are null if the request had its own policy.
void write_policy(JsonWriter& json, const History& history) {
  static const ResolvedPolicy none;
  const bool known = !history.attempts.empty() && history.attempts.front().policy;
  const auto& policy = known ? *history.attempts.front().policy : none;
  json.key("policy").begin_object();
  add_or_null(json, "endpoint", policy.endpoint);
  add_or_null(json, "name", policy.name);
  add_or_null(json, "preset", policy.preset);
  add_or_null(json, "source", policy.source);
  json.end_object();
}

// Writes the circuit as the call last saw it, or null without a breaker.
void write_circuit(JsonWriter& json, const History& history) {
  if (!history.guards || !history.guards->circuit) return json.null_member("circuit");
  const auto& circuit = *history.guards->circuit;
  json.key("circuit").begin_object();
  json.member("key", circuit.key);
  json.member("state", to_string(circuit.state));
  json.member("failed", circuit.failed);
  json.member("total", circuit.total);
  add_or_null(json, "until", circuit.until);
  add_or_null(json, "p", circuit.refused_share);
  json.end_object();
}

// Writes the member "limits": what the guards of the policy (their rate, their limit of concurrent
// sends, and a pause that a server asked for) looked like when the call last saw them. The member
// is null if no guard applied, and "concurrency" is null if nothing limits concurrent sends.
void write_limits(JsonWriter& json, const History& history) {
  if (!history.guards || !history.guards->limits) return json.null_member("limits");
  const auto& limits = *history.guards->limits;
  json.key("limits").begin_object();
  write_ms(json.key("rate_wait_ms"), limits.rate_wait);
  if (limits.limit) {  // the number of concurrent sends that was allowed
    json.key("concurrency").begin_object();
    json.member("limit", *limits.limit);
    json.member("in_flight", limits.in_flight.value_or(0));
    json.end_object();
  } else {
    json.null_member("concurrency");
  }
  add_or_null(json, "paused_until", limits.paused_until);
  json.end_object();
}

void write_outcome(JsonWriter& json, const Outcome& outcome) {
  json.member("outcome", outcome ? "response" : "error");
  // A status that was received before the connection broke belongs to the attempt, not to the call.
  write_status(json, outcome ? outcome->status : 0);
  if (outcome) return json.null_member("error");
  const auto& error = outcome.error();
  write_error(json, error.code, error.curl_code, error.message, error.exchange.sent);
}

// Returns "503 each time" or "503, 503, timeout", with only the last ones if there are many.
std::string results_text(const std::vector<Attempt>& attempts) {
  constexpr std::size_t kShown = 6;
  const auto last = attempt_text(attempts.back());
  const bool same = std::all_of(attempts.begin(), attempts.end(),
                                [&](const Attempt& each) { return attempt_text(each) == last; });
  if (attempts.size() == 1) return last;
  if (same) return last + " each time";
  std::string list = attempts.size() > kShown ? "..., " : "";
  for (auto i = attempts.size() - std::min(attempts.size(), kShown); i < attempts.size(); ++i) {
    list += attempt_text(attempts[i]) + (i + 1 < attempts.size() ? ", " : "");
  }
  return list;
}

std::ptrdiff_t hedges_in(const std::vector<Attempt>& attempts) {
  return std::count_if(attempts.begin(), attempts.end(),
                       [](const Attempt& each) { return each.hedge != nullptr; });
}

// Returns for example " (1 hedge)", or an empty text without hedges.
std::string hedges_text(const std::vector<Attempt>& attempts) {
  const auto hedges = hedges_in(attempts);
  if (hedges == 0) return {};
  return " (" + std::to_string(hedges) + (hedges == 1 ? " hedge)" : " hedges)");
}

std::string_view verb(Reason reason) {
  if (reason == Reason::Success) return "succeeded";
  if (reason == Reason::Canceled) return "was canceled";
  return reason == Reason::NotRetryable ? "failed" : "gave up";
}

std::string counted(std::ptrdiff_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// Returns how many responses were followed by the request to their Location. Such a response is not
// the last one of the call, and no retry followed it.
std::ptrdiff_t redirects_in(const History& history) {
  return std::ranges::count_if(history.attempts, [&](const Attempt& each) {
    return each.status / 100 == 3 && !each.retried && &each != history.last();
  });
}

// Returns what the call did before it ended: "after 2 attempts and 1 redirect".
std::string effort_text(const Outcome& outcome) {
  const auto& history = history_of(outcome);
  const auto& attempts = history.attempts;
  const bool was_canceled = history.stop_reason == Reason::Canceled;
  if (attempts.empty()) return was_canceled ? "before the first attempt" : "without an attempt";
  const bool failed_at_once = attempts.size() == 1 && attempts.front().error &&
                              (was_canceled || history.stop_reason == Reason::NotRetryable);
  if (failed_at_once && !outcome && !outcome.error().maybe_sent()) return "before it was sent";
  const auto redirects = redirects_in(history);
  return "after " + counted(std::ssize(attempts) - redirects, "attempt") +
         (redirects > 0 ? " and " + counted(redirects, "redirect") : "") + hedges_text(attempts);
}

}  // namespace

std::string attempt_text(const Attempt& attempt) {
  return attempt.error ? std::string(to_string(*attempt.error)) : std::to_string(attempt.status);
}

// Returns a line for people that says how a call ended, for example "gave up after 5 attempts in
// 3.10 s: 503 each time (attempts_exhausted)" or "not sent: the circuit of https://a.example is
// open; come back at 2024-05-01T12:00:00.250Z (circuit_open)".
std::string describe(const Outcome& outcome) {
  const auto& history = history_of(outcome);
  const auto count = history.attempts.size();
  const auto come_back = history.retry_at ? "; come back at " + rfc3339(*history.retry_at) : "";
  const auto reason = " (" + std::string(to_string(history.stop_reason)) + ")";
  const bool was_canceled = history.stop_reason == Reason::Canceled;
  // For example, a breaker held the request back, or this process lacked descriptors. An
  // attempt may have begun before InvalidRequest: the request costs more than its rate allows.
  const bool not_sent = !outcome && !was_canceled && !outcome.error().maybe_sent() &&
                        (count == 0 || outcome.error().code == Errc::InvalidRequest);
  if (not_sent) return "not sent: " + outcome.error().message + come_back + reason;
  std::string line(verb(history.stop_reason));
  line += " " + effort_text(outcome) + " in " + duration_text(history.elapsed);
  // The line already says that the call was canceled, so the result "canceled" would add nothing.
  const bool only_canceled = count == 1 && history.attempts[0].error == Errc::Canceled;
  if (count > 0 && !only_canceled) {
    line += ": " + results_text(history.attempts);
  } else if (count == 0 && outcome) {  // a middleware's own response
    line += ": " + std::to_string(outcome->status);
  }
  // For this reason, the detail only repeats the number of attempts.
  const bool detail_is_known = history.stop_reason == Reason::AttemptsExhausted;
  if (!history.detail.empty() && !detail_is_known) line += "; " + history.detail;
  if (count > 0 && history.last()->ambiguous)
    line += "; the server may have executed an earlier attempt";
  if (!history.polled.empty()) line += "; polled " + history.polled.back().url;
  const bool reason_is_known = was_canceled || history.stop_reason == Reason::Success;
  const auto fallback = outcome && outcome->from_fallback ? "; a fallback was used" : "";
  return line + come_back + (reason_is_known ? "" : reason) + fallback;
}

// Writes the report of a call: its request, its outcome, the limits that it met, and its attempts.
// Writes only the members: the caller begins the JSON object and ends it. Members without a value
// are null.
void detail::write_report(JsonWriter& json, const Request& request, const Outcome& outcome) {
  const auto& history = history_of(outcome);
  const auto& url = request.parsed_url();
  json.member("url", url ? url->to_string() : request.url());
  json.member("method", request.method());
  write_policy(json, history);
  write_outcome(json, outcome);
  json.member("stop_reason", to_string(history.stop_reason));
  if (outcome && outcome->from_fallback) json.member("fallback", true);
  add_or_null(json, "retry_at", history.retry_at);
  write_ms(json.key("elapsed_ms"), history.elapsed);
  write_circuit(json, history);
  write_limits(json, history);
  // A body is in the response or, if the request had a sink, was delivered to it.
  json.member("bytes",
              outcome ? std::max<std::uint64_t>(outcome->body.size(), outcome->delivered) : 0);
  json.key("http_version");
  outcome ? json.value(outcome->http_version) : json.null();
  const auto& attempts = history.attempts;
  json.member("hedges", hedges_in(attempts));
  add_or_null(json, "hedge_refused",
              history.hedge_refused ? to_string(*history.hedge_refused) : "");
  json.key("attempts").begin_array();
  for (const auto& attempt : attempts) write_attempt(json, attempt, history.polled_by(attempt));
  json.end_array();
}

std::string report_json(const Request& request, const Outcome& outcome, bool virtual_time) {
  std::string text;
  JsonWriter json(text, JsonWriter::Layout::Spaced);
  json.begin_object();
  if (virtual_time) json.member("virtual", true);
  detail::write_report(json, request, outcome);
  json.end_object();
  return text;
}

std::string quote_json(std::string_view text) {
  std::string quoted;
  append_json_string(quoted, text);
  return quoted;
}

// Returns the time in UTC with milliseconds: "2024-05-01T12:00:00.250Z".
std::string rfc3339(WallTime time) {
  // In milliseconds, because a whole second before WallTime::min() has no value in nanoseconds.
  const auto milliseconds = std::chrono::floor<std::chrono::milliseconds>(time);
  const auto whole = std::chrono::floor<std::chrono::seconds>(milliseconds);
  const std::time_t stamp = whole.time_since_epoch().count();
  std::tm parts{};
  ::gmtime_r(&stamp, &parts);
  std::array<char, 32> text{};
  const auto size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  const auto rest = milliseconds - whole;
  std::snprintf(text.data() + size, text.size() - size, ".%03dZ", static_cast<int>(rest.count()));
  return text.data();
}

}  // namespace httpretry
