// The history of a call: its attempts, and the reason why it ended.
//
// The words of these enums are the same everywhere: in the log, in the JSON report, in `httpretry
// plan` and in the documentation. `to_string` returns them as printed.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/http/time.hpp>

#include <array>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry {

// Whether the server may have received the request. The transport counts the bytes sent; this is
// never guessed from an error code.
enum class Sent : std::uint8_t {
  Never,     // no byte was sent: a retry is safe for every method
  Maybe,     // at least one byte was sent, and no final status was received
  Answered,  // a final status was received
};

// The meaning of an outcome for a retry.
enum class Class : std::uint8_t {
  Success,    // the response needs no retry
  Pending,    // a response that means "not yet"
  Throttle,   // the server asks for fewer requests; waits follow the throttle curve
  Transient,  // a temporary failure of the server
  Transport,  // there was no response
  Permanent,  // a retry would have the same result
};

// Why a call ended.
enum class Reason : std::uint8_t {
  Success,             // the policy does not retry the response
  NotRetryable,        // a retry would have the same result
  UnsafeToRepeat,      // the server may have executed it, and executing it twice may do harm
  NotReplayable,       // the body cannot be read again, or the sink has part of the response
  AttemptsExhausted,   // max_attempts or pending.max was reached
  ElapsedExhausted,    // the time limits leave no time for a retry
  ServerDelayTooLong,  // the server asked for a longer wait than the limits allow
  BudgetExhausted,     // too many calls to the same place needed retries
  CircuitOpen,         // too many sends failed
  RateLimited,         // the policy's rate would have required too long a wait
  QueueFull,           // too many sends already wait for a slot, or this one has waited too long
  LocalShortage,       // this process lacks descriptors, memory, threads or ports
  Canceled,            // by the caller, or by the end of the client
};

// The state of a circuit breaker.
enum class Circuit : std::uint8_t {
  Closed,    // all sends are allowed
  Open,      // no send is allowed until a certain time
  HalfOpen,  // a few sends are allowed, to test whether the server has recovered
};

// The guard or limit that a send waited for before it was made.
enum class QueuedBy : std::uint8_t {
  Nothing,
  Pause,        // a pause that a server asked for
  Ramp,         // the gradual start after a pause
  Circuit,      // a circuit breaker with `when_open: wait`
  Rate,         // GuardPolicy::rate
  Concurrency,  // GuardPolicy::concurrency
  MaxInFlight,  // ClientOptions::max_in_flight
  SharedState,  // a reply from the store behind ClientOptions::shared_state
};

// The reason why a send was not hedged, that is, why no second send was made while it ran. In the
// order in which the reasons are checked.
enum class HedgeRefused : std::uint8_t {
  Method,          // the method is not in hedge.methods
  UnsafeToRepeat,  // executing it twice may do harm
  NotReplayable,   // the body cannot be read twice, or the sink has part of the response
  Attempts,        // max_attempts sends have been made
  Deadline,        // the time left is shorter than the median response time
  Throttled,       // the server asks for fewer requests
  Circuit,         // the circuit is not closed
  Busy,            // the hedge would have to wait for a slot or a token
  Warming,         // too few responses have been measured
  OverRange,       // hedge.after results in a time above hedge.max
  HedgeBudget,     // HedgePolicy::budget is used up
  RetryBudget,     // the budget for retries is used up
};

enum class Errc : std::uint8_t;
struct ResolvedPolicy;

// Return the words used in reports, such as "maybe", "throttle" and "attempts_exhausted".
[[nodiscard]] HTTPRETRY_API std::string_view to_string(Sent sent);
[[nodiscard]] HTTPRETRY_API std::string_view to_string(Class cls);
[[nodiscard]] HTTPRETRY_API std::string_view to_string(Reason reason);
[[nodiscard]] HTTPRETRY_API std::string_view to_string(HedgeRefused why);
HTTPRETRY_API std::ostream& operator<<(std::ostream& out, Sent sent);
HTTPRETRY_API std::ostream& operator<<(std::ostream& out, Class cls);
HTTPRETRY_API std::ostream& operator<<(std::ostream& out, Reason reason);
HTTPRETRY_API std::ostream& operator<<(std::ostream& out, HedgeRefused why);
// Returns "closed", "open" or "half_open".
[[nodiscard]] HTTPRETRY_API std::string_view to_string(Circuit circuit);
// Returns "pause", "ramp", "circuit", "rate", "concurrency", "max_in_flight" or "shared_state", and
// an empty string for Nothing.
[[nodiscard]] HTTPRETRY_API std::string_view to_string(QueuedBy by);
HTTPRETRY_API std::ostream& operator<<(std::ostream& out, Circuit circuit);
HTTPRETRY_API std::ostream& operator<<(std::ostream& out, QueuedBy by);

// When each step of one exchange was completed, counted from the start of the exchange. Zero for a
// step that did not happen, such as the connect on a reused connection.
struct Timings {
  // The wait before the start, for the limits of GuardPolicy and ClientOptions::max_in_flight.
  Duration queued{};
  Duration resolved{};    // the address of the host was known
  Duration connected{};   // the connection was made
  Duration secured{};     // the TLS handshake was completed
  Duration sent{};        // sending the request began
  Duration first_byte{};  // the first byte of the final response was received
  Duration total{};       // the end of the exchange
};

// The other end of a connection: the server, or the proxy in between.
struct Peer {
  std::array<char, 46> text{};  // "192.0.2.1", "2001:db8::1"; NUL-terminated
  std::uint16_t port = 0;

  // Returns an empty string if the address is unknown.
  [[nodiscard]] std::string_view address() const { return text.data(); }
};

// One request and its response, as the transport carried them out.
struct Exchange {
  Sent sent = Sent::Never;
  // Above 1 after rounds of authentication, a 417 to an Expect, or a 415 to a compressed body.
  int wire_sends = 0;
  bool reused_connection = false;
  // The connection was reused and failed before any response. The server may just have closed it
  // because it was idle.
  bool stale_connection = false;
  QueuedBy queued_by = QueuedBy::Nothing;  // the last thing that Timings::queued was spent on
  // The server did not process the request (HTTP/2 REFUSED_STREAM, or a GOAWAY that names an
  // earlier stream).
  bool refused = false;
  bool retry_requested = false;  // by the function of the middleware retry_if
  // Body bytes on the wire, so compressed if the body is. If there were several sends, only those
  // of the last one.
  std::uint64_t body_sent = 0;
  std::uint64_t body_received = 0;
  Timings timings;
  // Set only if the client has an observer. Not kept in an Attempt.
  Peer peer;
};

// Describes a hedge: a send that was made while another send of the same attempt had no response.
struct HTTPRETRY_API Hedge {
  Hedge() = default;

  int of = 0;        // Attempt::number of the first of these sends
  Duration after{};  // how long that send had been in flight
  std::string from;  // how `after` was determined: "fixed", "p95 of 1043 samples"
};

// Whether an attempt took part in a race of several sends, and whether its response was used.
enum class Race : std::uint8_t { None, Won, Lost };

// One attempt to send a request, and the decision after it. `sent` is Never if the attempt failed
// before anything was sent (no connection, an unreadable body).
struct HTTPRETRY_API Attempt {
  Attempt() = default;

  int number = 1;              // counted from 1 over the whole call, including redirects
  int status = 0;              // 0 if there was no final status
  Duration start{};            // since the start of the call
  Duration duration{};         // including the time in queues
  std::optional<Errc> error;   // set if the attempt ended in an error
  Class cls = Class::Success;  // what the outcome means for a retry
  Sent sent = Sent::Never;
  int curl_code = 0;  // with `error`: Error::curl_code, and Error::message below
  std::string error_message;
  // The rule that determined the class: "status 503", "error_codes: aws SlowDown", "no middleware
  // retry".
  std::string rule;
  int wire_sends = 0;
  QueuedBy queued_by = QueuedBy::Nothing;  // Exchange::queued_by
  // Lost if the response of another send was used. A lost attempt does not affect the outcome of
  // the call.
  Race race = Race::None;
  bool retried = false;  // a retry followed, or the call was canceled during the wait for it
  // `retried` although the server may have executed the request, and executing it twice may do
  // harm. Only with Repeat::Always.
  bool retried_unsafely = false;
  // A 404, 409 or 412 after an attempt that may have been executed, and that may therefore be its
  // cause.
  bool ambiguous = false;

  std::optional<Duration> server_delay;  // the delay that the server asked for
  std::string_view server_delay_source;  // the header or field that asked for it; a string literal
  std::optional<Duration> backoff;       // the library's own delay; set only if a retry followed
  std::optional<Duration> wait;          // the delay that was used; set only if a retry followed
  // Whole tokens left in the budget after the decision. For a concurrent budget, the number of
  // further retries and hedges that may be in flight. Empty without a budget.
  std::optional<std::int64_t> budget_left;
  // The policy that judged the attempt, with the name of its endpoint (policy_set.hpp). nullptr
  // without retry(), or if the request or the call brought its own policy.
  std::shared_ptr<const ResolvedPolicy> policy;
  std::shared_ptr<const Hedge> hedge;  // nullptr if the attempt is not a hedge

  // Returns the transport's data: when each step was completed, the bytes of the bodies, and
  // whether the connection was new. The peer is not included.
  [[nodiscard]] Exchange exchange() const;
  // Sets the data of `exchange`, and with it `sent`, `wire_sends` and `queued_by`.
  void set_exchange(const Exchange& exchange);

 private:
  bool reused_connection_ = false;
  bool stale_connection_ = false;
  bool refused_ = false;
  Timings timings_;
  std::uint64_t body_sent_ = 0;
  std::uint64_t body_received_ = 0;
};

// A URL that a pending response named for polling, and the attempts that polled it.
struct HTTPRETRY_API PolledUrl {
  PolledUrl() = default;

  int first_attempt = 0;  // Attempt::number
  int last_attempt = 0;
  std::string url;  // without query and userinfo
};

// The state of the circuit breaker that the call consulted last, at that time.
struct HTTPRETRY_API CircuitFacts {
  CircuitFacts() = default;

  std::string key;  // "https://api.example.com", plus anything else that distinguishes it
  Circuit state = Circuit::Closed;
  std::uint32_t failed = 0;  // of the sends in its window
  std::uint32_t total = 0;
  std::optional<WallTime> until;        // set while the circuit is open
  std::optional<double> refused_share;  // only for a breaker of kind Share
};

// The rates, concurrency limits and pauses that applied to the call.
struct HTTPRETRY_API LimitFacts {
  LimitFacts() = default;

  Duration rate_wait{};                  // waited for rates, over all attempts
  std::optional<int> limit;              // of concurrent sends; empty without a limit
  std::optional<int> in_flight;          // concurrent sends, including this one
  std::optional<WallTime> paused_until;  // the end of the pause that a server asked for
};

// The facts about guards in History::guards. A member is empty if the policy does not have that
// guard.
struct HTTPRETRY_API GuardFacts {
  GuardFacts() = default;

  std::optional<CircuitFacts> circuit;
  std::optional<LimitFacts> limits;
};

// The history of a whole call. Every Response and every Error that a Client returns has one.
struct HTTPRETRY_API History {
  History() = default;

  std::vector<Attempt> attempts;  // all of them, in the order of their numbers
  // Returns the last attempt that did not lose a race, or nullptr. Attempts that lost to it may
  // follow it in `attempts`.
  [[nodiscard]] const Attempt* last() const;
  Reason stop_reason = Reason::Success;  // why the call ended
  // Why the last refused hedge was not sent; empty if none was refused.
  std::optional<HedgeRefused> hedge_refused;
  // The URLs that pending responses named (PendingRule::url_from), in the order of their attempts.
  std::vector<PolledUrl> polled;
  // Returns the URL that the attempt polled, or nullptr if it sent the request itself.
  [[nodiscard]] const PolledUrl* polled_by(const Attempt& attempt) const;
  // For people: which limit ended the call, and by how much. May be empty.
  std::string detail;
  // When to try again, if the call ended instead of waiting: the time that the server asked for, or
  // that the library would have used.
  std::optional<WallTime> retry_at;
  Duration elapsed{};  // waits included
  // The state of the guards that applied to the call; nullptr if there were none.
  std::shared_ptr<const GuardFacts> guards;
};

}  // namespace httpretry
