// traces(): spans of calls, as the semantic conventions of OpenTelemetry name them.
//
//   const auto exporter = std::make_shared<Otlp>(OtlpOptions::from_environment());
//   const auto tracer = traces(exporter->sink());
//   ClientOptions options;
//   options.middlewares.push_back(propagate());
//   options.observers = {tracer};
//
// A call is a span of the kind INTERNAL. Each send below it is one of the kind CLIENT, with the
// attributes of the conventions for HTTP clients and our own (`httpretry.class`, `httpretry.wait`,
// …): what was decided after it. A span ends with the body of the response.
//
// propagate() gives each send its own traceparent, and the tracestate of the call; its baggage goes
// to the origin of the call only. It must be the last middleware, so that retries, hedges and
// tokens of middlewares before it have spans of their own.
#pragma once

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

struct HTTPRETRY_API SpanAttribute {
  using Value = std::variant<std::string, std::int64_t, double, bool>;
  std::string_view key;  // static text
  Value value;
};

struct HTTPRETRY_API SpanEvent {
  std::string_view name;  // static text
  WallTime at{};
  std::vector<SpanAttribute> attributes;
};

// A span that has ended. It holds facts; `attributes` makes what is exported of them, so that this
// is no work of the loop.
struct HTTPRETRY_API Span {
  enum class Kind : std::uint8_t { Internal = 1, Client = 3 };  // the numbers of OTLP
  enum class Status : std::uint8_t { Unset = 0, Error = 2 };
  Span() = default;

  Kind kind = Kind::Client;
  TraceId trace;
  std::uint64_t id = 0;
  std::uint64_t parent = 0;  // 0: none
  std::uint8_t flags = 0;
  std::string state;
  WallTime start{};
  WallTime end{};

  std::string method;
  bool known_method = true;
  std::optional<Url> url;
  bool hide_query = false;                       // TracesOptions::hide_query
  std::shared_ptr<const ResolvedPolicy> policy;  // nullptr: none of an endpoint
  int status = 0;                                // of HTTP; 0: none
  std::optional<Errc> error;
  std::vector<SpanEvent> events;

  // Of a send.
  int resend_count = 0;  // the sends of the call before it: retries, redirects, authentication
  int attempt = 0;       // 0: without the middleware retry
  std::string http_version;
  Exchange exchange;
  // What was decided after it; `judged` is false where nobody did, or another send of the same
  // attempt followed.
  bool judged = false;
  Class cls = Class::Success;
  std::string rule;
  std::optional<Duration> wait;
  std::optional<Duration> backoff;
  std::optional<Duration> server_delay;
  std::optional<std::int64_t> budget_left;
  int hedge_of = 0;   // Hedge::of; 0: it is no hedge
  bool lost = false;  // the response of another send was used

  // Of a call.
  int attempts = 0;
  Reason stop_reason = Reason::Success;

  // The rest is of both. "GET", or "GET /items/{id}" where the path of the endpoint has a pattern.
  [[nodiscard]] std::string name() const;
  // Error for 4xx, 5xx and errors; not for what was canceled.
  [[nodiscard]] Status outcome() const;
  [[nodiscard]] std::vector<SpanAttribute> attributes() const;
};

using SpanPtr = std::shared_ptr<const Span>;

struct HTTPRETRY_API TracesOptions {
  TracesOptions() = default;

  // Gets each span that has ended, on the thread that drives the call: it must be quick, and must
  // not throw. Needed.
  std::function<void(SpanPtr)> sink;

  // Of calls that bring no trace: 1 is all, 0 none. A call that brings one is sampled as its parent
  // was, unless `parent_based` is false.
  double sample_ratio = 1;
  bool parent_based = true;

  // url.full has no values of the query at all; else those that tell secrets are left out.
  bool hide_query = false;

  // Methods that are shown. Empty: those of RFC 9110, PATCH and QUERY. Others are `_OTHER`.
  std::vector<std::string> known_methods;
};

// One for each client: it leaves alone a call that another one traces. Throws std::invalid_argument
// without a sink, and for a ratio that is not between 0 and 1.
[[nodiscard]] HTTPRETRY_API std::shared_ptr<Observer> traces(TracesOptions options);
[[nodiscard]] HTTPRETRY_API std::shared_ptr<Observer> traces(std::function<void(SpanPtr)> sink);

// Sends the context of the call on. Without traces() it sends on what the request brought.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr propagate();

// Returns the URL as spans show it: user and password are REDACTED, and so is the value of each
// query item whose name tells a secret (`tells_secret`), such as the signatures of AWS, Azure and
// Google.
[[nodiscard]] HTTPRETRY_API std::string redacted(const Url& url);

}  // namespace httpretry
