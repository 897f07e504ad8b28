// Any text as an HTTP archive: it has a response for each request, or there is a message with a
// position.
#include <httpretry/testing/testing.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace httpretry;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto scenario =
      parse_har(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz.har");
  if (!scenario) {
    if (!scenario.error().message.starts_with("fuzz.har:")) std::abort();
    return 0;
  }
  SeenRequest request;
  request.method = "GET";
  for (const auto* target : {"/", "/a?key=1", "http://h/a?key=1", "*", ""}) {
    request.target = target;
    const auto step = scenario->steps.at(0).respond(request);
    const bool is_response = step.status >= 200 && step.status <= 999;
    if (!is_response && step.fault == Fault::None) std::abort();
  }
  return 0;
}
