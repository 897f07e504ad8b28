#include <httpretry/http/response.hpp>

#include "lib/core/base/text.hpp"

#include <cstdio>
#include <cstdlib>
#include <ostream>

namespace httpretry {
std::string_view to_string(Sent sent) {
  return enum_word<Sent::Answered>(sent, {"never", "maybe", "answered"});
}

std::string_view to_string(Class cls) {
  return enum_word<Class::Permanent>(
      cls, {"success", "pending", "throttle", "transient", "transport", "permanent"});
}

std::string_view to_string(Reason reason) {
  return enum_word<Reason::Canceled>(
      reason,
      {"success", "not_retryable", "unsafe_to_repeat", "not_replayable", "attempts_exhausted",
       "elapsed_exhausted", "server_delay_too_long", "budget_exhausted", "circuit_open",
       "rate_limited", "queue_full", "local_shortage", "canceled"});
}

std::string_view to_string(HedgeRefused why) {
  return enum_word<HedgeRefused::RetryBudget>(
      why, {"method", "unsafe_to_repeat", "not_replayable", "attempts", "deadline", "throttled",
            "circuit", "busy", "warming", "over_range", "hedge_budget", "retry_budget"});
}

std::string_view to_string(Errc code) {
  return enum_word<Errc::Status>(
      code, {"invalid_request", "resolve", "connect", "tls", "timeout", "send", "receive",
             "protocol", "too_large", "canceled", "paused", "circuit_open", "rate_limited",
             "queue_full", "local_shortage", "internal", "status"});
}

std::string_view to_string(Circuit circuit) {
  return enum_word<Circuit::HalfOpen>(circuit, {"closed", "open", "half_open"});
}

std::string_view to_string(QueuedBy by) {
  return enum_word<QueuedBy::SharedState>(
      by, {"", "pause", "ramp", "circuit", "rate", "concurrency", "max_in_flight", "shared_state"});
}

std::ostream& operator<<(std::ostream& out, Circuit circuit) { return out << to_string(circuit); }
std::ostream& operator<<(std::ostream& out, QueuedBy by) { return out << to_string(by); }
std::ostream& operator<<(std::ostream& out, Sent sent) { return out << to_string(sent); }
std::ostream& operator<<(std::ostream& out, Class cls) { return out << to_string(cls); }
std::ostream& operator<<(std::ostream& out, Reason reason) { return out << to_string(reason); }
std::ostream& operator<<(std::ostream& out, HedgeRefused why) { return out << to_string(why); }
std::ostream& operator<<(std::ostream& out, Errc code) { return out << to_string(code); }

Error::Error(Errc errc, std::string text) : code(errc), message(std::move(text)) {
  if (message.empty()) message = to_string(code);
}

Failure::Failure(Error error) : error_(std::make_shared<const Error>(std::move(error))) {}
const char* Failure::what() const noexcept { return error_->message.c_str(); }

Response::Response(int code, std::string text) : status(code), body(std::move(text)) {}

bool succeeded(const Outcome& outcome) {
  if (!outcome) return false;
  const auto& history = outcome->history;
  if (history.attempts.empty() || outcome->from_fallback) return outcome->status < 400;
  return history.stop_reason == Reason::Success;
}

bool timed_out(const Outcome& outcome) {
  return outcome ? outcome->history.stop_reason == Reason::ElapsedExhausted
                 : outcome.error().is_timeout();
}

// Returns the response of a successful call. Throws Failure for an error or any other response.
Response require_success(Outcome outcome) {
  if (succeeded(outcome) || !outcome) return std::move(outcome).value();
  Error error(Errc::Status, "the response is not a success: status " +
                                std::to_string(outcome->status) + ", " +
                                std::string(to_string(outcome->history.stop_reason)));
  error.status = outcome->status;
  error.headers = std::move(outcome->headers);
  error.exchange = outcome->exchange;
  error.history = std::move(outcome->history);
  throw Failure(std::move(error));
}

void detail::misuse(const char* what) noexcept {
  std::fprintf(stderr, "httpretry: %s\n", what);
  std::abort();
}

void detail::no_value(const Error* error) noexcept {
  if (error == nullptr) misuse("a Result was used after it was moved from");
  std::fprintf(stderr,
               "httpretry: a Result without a value was read with * or ->; test it first, or use "
               "value(), which throws; its error is: %s\n",
               error->message.c_str());
  std::abort();
}

void detail::no_error() noexcept { misuse("error() was called on a Result that has no error"); }

}  // namespace httpretry
