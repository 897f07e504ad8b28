// The history of a call: its attempts, and why it ended.
//
// The words of these enums are the same everywhere: in the log, in the JSON report, in `httpretry
// plan` and in the documentation. `to_string` gives them as they are printed.
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

// Whether the server may have seen the request. Counted by the transport, never guessed from an
// error code.
enum class Sent : std::uint8_t {
  Never,     // no byte of it was sent: a retry is safe for every method
  Maybe,     // it was sent, and no final status was received
  Answered,  // a final status was received
};

// What an outcome means for a retry.
enum class Class : std::uint8_t {
  Success,
  Pending,    // a response that means "not yet"
  Throttle,   // the server asks for fewer requests; waits follow the throttle curve
  Transient,  // the server failed for a reason that passes
  Transport,  // there was no response
  Permanent,  // a retry would give the same
};

// Why a call ended.
enum class Reason : std::uint8_t {
  Success,
  NotRetryable,
  UnsafeToRepeat,  // the server may have executed it, and executing it twice may do harm
  NotReplayable,   // the body cannot be read again, or the sink has part of the response
  AttemptsExhausted,
  ElapsedExhausted,
  ServerDelayTooLong,  // the server asked for a longer wait than the limits allow
  BudgetExhausted,
  CircuitOpen,
  RateLimited,    // the wait for a rate of ours would have been too long
  QueueFull,      // too many sends wait for a slot already, or this one has waited too long
  LocalShortage,  // this process lacks descriptors, memory, threads or ports
  Canceled,
};

// Of a circuit breaker.
enum class Circuit : std::uint8_t {
  Closed,    // all sends go out
  Open,      // none does, until a time
  HalfOpen,  // a few go out to see whether the server is back
};

// What a send had to wait for before it went out.
enum class QueuedBy : std::uint8_t {
  Nothing,
  Pause,        // a server asked for it
  Ramp,         // after a pause not all go out at once
  Circuit,      // a circuit breaker with `when_open: wait`
  Rate,         // GuardPolicy::rate
  Concurrency,  // GuardPolicy::concurrency
  MaxInFlight,  // ClientOptions::max_in_flight
  SharedState,  // a reply of the place where ClientOptions::shared_state keeps the limits
};

// What kept a send from being hedged: from a second send of the same request while it ran. In the
// order in which it is asked.
enum class HedgeRefused : std::uint8_t {
  Method,          // the method is not in hedge.methods
  UnsafeToRepeat,  // doing it twice may do harm
  NotReplayable,   // the body cannot be read twice, or the sink has part of the response
  Attempts,        // max_attempts sends were made
  Deadline,        // there is less time left than half of the responses take
  Throttled,       // the server asks for fewer requests
  Circuit,         // the circuit is not closed
  Busy,            // it would have to wait for a slot or a token
  Warming,         // too few responses are known
  OverRange,       // hedge.after is a time above hedge.max
  HedgeBudget,
  RetryBudget,
};

enum class Errc : std::uint8_t;
struct ResolvedPolicy;

[[nodiscard]] HTTPRETRY_API std::string_view to_string(Sent sent);
[[nodiscard]] HTTPRETRY_API std::string_view to_string(Class cls);
[[nodiscard]] HTTPRETRY_API std::string_view to_string(Reason reason);
[[nodiscard]] HTTPRETRY_API std::string_view to_string(HedgeRefused why);
HTTPRETRY_API std::ostream& operator<<(std::ostream& out, Sent sent);
HTTPRETRY_API std::ostream& operator<<(std::ostream& out, Class cls);
HTTPRETRY_API std::ostream& operator<<(std::ostream& out, Reason reason);
HTTPRETRY_API std::ostream& operator<<(std::ostream& out, HedgeRefused why);
// "closed", "open", "half_open"
[[nodiscard]] HTTPRETRY_API std::string_view to_string(Circuit circuit);
// "pause", "ramp", "circuit", "rate", "concurrency", "max_in_flight",
// "shared_state"; empty for Nothing.
[[nodiscard]] HTTPRETRY_API std::string_view to_string(QueuedBy by);
HTTPRETRY_API std::ostream& operator<<(std::ostream& out, Circuit circuit);
HTTPRETRY_API std::ostream& operator<<(std::ostream& out, QueuedBy by);

// When each step of one exchange was done, counted from the start of the exchange. Zero if the step
// did not happen (a reused connection has no connect).
struct Timings {
  // Before the start: waiting for what GuardPolicy and ClientOptions::max_in_flight allow.
  Duration queued{};
  Duration resolved{};
  Duration connected{};
  Duration secured{};     // by TLS
  Duration sent{};        // sending the request began
  Duration first_byte{};  // of the final response
  Duration total{};
};

// The other end of a connection: a server, or the proxy on the way to it.
struct Peer {
  std::array<char, 46> text{};  // "192.0.2.1", "2001:db8::1"; ends with NUL
  std::uint16_t port = 0;

  // Empty if it is not known.
  [[nodiscard]] std::string_view address() const { return text.data(); }
};

// One request and its response at the transport.
struct Exchange {
  Sent sent = Sent::Never;
  int wire_sends = 0;  // more than 1 after rounds of authentication, or a 417 to an Expect
  bool reused_connection = false;
  // The connection was reused and failed before any response: the server may only have closed it
  // because it was idle.
  bool stale_connection = false;
  QueuedBy queued_by = QueuedBy::Nothing;  // what Timings::queued was spent on last
  // The server did not process it (HTTP/2 REFUSED_STREAM, or a GOAWAY names an earlier stream).
  bool refused = false;
  // Bytes of the bodies on the wire: compressed if they are, and of the last send if there were
  // several.
  std::uint64_t body_sent = 0;
  std::uint64_t body_received = 0;
  Timings timings;
  // Only where the client has an observer; an Attempt does not keep it.
  Peer peer;
};

// Of a send that was made while another of the same attempt had no response yet.
struct HTTPRETRY_API Hedge {
  Hedge() = default;

  int of = 0;        // Attempt::number of the first of these sends
  Duration after{};  // how long that had been under way
  std::string from;  // where this time comes from: "fixed", "p95 of 1043 samples"
};

// Whether an attempt is one of several sends of which one response was used.
enum class Race : std::uint8_t { None, Won, Lost };

// One attempt to send a request, and what was decided after it. If it failed before anything was
// sent (no connection, an unreadable body), `sent` is Never.
struct HTTPRETRY_API Attempt {
  Attempt() = default;

  int number = 1;             // from 1, over the whole call with its redirects
  int status = 0;             // 0: no final status
  Duration start{};           // since the call began
  Duration duration{};        // what it was queued for included
  std::optional<Errc> error;  // set if the attempt ended in an error
  Class cls = Class::Success;
  Sent sent = Sent::Never;
  int curl_code = 0;  // if there is an error: Error::curl_code and Error::message
  std::string error_message;
  // The rule that gave the class: "status 503", "error_codes: aws SlowDown", "no middleware retry".
  std::string rule;
  int wire_sends = 0;
  QueuedBy queued_by = QueuedBy::Nothing;  // Exchange::queued_by
  // Lost: the response of another send was used. It says nothing about the call.
  Race race = Race::None;
  bool retried = false;  // a retry followed, or the call was canceled while waiting for it
  // A 404, 409 or 412 after an attempt that may have been executed: that attempt may be its cause.
  bool ambiguous = false;

  std::optional<Duration> server_delay;  // the delay that the server asked for
  std::string_view server_delay_source;  // the header or field that asked for it; a literal
  std::optional<Duration> backoff;       // our own delay; set only if a retry followed
  std::optional<Duration> wait;          // the delay that was used; set only if a retry followed
  // Whole tokens left in the budget after the decision; of a concurrent one, how many more retries
  // and hedges may be under way. Empty without a budget.
  std::optional<std::int64_t> budget_left;
  // The policy that judged the attempt, with the name of its endpoint (policy_set.hpp). nullptr
  // without retry(), and where the request or the call brought a policy of its own.
  std::shared_ptr<const ResolvedPolicy> policy;
  std::shared_ptr<const Hedge> hedge;  // nullptr if the attempt is not a hedge

  // Returns what the transport reported: when each step was done, the bytes of the bodies, and
  // whether the connection was new. The peer is not kept.
  [[nodiscard]] Exchange exchange() const;
  // Sets `sent`, `wire_sends` and `queued_by`, too.
  void set_exchange(const Exchange& exchange);

 private:
  bool reused_connection_ = false;
  bool stale_connection_ = false;
  bool refused_ = false;
  Timings timings_;
  std::uint64_t body_sent_ = 0;
  std::uint64_t body_received_ = 0;
};

// A URL that a pending response named, and the attempts that polled it.
struct HTTPRETRY_API PolledUrl {
  PolledUrl() = default;

  int first_attempt = 0;  // Attempt::number
  int last_attempt = 0;
  std::string url;  // without query and userinfo
};

// The circuit breaker that a call has asked last, as it was then.
struct HTTPRETRY_API CircuitFacts {
  CircuitFacts() = default;

  std::string key;  // "https://api.example.com", and what else tells it apart
  Circuit state = Circuit::Closed;
  std::uint32_t failed = 0;  // of the sends that its window counts
  std::uint32_t total = 0;
  std::optional<WallTime> until;        // while it is open
  std::optional<double> refused_share;  // of kind Share
};

struct HTTPRETRY_API LimitFacts {
  LimitFacts() = default;

  Duration rate_wait{};          // of all attempts together, for a rate
  std::optional<int> limit;      // of sends at once; empty without a limit
  std::optional<int> in_flight;  // that use it, this one included
  std::optional<WallTime> paused_until;
};

// In History::guards. Each is empty where the policy has no such block.
struct HTTPRETRY_API GuardFacts {
  GuardFacts() = default;

  std::optional<CircuitFacts> circuit;
  std::optional<LimitFacts> limits;
};

// Of a whole call. Every Response and every Error that a Client returns has one.
struct HTTPRETRY_API History {
  History() = default;

  std::vector<Attempt> attempts;
  // The last one that has not lost to another; nullptr if there is none. Those that lost to it may
  // follow it in `attempts`.
  [[nodiscard]] const Attempt* last() const;
  Reason stop_reason = Reason::Success;
  // Why the last hedge was not sent; empty if none was refused.
  std::optional<HedgeRefused> hedge_refused;
  // The URLs that pending responses named (PendingRule::url_from), in the order of their attempts.
  std::vector<PolledUrl> polled;
  // The URL that the attempt polled; nullptr if it sent the request itself.
  [[nodiscard]] const PolledUrl* polled_by(const Attempt& attempt) const;
  // For people: which limit ended the call, and by how much. May be empty.
  std::string detail;
  // The time at which the server asked for a retry, or at which we would send again, if the call
  // ended instead.
  std::optional<WallTime> retry_at;
  Duration elapsed{};  // waits included
  // What holds sends back; nullptr where nothing does.
  std::shared_ptr<const GuardFacts> guards;
};

}  // namespace httpretry
