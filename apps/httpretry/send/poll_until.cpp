#include "send/until.hpp"

#include "cli/args.hpp"

#include <array>
#include <charconv>
#include <cstdio>

namespace httpretry::cli {
namespace {

UsageError bad(const std::string& text) {
  return UsageError("option --until: \"" + text +
                    "\" is neither status=CODE nor json:/POINTER=VALUE");
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

// 1, 1.0 and 1e0 are one number, however they are spelled; whole ones that no double can tell
// apart are two.
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

Until Until::parse(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0) throw bad(text);
  if (std::string_view("!<>~").find(text[equals - 1]) != std::string_view::npos) throw bad(text);
  Until until;
  until.value = text.substr(equals + 1);
  if (text.starts_with("status=")) {
    until.status = static_cast<int>(parse_count(until.value, "--until"));
    if (until.status < 100 || until.status > 599) throw bad(text);
  } else if (text.starts_with("json:/") || text.starts_with("json:=")) {
    until.pointer = text.substr(5, equals - 5);
  } else {
    throw bad(text);
  }
  return until;
}

bool Until::concerns(const Response& response) const {
  const bool redirects = response.status > 300 && response.status < 400 && response.status != 304;
  if (follows && redirects && response.headers.contains("Location")) return false;
  return status != 0 || response.status < 400;
}

bool Until::holds(const Response& response) const {
  if (status != 0) return response.status == status;
  const auto found = response.json_at(pointer);
  return found && (as_text(*found) == value || is_number(*found, value));
}

void poll_until(RetryOptions& options, Until until, std::optional<Duration> interval) {
  if (interval) {
    options.backoff = [every = *interval](const RetryPolicy&, const Classified&,
                                          const AttemptFacts&, double) { return every; };
  }
  options.classify = [until = std::move(until)](const RetryPolicy& policy, const Request&,
                                                const Observed& observed) {
    auto classified = classify(policy, observed);
    const auto& outcome = *observed.outcome;
    if (!outcome || !until.concerns(*outcome)) {
      // What passes is on the way to the answer, too: a service that is not up yet.
      const bool passes = classified.cls == Class::Transient || classified.cls == Class::Transport;
      if (!passes) return classified;
      classified.cls = Class::Pending;
      classified.once = false;
      return classified;
    }
    const bool done = until.holds(*outcome);
    classified.cls = done ? Class::Success : Class::Pending;
    if (!done) {
      classified.rule = Rule();
      classified.rule.kind = Rule::Kind::Pending;
      classified.rule.status = outcome->status;
    }
    return classified;
  };
}

bool held(const Response& response) {
  const auto& attempts = response.history.attempts;
  return !attempts.empty() && attempts.back().cls == Class::Success;
}

bool never_held(const Outcome& outcome) {
  const auto& history = history_of(outcome);
  if (history.attempts.empty()) return false;
  if (!outcome && history.stop_reason != Reason::ElapsedExhausted) return false;
  return history.attempts.back().cls == Class::Pending;
}

}  // namespace httpretry::cli
