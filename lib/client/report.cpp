#include <httpretry/client/report.hpp>
#include <httpretry/policy/policy_set.hpp>

#include "lib/http/text.hpp"
#include "lib/json/json.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>

namespace httpretry {
namespace {

using Json = OrderedJson;

double ms(Duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

Json or_null(std::string_view text) { return text.empty() ? Json() : Json(text); }

Json or_null(const std::optional<Duration>& time) { return time ? Json(ms(*time)) : Json(); }

Json error_json(Errc code, int curl_code, const std::string& message, Sent sent) {
  return {{"kind", to_string(code)},
          {"curl_code", curl_code},
          {"message", message},
          {"maybe_sent", sent != Sent::Never}};
}

Json attempt_json(const Attempt& attempt, const PolledUrl* polled) {
  Json json;
  json["number"] = attempt.number;
  if (polled != nullptr) json["polled_url"] = polled->url;
  json["start_ms"] = ms(attempt.start);
  json["duration_ms"] = ms(attempt.duration);
  json["status"] = attempt.status == 0 ? Json() : Json(attempt.status);
  json["error"] = attempt.error ? error_json(*attempt.error, attempt.curl_code,
                                             attempt.error_message, attempt.sent)
                                : Json();
  json["class"] = to_string(attempt.cls);
  json["rule"] = attempt.rule;
  json["sent"] = to_string(attempt.sent);
  json["wire_sends"] = attempt.wire_sends;
  json["queued_ms"] = ms(attempt.exchange().timings.queued);
  json["queued_by"] = or_null(to_string(attempt.queued_by));
  json["server_delay_ms"] = or_null(attempt.server_delay);
  json["server_delay_source"] = or_null(attempt.server_delay_source);
  json["backoff_ms"] = or_null(attempt.backoff);
  json["wait_ms"] = or_null(attempt.wait);
  json["budget_left"] = attempt.budget_left ? Json(*attempt.budget_left) : Json();
  json["decision"] = attempt.retried ? "retry" : "stop";
  if (attempt.ambiguous) json["ambiguous"] = true;
  return json;
}

Json policy_json(const History& history) {
  static const ResolvedPolicy none;
  const bool known = !history.attempts.empty() && history.attempts.front().policy;
  const auto& policy = known ? *history.attempts.front().policy : none;
  return {{"endpoint", or_null(policy.endpoint)},
          {"name", or_null(policy.name)},
          {"preset", or_null(policy.preset)},
          {"source", or_null(policy.source)}};
}

Json or_null(const std::optional<WallTime>& time) { return time ? Json(rfc3339(*time)) : Json(); }

Json circuit_json(const History& history) {
  if (!history.guards || !history.guards->circuit) return {};
  const auto& circuit = *history.guards->circuit;
  return {{"key", circuit.key},
          {"state", to_string(circuit.state)},
          {"failed", circuit.failed},
          {"total", circuit.total},
          {"until", or_null(circuit.until)},
          {"p", circuit.refused_share ? Json(*circuit.refused_share) : Json()}};
}

Json limits_json(const History& history) {
  if (!history.guards || !history.guards->limits) return {};
  const auto& limits = *history.guards->limits;
  Json json;
  json["rate_wait_ms"] = ms(limits.rate_wait);
  json["concurrency"] =
      limits.limit ? Json{{"limit", *limits.limit}, {"in_flight", *limits.in_flight}} : Json();
  json["paused_until"] = or_null(limits.paused_until);
  return json;
}

// JSON allows DEL and C1 (C2 80 to C2 9F in UTF-8) in strings, but terminals obey them.
std::string without_controls(const std::string& json) {
  std::string safe;
  safe.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    const auto next = i + 1 < json.size() ? static_cast<unsigned char>(json[i + 1]) : 0U;
    const bool c1 = json[i] == '\xC2' && next >= 0x80 && next < 0xA0;
    if (!c1 && json[i] != '\x7F') {
      safe += json[i];
    } else {
      append_hex(safe += "\\u00", static_cast<unsigned char>(c1 ? next : 0x7F));
      i += c1 ? 1 : 0;
    }
  }
  return safe;
}

void add_outcome(Json& json, const Outcome& outcome) {
  json["outcome"] = outcome ? "response" : "error";
  // A status that came before the connection broke is the attempt's, not the call's.
  json["status"] = outcome ? Json(outcome->status) : Json();
  json["error"] = Json();
  if (outcome) return;
  const auto& error = outcome.error();
  json["error"] = error_json(error.code, error.curl_code, error.message, error.exchange.sent);
}

// "503 each time", "503, 503, timeout", and the last ones where there were many.
std::string what_came(const std::vector<Attempt>& attempts) {
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

std::string_view verb(Reason reason) {
  if (reason == Reason::Success) return "succeeded";
  if (reason == Reason::Canceled) return "was canceled";
  return reason == Reason::NotRetryable ? "failed" : "gave up";
}

}  // namespace

std::string attempt_text(const Attempt& attempt) {
  return attempt.error ? std::string(to_string(*attempt.error)) : std::to_string(attempt.status);
}

std::string describe(const Outcome& outcome) {
  const auto& history = history_of(outcome);
  const auto count = history.attempts.size();
  std::string line(verb(history.stop_reason));
  line += " after " + std::to_string(count) + (count == 1 ? " attempt" : " attempts") + " in " +
          duration_text(history.elapsed);
  if (count > 0) line += ": " + what_came(history.attempts);
  const bool counted = history.stop_reason == Reason::AttemptsExhausted;
  if (!history.detail.empty() && !counted) line += "; " + history.detail;
  if (count > 0 && history.attempts.back().ambiguous) {
    line += "; an earlier attempt may have done it";
  }
  if (!history.polled.empty()) line += "; polled " + history.polled.back().url;
  if (history.retry_at) line += "; come back at " + rfc3339(*history.retry_at);
  if (history.stop_reason == Reason::Success) return line;
  return line + " (" + std::string(to_string(history.stop_reason)) + ")";
}

std::string report_json(const Request& request, const Outcome& outcome, bool virtual_time) {
  const auto& history = history_of(outcome);
  const auto& url = request.parsed_url();
  Json json;
  if (virtual_time) json["virtual"] = true;
  json["url"] = url ? url->to_string() : request.url();
  json["method"] = request.method();
  json["policy"] = policy_json(history);
  add_outcome(json, outcome);
  json["stop_reason"] = to_string(history.stop_reason);
  json["retry_at"] = history.retry_at ? Json(rfc3339(*history.retry_at)) : Json();
  json["elapsed_ms"] = ms(history.elapsed);
  json["circuit"] = circuit_json(history);
  json["limits"] = limits_json(history);
  // A body that a sink took is not in the response any more.
  json["bytes"] = outcome ? std::max<std::uint64_t>(outcome->body.size(), outcome->delivered) : 0;
  json["http_version"] = outcome ? Json(outcome->http_version) : Json();
  json["attempts"] = Json::array();
  for (const auto& attempt : history.attempts) {
    json["attempts"].push_back(attempt_json(attempt, history.polled_by(attempt)));
  }
  return without_controls(json.dump(2, ' ', false, Json::error_handler_t::replace));
}

std::string quote_json(std::string_view text) {
  return without_controls(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string rfc3339(WallTime time) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);
  const std::time_t stamp = whole.time_since_epoch().count();
  std::tm parts{};
  ::gmtime_r(&stamp, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::array<char, 8> fraction{};
  const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(time - whole);
  std::snprintf(fraction.data(), fraction.size(), ".%03d", static_cast<int>(rest.count()));
  return std::string(text.data()) + fraction.data() + "Z";
}

}  // namespace httpretry
