// TraceContext: which trace a request belongs to, as W3C Trace Context and Baggage say it.
//
// A request takes it from its own headers (traceparent, tracestate, baggage), or from its options:
//
//   request.edit_options().context.set(TraceContext::parse(incoming_traceparent).value());
//
// `traces()` (traces.hpp) begins a new trace where there is neither.
#pragma once

#include <httpretry/export.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace httpretry {

class Call;
class Headers;

struct HTTPRETRY_API TraceId {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  [[nodiscard]] bool valid() const { return high != 0 || low != 0; }
  [[nodiscard]] std::string hex() const;  // 32 lower-case digits
  friend bool operator==(const TraceId&, const TraceId&) = default;
};

// 16 lower-case digits.
[[nodiscard]] HTTPRETRY_API std::string span_id_hex(std::uint64_t id);

struct HTTPRETRY_API TraceContext {
  TraceContext() = default;

  static constexpr std::uint8_t kSampled = 1;
  static constexpr std::uint8_t kRandom = 2;

  TraceId trace;
  std::uint64_t span = 0;  // the parent of what comes next
  std::uint8_t flags = 0;
  std::string state;    // tracestate; 32 members at most
  std::string baggage;  // goes to the origin of the call only

  [[nodiscard]] bool sampled() const { return (flags & kSampled) != 0; }

  // Empty if `traceparent` is not one: version ff, zero ids, upper-case digits, a wrong length. Of
  // a later version the first 55 characters count. A tracestate that is not one is dropped; a
  // baggage keeps its first 8192 bytes of whole members.
  [[nodiscard]] static std::optional<TraceContext> parse(std::string_view traceparent,
                                                         std::string_view tracestate = {},
                                                         std::string_view baggage = {});
  // From the headers of a request. Several tracestate or baggage headers are joined.
  [[nodiscard]] static std::optional<TraceContext> from(const Headers& headers);

  // "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
  [[nodiscard]] std::string traceparent() const;
};

// Where the client has `traces()`: the trace of the call, with the span of the call. Else what the
// request brought; empty if it brought none.
[[nodiscard]] HTTPRETRY_API std::optional<TraceContext> trace_of(const Call& call);

}  // namespace httpretry
