// What traces() keeps of a call, in the values that its middlewares and observers share.
#pragma once

#include <httpretry/telemetry/traces.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace httpretry::telemetry {

inline constexpr std::size_t kLength = 55;  // of a traceparent of version 00
inline constexpr std::size_t kSpanAt = 36;  // where its span begins

using HexId = std::array<char, 16>;
HexId hex_id(std::uint64_t id);

// The ids that propagate() has put into headers, for the spans of those sends.
struct GivenIds {
  struct Id {
    std::uint64_t id = 0;
    HexId hex{};
  };
  std::string header;        // traceparent of the latest one
  std::array<Id, 4> latest;  // 0: taken
  std::size_t count = 0;
};

// A send, and its span until that is taken.
struct TracedSend {
  int number = 0;  // of the exchange
  bool ended = false;
  Span span;
};

// The spans of a call and of its first send are part of it: one allocation for both. Their SpanPtr
// keeps all of it.
struct CallTrace : std::enable_shared_from_this<CallTrace> {
  // A new traceparent for the next send.
  const std::string& give_header();
  // The id of a send's span: that in its header if it was given, and not to another send.
  std::uint64_t take_id(const Headers& sent);

  // `fill(send)` may throw: then there is no such send.
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
  // Those whose spans have not been taken, in the order of their beginnings.
  template <class Look>
  void each_open(const Look& look) {
    if (first_open) look(*first);
    for (const auto& send : more) look(*send);
  }
  // The span of the first one that has ended and belongs to that attempt; nullptr if there is none.
  [[nodiscard]] SpanPtr take_ended(int attempt);
  // Of any; nullptr if there is none.
  [[nodiscard]] SpanPtr take_open();

  const void* owner = nullptr;  // the observer
  TraceContext context;         // `span` is that of the call
  std::optional<Span> call;     // empty: not sampled
  WallTime started{};
  int sends = 0;                // of exchanges that have ended
  std::uint64_t last_send = 0;  // the id of its span

 private:
  SpanPtr take_first();
  SpanPtr take_of_more(std::size_t index);

  std::optional<TracedSend> first;
  bool first_open = false;
  std::vector<std::shared_ptr<TracedSend>> more;  // that are open
  std::optional<GivenIds> given;                  // where propagate() has given any
};

// Never 0. Not the same in a forked child.
std::uint64_t random_id();

}  // namespace httpretry::telemetry
