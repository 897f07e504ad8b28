#include "send/poll_until.hpp"

#include "cli/args.hpp"
#include "lib/core/base/text.hpp"

#include <array>
#include <charconv>
#include <cstdio>

namespace httpretry::cli {
namespace {

UsageError bad(const std::string& option, const std::string& text) {
  return UsageError("option " + option + ": \"" + text +
                    "\" is not a condition like status=200, status=2xx,304, status!=503, "
                    "json:/state=DONE or json:/state!=RUNNING");
}

// Returns a scalar of a JSON body as text: a string without quotes, a number in up to 15 digits.
std::string as_text(const JsonValue& value) {
  struct Visitor {
    std::string operator()(std::nullptr_t) const { return "null"; }
    std::string operator()(bool truth) const { return truth ? "true" : "false"; }
    std::string operator()(std::int64_t number) const { return std::to_string(number); }
    std::string operator()(std::uint64_t number) const { return std::to_string(number); }
    std::string operator()(double number) const {
      std::array<char, 32> text{};
      std::snprintf(text.data(), text.size(), "%.15g", number);
      return text.data();
    }
    std::string operator()(const std::string& text) const { return text; }
  };
  return std::visit(Visitor(), value);
}

// Parses all of `text`. Returns nullopt if it is not a number. (to_number parses only integers.)
std::optional<double> double_in(const std::string& text) {
  double number = 0;
  const auto end = text.data() + text.size();
  const auto [stopped, failure] = std::from_chars(text.data(), end, number);
  return failure == std::errc() && stopped == end ? std::optional(number) : std::nullopt;
}

// Compares numbers: 1, 1.0 and 1e0 are equal. Integers are compared exactly, even if they are too
// large for a double.
bool is_number(const JsonValue& found, const std::string& wanted) {
  const auto as_double = double_in(wanted);
  if (!as_double) return false;
  if (const auto* value = std::get_if<double>(&found)) return *value == *as_double;
  const auto equals_wanted = [&](auto value) {
    const auto exact = to_number<decltype(value)>(wanted);
    return exact ? value == *exact : static_cast<double>(value) == *as_double;
  };
  if (const auto* value = std::get_if<std::int64_t>(&found)) return equals_wanted(*value);
  const auto* value = std::get_if<std::uint64_t>(&found);
  return value != nullptr && equals_wanted(*value);
}

// Parses a list of statuses such as "200", "2xx" (200 to 299) or "200,5xx". Returns an empty set if
// the list is malformed, or has a status outside 100 to 599.
StatusSet statuses_in(std::string_view list) {
  StatusSet statuses;
  for (bool has_more = true; has_more;) {
    const auto comma = list.find(',');
    const auto item = list.substr(0, comma);
    const bool is_class = item.size() == 3 && item.ends_with("xx");  // "2xx": 200 to 299
    const auto number = to_number<int>(is_class ? item.substr(0, 1) : item);
    if (!number) return {};
    const int first = *number * (is_class ? 100 : 1);
    if (first < 100 || first > 599) return {};
    statuses.add(first, is_class ? first + 99 : first);
    has_more = comma != std::string_view::npos;
    list.remove_prefix(has_more ? comma + 1 : 0);
  }
  return statuses;
}

// Classifies an outcome while `retry` polls. In the order of the branches: a response that meets
// conditions.fail is permanent, so the call fails. If conditions.until does not apply to the
// outcome, a temporary failure is pending, and any other outcome keeps the class that the policy
// gives it. A response that meets conditions.until is a success. Any other is pending, so the
// request is sent again.
Classified classify_poll(const PollConditions& conditions, const RetryPolicy& policy,
                         const Observed& observed) {
  auto classified = classify(policy, observed);
  const auto& outcome = *observed.outcome;
  // No condition applies to an error, and a "json:" condition does not apply to a status of 400 or
  // more, for example.
  const bool until_applies = outcome && conditions.until.applies_to(*outcome);
  const auto& fail = conditions.fail;
  const bool meets_fail =
      outcome && fail && fail->applies_to(*outcome) && fail->is_met_by(*outcome);
  if (meets_fail) {
    classified.cls = Class::Permanent;
    classified.stop = Reason::NotRetryable;
  } else if (!until_applies) {
    // After a temporary failure, polling continues, because the service may not be up yet. A
    // throttle keeps its class, so that the policy's waits and limits for throttles apply.
    const bool is_temporary =
        classified.cls == Class::Transient || classified.cls == Class::Transport;
    if (!is_temporary) return classified;
    classified.cls = Class::Pending;
    classified.once = false;  // `once` would end the call when such a failure comes a second time
  } else if (conditions.until.is_met_by(*outcome)) {
    classified.cls = Class::Success;
  } else {
    classified.cls = Class::Pending;
    // Reports show `rule` as the reason for the class. Here that is the condition, not the policy's
    // rule for the status.
    classified.rule = Rule();
    classified.rule.kind = Rule::Kind::Pending;
    classified.rule.status = outcome->status;
  }
  return classified;
}

}  // namespace

// Parses the value of --until or --until-fail: "status=200", "status!=2xx,304", "json:/state=DONE"
// or "json:=DONE", for example. The text after "json:" is a JSON pointer, which is "" for the whole
// body. Throws UsageError with `option`, the name of the flag, in its message.
PollCondition PollCondition::parse(const std::string& text, const std::string& option,
                                   bool follow_redirects) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0) throw bad(option, text);
  PollCondition condition;
  condition.follow_redirects = follow_redirects;
  condition.negated = text[equals - 1] == '!';  // "!="
  constexpr std::string_view kJson = "json:";
  const auto subject = text.substr(0, equals - (condition.negated ? 1 : 0));
  condition.value = text.substr(equals + 1);
  if (subject == "status") {
    condition.statuses = statuses_in(condition.value);
    if (condition.statuses.empty()) throw bad(option, text);
  } else if (subject.starts_with("json:/") || subject == kJson) {
    condition.pointer = subject.substr(kJson.size());
    // The pointer would end in "<" if the user wrote "<=". That, ">=" and "~=" are not supported.
    if (subject.find_last_of("<>~") == subject.size() - 1) throw bad(option, text);
  } else {
    throw bad(option, text);
  }
  return condition;
}

bool PollCondition::applies_to(const Response& response) const {
  const bool redirects = response.status > 300 && response.status < 400 && response.status != 304;
  if (follow_redirects && redirects && response.headers.contains("Location")) return false;
  return !statuses.empty() || response.status < 400;
}

bool PollCondition::is_met_by(const Response& response) const {
  if (!statuses.empty()) return statuses.contains(response.status) != negated;
  const auto found = response.json_at(pointer);
  return found && (as_text(*found) == value || is_number(*found, value)) != negated;
}

// Makes the middleware `retry` poll: it sends a request until its response meets a condition. Every
// wait takes `interval` or, if that is empty, as long as the policy says.
void poll_until(RetryOptions& options, PollConditions conditions,
                std::optional<Duration> interval) {
  if (interval) {
    options.backoff = [every = *interval](const RetryPolicy&, const Classified&, const RetryState&,
                                          double) { return every; };
  }
  options.classify = [conditions = std::move(conditions)](const RetryPolicy& policy, const Request&,
                                                          const Observed& observed) {
    return classify_poll(conditions, policy, observed);
  };
}

bool ended_pending(const Outcome& outcome) {
  const auto& history = history_of(outcome);
  if (history.attempts.empty()) return false;
  if (!outcome && history.stop_reason != Reason::ElapsedExhausted) return false;
  return history.last()->cls == Class::Pending;
}

}  // namespace httpretry::cli
