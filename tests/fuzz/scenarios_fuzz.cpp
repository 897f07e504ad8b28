// Any text as a scenario file: it is one, or there is a message with a position.
#include <httpretry/testing/testing.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace httpretry;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto scenario =
      parse_scenario(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz.json");
  if (!scenario && !scenario.error().message.starts_with("fuzz.json:")) std::abort();
  return 0;
}
