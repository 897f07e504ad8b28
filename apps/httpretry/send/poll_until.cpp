#include "send/poll_until.hpp"

#include "cli/args.hpp"

#include <array>
#include <charconv>
#include <cstdio>

namespace httpretry::cli {
namespace {

UsageError bad(const std::string& text) {
  return UsageError("option --until: \"" + text + "\" is not status=CODE or json:/POINTER=VALUE");
}

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

template <class Number>
std::optional<Number> number_in(const std::string& text) {
  Number number{};
  const auto end = text.data() + text.size();
  const auto [stopped, failure] = std::from_chars(text.data(), end, number);
  return failure == std::errc() && stopped == end ? std::optional(number) : std::nullopt;
}

// 1, 1.0 and 1e0 are equal. Integers are compared exactly, even if they are too large for a double.
bool is_number(const JsonValue& found, const std::string& wanted) {
  const auto as_double = number_in<double>(wanted);
  if (!as_double) return false;
  if (const auto* value = std::get_if<double>(&found)) return *value == *as_double;
  const auto is = [&](auto value) {
    const auto exact = number_in<decltype(value)>(wanted);
    return exact ? value == *exact : static_cast<double>(value) == *as_double;
  };
  if (const auto* value = std::get_if<std::int64_t>(&found)) return is(*value);
  const auto* value = std::get_if<std::uint64_t>(&found);
  return value != nullptr && is(*value);
}

}  // namespace

PollCondition PollCondition::parse(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0) throw bad(text);
  if (std::string_view("!<>~").find(text[equals - 1]) != std::string_view::npos) throw bad(text);
  PollCondition condition;
  condition.value = text.substr(equals + 1);
  if (text.starts_with("status=")) {
    condition.status = static_cast<int>(parse_count(condition.value, "--until"));
    if (condition.status < 100 || condition.status > 599) throw bad(text);
  } else if (text.starts_with("json:/") || text.starts_with("json:=")) {
    condition.pointer = text.substr(5, equals - 5);
  } else {
    throw bad(text);
  }
  return condition;
}

bool PollCondition::applies_to(const Response& response) const {
  const bool redirects = response.status > 300 && response.status < 400 && response.status != 304;
  if (follow_redirects && redirects && response.headers.contains("Location")) return false;
  return status != 0 || response.status < 400;
}

bool PollCondition::met_by(const Response& response) const {
  if (status != 0) return response.status == status;
  const auto found = response.json_at(pointer);
  return found && (as_text(*found) == value || is_number(*found, value));
}

void poll_until(RetryOptions& options, PollCondition condition, std::optional<Duration> interval) {
  if (interval) {
    options.backoff = [every = *interval](const RetryPolicy&, const Classified&, const RetryState&,
                                          double) { return every; };
  }
  options.classify = [condition = std::move(condition)](const RetryPolicy& policy, const Request&,
                                                        const Observed& observed) {
    auto classified = classify(policy, observed);
    const auto& outcome = *observed.outcome;
    if (!outcome || !condition.applies_to(*outcome)) {
      // Poll on after a transient failure: the service may not be up yet.
      const bool transient =
          classified.cls == Class::Transient || classified.cls == Class::Transport;
      if (!transient) return classified;
      classified.cls = Class::Pending;
      classified.once = false;
      return classified;
    }
    const bool done = condition.met_by(*outcome);
    classified.cls = done ? Class::Success : Class::Pending;
    if (!done) {
      classified.rule = Rule();
      classified.rule.kind = Rule::Kind::Pending;
      classified.rule.status = outcome->status;
    }
    return classified;
  };
}

bool condition_met(const Response& response) {
  const auto& attempts = response.history.attempts;
  return !attempts.empty() && attempts.back().cls == Class::Success;
}

bool condition_unmet(const Outcome& outcome) {
  const auto& history = history_of(outcome);
  if (history.attempts.empty()) return false;
  if (!outcome && history.stop_reason != Reason::ElapsedExhausted) return false;
  return history.attempts.back().cls == Class::Pending;
}

}  // namespace httpretry::cli
