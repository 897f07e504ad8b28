// traces(): an observer that makes spans of calls, after OpenTelemetry's semantic conventions.
//
//   const auto exporter = std::make_shared<Otlp>(OtlpOptions::from_environment());
//   const auto tracer = traces(exporter->sink());
//   ClientOptions options;
//   options.attempt_middlewares.push_back(propagate());
//   options.observers = {tracer};
//
// A call is a span of kind INTERNAL. Each of its sends is a child span of kind CLIENT. The child
// has the attributes of the conventions for HTTP clients, and the library's own (`httpretry.class`,
// `httpretry.wait`, …), which say what was decided after the send. A send's span ends when the body
// of its response is complete.
//
// propagate() gives each send its own traceparent, and the tracestate of the call. Baggage goes to
// the origin of the call only. propagate() must be the last middleware, so that each send that an
// earlier middleware makes (a retry, a hedge, a request for a token) gets its own traceparent.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/chain/middleware.hpp>
#include <httpretry/chain/observer.hpp>
#include <httpretry/http/url.hpp>
#include <httpretry/telemetry/trace_context.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace httpretry {

// A named value of a span or of an event, as OpenTelemetry defines it.
struct HTTPRETRY_API SpanAttribute {
  // The types that a value may have.
  using Value = std::variant<std::string, std::int64_t, double, bool>;
  std::string_view key;  // static text
  Value value;
};

// Something that happened at one moment of a span.
struct HTTPRETRY_API SpanEvent {
  std::string_view name;  // static text
  WallTime at{};
  std::vector<SpanAttribute> attributes;
};

// A span that has ended. It stores plain facts; `attributes` turns them into exported values later,
// off the thread that drives the call.
struct HTTPRETRY_API Span {
  enum class Kind : std::uint8_t { Internal = 1, Client = 3 };  // numbered as in OTLP
  // The status of a span, numbered as in OTLP.
  enum class Status : std::uint8_t { Unset = 0, Error = 2 };
  Span() = default;

  Kind kind = Kind::Client;
  TraceId trace;
  std::uint64_t id = 0;      // of the span
  std::uint64_t parent = 0;  // 0: none
  std::uint8_t flags = 0;    // as in traceparent
  std::string state;         // as in tracestate
  WallTime start{};
  WallTime end{};

  std::string method;
  bool known_method = true;  // false: an extension, shown as _OTHER
  std::optional<Url> url;
  bool hide_query = false;                       // TracesOptions::hide_query
  std::shared_ptr<const ResolvedPolicy> policy;  // nullptr: no attempt had one
  int status = 0;                                // of HTTP; 0: no response
  std::optional<Errc> error;
  std::vector<SpanEvent> events;

  // Only for a send.
  int resend_count = 0;  // earlier sends of the call: retries, redirects, authentication
  int attempt = 0;       // 0: without the retry middleware
  std::string http_version;
  Exchange exchange;
  // The decision after the send. `judged` is false if there was no decision, or if another send of
  // the same attempt followed.
  bool judged = false;
  Class cls = Class::Success;
  std::string rule;
  std::optional<Duration> wait;
  std::optional<Duration> backoff;
  std::optional<Duration> server_delay;
  std::optional<std::int64_t> budget_left;
  int hedge_of = 0;   // Hedge::of; 0: not a hedge
  bool lost = false;  // the response of another send was used

  // Only for a call.
  int attempts = 0;
  Reason stop_reason = Reason::Success;
  bool from_fallback = false;  // the middleware `fallback` made the response

  // Returns "httpretry.call" for a call. Returns "GET" for a send, or "GET /items/{id}" if the path
  // of the endpoint is a pattern.
  [[nodiscard]] std::string name() const;
  // Returns Error for 4xx, 5xx and errors, except cancellation. A call has Error unless its
  // stop_reason is Success or Canceled.
  [[nodiscard]] Status outcome() const;
  // Returns the attributes of the conventions and the library's own.
  [[nodiscard]] std::vector<SpanAttribute> attributes() const;
};

// A span that exporters share.
using SpanPtr = std::shared_ptr<const Span>;

// The options of traces().
struct HTTPRETRY_API TracesOptions {
  TracesOptions() = default;

  // Receives each span that has ended, on the thread that drives the call. It must be quick and
  // must not throw. Required.
  std::function<void(SpanPtr)> sink;

  // The share of calls that is sampled, from 0 (none) to 1 (all). A request that brings a trace is
  // sampled if its parent was, unless `parent_based` is false.
  double sample_ratio = 1;
  bool parent_based = true;

  // Redacts all query values in url.full, instead of only those that may be secret.
  bool hide_query = false;

  // The methods that spans show; all others are `_OTHER`. Empty: those of RFC 9110, PATCH and
  // QUERY.
  std::vector<std::string> known_methods;
};

// Returns an observer that makes spans. A client needs only one: a second one ignores the calls
// that the first one traces. Throws std::invalid_argument without a sink, or if the ratio is not
// between 0 and 1.
[[nodiscard]] HTTPRETRY_API std::shared_ptr<Observer> traces(TracesOptions options);
[[nodiscard]] HTTPRETRY_API std::shared_ptr<Observer> traces(std::function<void(SpanPtr)> sink);

// Returns a middleware that sends the trace context of the call with each request. Without
// traces(), it sends the context that the request brought.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr propagate();

// Returns the URL as spans show it. User and password are REDACTED, and so is the value of each
// query item whose name suggests a secret (`tells_secret`), such as the signatures of AWS, Azure
// and Google.
[[nodiscard]] HTTPRETRY_API std::string redacted(const Url& url);

}  // namespace httpretry
