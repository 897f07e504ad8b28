// Any lines as response headers, read for what the server asks for. The first byte chooses whether
// the response is a throttle.
#include <httpretry/retry/server_delay.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace httpretry;  // NOLINT

namespace {

constexpr std::array kAll = {
    ServerDelaySource::RetryAfterMs,    ServerDelaySource::XMsRetryAfterMs,
    ServerDelaySource::XAmzRetryAfter,  ServerDelaySource::RetryAfter,
    ServerDelaySource::XRateLimitReset, ServerDelaySource::XRateLimitResets,
    ServerDelaySource::AnthropicResets, ServerDelaySource::RateLimitReset,
    ServerDelaySource::RateLimit,       ServerDelaySource::GrpcRetryPushback};

void demand(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto throttled = !text.empty() && text.front() == 't';
  Headers headers;
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() == text.size() ? line.size() : line.size() + 1);
    static_cast<void>(headers.try_add_line(line));
  }
  for (const auto now :
       {WallTime(std::chrono::seconds(1595320672)), WallTime::min(), WallTime::max()}) {
    const auto hint = server_delay(headers, kAll, throttled, now);
    if (!hint) continue;
    demand(hint->delay >= Duration::zero());
    demand(hint->raw.size() <= 64);
    demand(!hint->do_not_retry || hint->delay == Duration::zero());
  }
  static_cast<void>(parse_go_duration(text));
  return 0;
}
