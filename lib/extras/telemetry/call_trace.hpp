// CallTrace: the state of traces() and propagate() for one call. It is one of the call's values,
// which middlewares and observers share.
#pragma once

#include <httpretry/telemetry/traces.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace httpretry::telemetry {

// The positions of the parts of a traceparent, "00-TRACE-SPAN-FLAGS", and its length.
inline constexpr std::size_t kTraceOffset = 3;
inline constexpr std::size_t kSpanOffset = 36;
inline constexpr std::size_t kFlagsOffset = 53;
inline constexpr std::size_t kTraceparentLength = 55;  // of version 00

using HexId = std::array<char, 16>;
HexId hex_id(std::uint64_t id);

// The span ids that propagate() has put into headers. The spans of these sends take them.
struct IssuedIds {
  struct Id {
    std::uint64_t id = 0;
    HexId hex{};
  };
  std::string header;        // the latest traceparent
  std::array<Id, 4> latest;  // an id of 0 was taken
  std::size_t count = 0;
};

// A send with its span, until the span is taken.
struct TracedSend {
  int number = 0;  // of the exchange
  bool ended = false;
  Span span;
};

// It contains the spans of the call and of the first send, so that both need only one allocation.
// The SpanPtr of either keeps the whole CallTrace alive.
struct CallTrace : std::enable_shared_from_this<CallTrace> {
  // Returns a new traceparent for the next send.
  const std::string& next_header();
  // Returns the id for the span of a send: the id in its header if propagate() issued it and no
  // other span has taken it, otherwise a new one.
  std::uint64_t take_id(const Headers& sent);

  // Adds a send that `fill(send)` initializes. If `fill` throws, no send is added.
  template <class Fill>
  void begin_send(const Fill& fill) {
    if (!first) {
      fill(first.emplace());
      first_open = true;
    } else {
      auto send = std::make_shared<TracedSend>();
      fill(*send);
      more.push_back(std::move(send));
    }
  }
  // Calls `look` for each send whose span was not taken, in the order in which they began.
  template <class Look>
  void for_each_open(const Look& look) {
    if (first_open) look(*first);
    for (const auto& send : more) look(*send);
  }
  // Takes the span of the first send of that attempt that has ended; returns nullptr without one.
  [[nodiscard]] SpanPtr take_ended(int attempt);
  // Takes the span of the first send, even if it has not ended; returns nullptr without one.
  [[nodiscard]] SpanPtr take_open();

  const void* owner = nullptr;  // the observer
  TraceContext context;         // `span` is that of the call
  std::optional<Span> call;     // empty: not sampled
  WallTime started{};
  int sends = 0;                // on the wire, by the exchanges that have ended
  std::uint64_t last_send = 0;  // the id of its span

 private:
  SpanPtr take_first();
  SpanPtr take_from_more(std::size_t index);

  std::optional<TracedSend> first;
  bool first_open = false;
  std::vector<std::shared_ptr<TracedSend>> more;  // the later sends whose span was not taken
  std::optional<IssuedIds> issued;                // empty until propagate() issues one
};

// Returns a random number other than 0. A forked child gets other numbers than its parent.
std::uint64_t random_id();

}  // namespace httpretry::telemetry
