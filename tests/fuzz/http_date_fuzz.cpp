// Any text as an HTTP date, at any time of ours.
#include <httpretry/retry/server_delay.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

using namespace httpretry;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Duration now{};
  if (size >= sizeof(now)) std::memcpy(&now, data + size - sizeof(now), sizeof(now));
  const auto anywhere = parse_http_date(text, WallTime(now));
  const auto today = parse_http_date(text, WallTime{});
  // Only the century of a two-digit year depends on our clock.
  if (anywhere.has_value() != today.has_value() && text.find('-') == std::string_view::npos) {
    std::abort();
  }
  return 0;
}
