#include "call_trace.hpp"

#include <httpretry/http/headers.hpp>

#include <algorithm>
#include <utility>

namespace httpretry::telemetry {

const std::string& CallTrace::next_header() {
  if (!issued) issued.emplace().header = context.traceparent();
  auto& next = issued->latest[issued->count++ % issued->latest.size()];
  next.id = random_id();
  next.hex = hex_id(next.id);
  std::ranges::copy(next.hex, issued->header.begin() + kSpanOffset);
  return issued->header;
}

std::uint64_t CallTrace::take_id(const Headers& sent) {
  const auto text = issued ? sent.get("traceparent") : std::nullopt;
  if (text && text->size() == kTraceparentLength) {
    const auto hex = text->substr(kSpanOffset, HexId().size());
    for (auto& each : issued->latest) {
      if (each.id != 0 && std::ranges::equal(hex, each.hex)) return std::exchange(each.id, 0);
    }
  }
  return random_id();
}

SpanPtr CallTrace::take_first() {
  first_open = false;
  return {shared_from_this(), &first->span};
}

SpanPtr CallTrace::take_from_more(std::size_t index) {
  auto send = std::move(more[index]);
  more.erase(more.begin() + static_cast<std::ptrdiff_t>(index));
  auto* span = &send->span;
  return {std::move(send), span};
}

SpanPtr CallTrace::take_ended(int attempt) {
  const auto fits = [&](const TracedSend& send) {
    return send.ended && send.span.attempt == attempt;
  };
  if (first_open && fits(*first)) return take_first();
  for (std::size_t i = 0; i < more.size(); ++i) {
    if (fits(*more[i])) return take_from_more(i);
  }
  return nullptr;
}

SpanPtr CallTrace::take_open() {
  if (first_open) return take_first();
  return more.empty() ? nullptr : take_from_more(0);
}

}  // namespace httpretry::telemetry
