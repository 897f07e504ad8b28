#pragma once

#include <httpretry/export.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace httpretry {

class Call;
class Headers;

// The 128-bit id of a trace. An id of zero is invalid.
struct HTTPRETRY_API TraceId {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  // Returns whether the id is not zero, which is the value of no trace.
  [[nodiscard]] bool valid() const { return high != 0 || low != 0; }
  [[nodiscard]] std::string hex() const;  // 32 lowercase digits
  friend bool operator==(const TraceId&, const TraceId&) = default;
};

// Returns 16 lowercase digits.
[[nodiscard]] HTTPRETRY_API std::string span_id_hex(std::uint64_t id);

// TraceContext is the trace that a request belongs to, as defined by W3C Trace Context and Baggage.
//
// It comes from the headers of the request (traceparent, tracestate, baggage), or from its options,
// which take precedence:
//
//   request.edit_options().context.set(TraceContext::parse(incoming_traceparent).value());
//
// If a request has neither, or the trace id is zero, `traces()` (traces.hpp) begins a new trace.
struct HTTPRETRY_API TraceContext {
  TraceContext() = default;

  // The bits of `flags`.
  static constexpr std::uint8_t kSampled = 1;
  static constexpr std::uint8_t kRandom = 2;

  TraceId trace;
  std::uint64_t span = 0;  // the parent of the next span
  std::uint8_t flags = 0;  // kSampled and kRandom
  std::string state;       // tracestate; 32 members at most
  std::string baggage;     // goes to the origin of the call only

  // Returns whether the trace is recorded.
  [[nodiscard]] bool sampled() const { return (flags & kSampled) != 0; }

  // Returns nullopt if `traceparent` is invalid: version ff, an id of zero, uppercase digits, a
  // wrong length. For a later version, only the first 55 characters count. An invalid
  // tracestate is dropped. Baggage keeps the whole valid members that fit into 8192 bytes.
  [[nodiscard]] static std::optional<TraceContext> parse(std::string_view traceparent,
                                                         std::string_view tracestate = {},
                                                         std::string_view baggage = {});
  // Reads the headers of a request. Joins several tracestate or baggage headers.
  [[nodiscard]] static std::optional<TraceContext> from(const Headers& headers);

  // Returns "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", for example.
  [[nodiscard]] std::string traceparent() const;
};

// Returns the trace of the call. With `traces()`, its span is that of the call. Otherwise it is the
// context from the request's options; nullopt without one.
[[nodiscard]] HTTPRETRY_API std::optional<TraceContext> trace_of(const Call& call);

}  // namespace httpretry
