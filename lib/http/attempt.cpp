#include <httpretry/http/attempt.hpp>
#include <httpretry/http/result.hpp>

namespace httpretry {

std::string_view to_string(Sent sent) {
  switch (sent) {
    case Sent::Never: return "never";
    case Sent::Maybe: return "maybe";
    case Sent::Answered: return "answered";
  }
  return "?";
}

std::string_view to_string(Class cls) {
  switch (cls) {
    case Class::Success: return "success";
    case Class::Pending: return "pending";
    case Class::Throttle: return "throttle";
    case Class::Transient: return "transient";
    case Class::Transport: return "transport";
    case Class::Permanent: return "permanent";
  }
  return "?";
}

std::string_view to_string(Reason reason) {
  switch (reason) {
    case Reason::Success: return "success";
    case Reason::NotRetryable: return "not_retryable";
    case Reason::UnsafeToRepeat: return "unsafe_to_repeat";
    case Reason::NotReplayable: return "not_replayable";
    case Reason::AttemptsExhausted: return "attempts_exhausted";
    case Reason::ElapsedExhausted: return "elapsed_exhausted";
    case Reason::ServerDelayTooLong: return "server_delay_too_long";
    case Reason::BudgetExhausted: return "budget_exhausted";
    case Reason::CircuitOpen: return "circuit_open";
    case Reason::Canceled: return "canceled";
  }
  return "?";
}

std::string_view to_string(Errc code) {
  switch (code) {
    case Errc::InvalidRequest: return "invalid_request";
    case Errc::Resolve: return "resolve";
    case Errc::Connect: return "connect";
    case Errc::Tls: return "tls";
    case Errc::Timeout: return "timeout";
    case Errc::Send: return "send";
    case Errc::Receive: return "receive";
    case Errc::Protocol: return "protocol";
    case Errc::TooLarge: return "too_large";
    case Errc::Canceled: return "canceled";
    case Errc::CircuitOpen: return "circuit_open";
    case Errc::Internal: return "internal";
  }
  return "?";
}

}  // namespace httpretry
