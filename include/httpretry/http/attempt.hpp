// What is remembered of a call: one Attempt for each try at sending it, and why it ended.
//
// The words here are the same everywhere: in these enums, in the log, in the JSON report, in
// `httpretry plan` and in the documentation. `to_string` gives them as they are printed.
#pragma once

#include <httpretry/export.hpp>
#include <httpretry/http/time.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry {

// Whether the server can have seen the request: counted from what was put on the wire, never
// guessed from an error code.
enum class Sent : std::uint8_t {
  Never,     // not one byte of it: repeating it is safe for every method
  Maybe,     // it went out and no final status came back
  Answered,  // a final status came back
};

// What an outcome means for a retry.
enum class Class : std::uint8_t {
  Success,
  Pending,    // an answer that means "not yet": ask again
  Throttle,   // the server asks for less; waits follow the throttle curve
  Transient,  // the server failed in a way that passes
  Transport,  // no answer came
  Permanent,  // asking again would give the same
};

// Why a call ended.
enum class Reason : std::uint8_t {
  Success,
  NotRetryable,
  UnsafeToRepeat,  // the server may have done it already, and doing it twice may do harm
  NotReplayable,   // the body cannot be read again, or part of the answer was handed out
  AttemptsExhausted,
  ElapsedExhausted,
  ServerDelayTooLong,  // the server asked for a longer wait than the limits allow
  BudgetExhausted,
  CircuitOpen,
  Canceled,
};

enum class Errc : std::uint8_t;

[[nodiscard]] HTTPRETRY_API std::string_view to_string(Sent sent);
[[nodiscard]] HTTPRETRY_API std::string_view to_string(Class cls);
[[nodiscard]] HTTPRETRY_API std::string_view to_string(Reason reason);

// Where the time of one exchange went. Each is counted from the start of the exchange; zero where
// the step did not happen (a reused connection has no connect).
struct Timings {
  Duration queued{};  // before that: waiting for admission (ClientOptions::max_in_flight)
  Duration resolved{};
  Duration connected{};
  Duration secured{};     // TLS done
  Duration sent{};        // about to send the request
  Duration first_byte{};  // of the final answer
  Duration total{};
};

// The facts of one exchange, as the transport counted them.
struct Exchange {
  Sent sent = Sent::Never;
  int wire_sends = 0;  // 2 and more where authentication took rounds
  bool reused_connection = false;
  // The connection was reused and died before any answer: the server may merely have closed it for
  // being idle.
  bool stale_connection = false;
  // The server turned the request away before it looked at it (HTTP/2 REFUSED_STREAM).
  bool refused = false;
  Timings timings;
};

// One try at sending a request, and what was decided after it. Where it failed before anything was
// sent (no connection, no body to be read) `sent` is Never.
struct HTTPRETRY_API Attempt {
  Attempt() = default;

  int number = 1;    // counts through the whole call, redirects included
  Duration start{};  // since the call began
  Duration duration{};
  Duration queued{};          // of that, waiting for admission
  int status = 0;             // 0: no final status came
  std::optional<Errc> error;  // set where the attempt ended in an error
  int curl_code = 0;          // Error::curl_code and Error::message then
  std::string error_message;
  Class cls = Class::Success;
  // What decided the class: "status 503", "error_codes: aws SlowDown", "no retry stage".
  std::string rule;
  Sent sent = Sent::Never;
  int wire_sends = 0;
  std::optional<Duration> server_delay;  // what the server asked for
  std::string_view server_delay_source;  // the header or field that asked: static text
  std::optional<Duration> backoff;       // our own wait; set only where a retry followed
  std::optional<Duration> wait;          // the wait that was taken; set only where a retry followed
  // What the budget held after the decision, in whole tokens; empty without a budget.
  std::optional<std::int64_t> budget_left;
  bool retried = false;  // another attempt followed, or would have but for the end of the wait
  // A 404, 409 or 412 after an attempt that may have been executed: our own first write may be why.
  bool ambiguous = false;
};

// The whole of a call. Every Response and every Error that a Client hands out carries one.
struct HTTPRETRY_API History {
  History() = default;

  std::vector<Attempt> attempts;
  Reason stop_reason = Reason::Success;
  // More about that, for people: which limit ended the call, and by how much. May be empty.
  std::string detail;
  // When the server said to come back, where it said so and we did not wait.
  std::optional<WallTime> retry_at;
  Duration elapsed{};  // of the whole call, waits included
};

}  // namespace httpretry
