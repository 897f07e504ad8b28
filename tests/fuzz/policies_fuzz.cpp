// Any text as a policy file. What is accepted is printed and read again as the same, and takes a
// setting or refuses it; what is refused says why.
#include <httpretry/policy_set.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

using namespace httpretry;  // NOLINT

namespace {

void demand(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto checked = check_policies(text, "fuzz.json");
  for (const auto& problem : checked.problems) {
    const auto line = to_string(problem);
    demand(problem.line > 0 && problem.column > 0);
    demand(line.find('\n') == std::string::npos);
  }
  if (checked.set) {
    const auto again = parse_policies(checked.set->print(), "printed.json");
    demand(again.has_value() && *again == *checked.set);
  } else {
    demand(!checked.problems.empty());
  }

  const auto equals = text.find('=');
  if (equals == std::string_view::npos) return 0;
  const std::array settings{
      std::pair(std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)))};
  const auto set = with_settings(PolicySet(), settings, "--set");
  demand(set.has_value() || !set.error().message.empty());
  return 0;
}
