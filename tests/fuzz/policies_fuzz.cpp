// Any text as a policy file. What is accepted is printed and read again as the same, and takes a
// setting or refuses it; what is refused says why. The same for texts to import.
#include <httpretry/policy/policy_import.hpp>
#include <httpretry/policy/policy_set.hpp>

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

// The importers take the same text for theirs: what they accept is a policy file.
void import_all(std::string_view text) {
  for (const auto& imported :
       {import_grpc_service_config(text, "fuzz"), import_aws_config(text, "fuzz"),
        import_aws_environment(text, "fuzz")}) {
    if (imported) {
      const auto again = parse_policies(imported->json, "printed.json");
      demand(again.has_value() && *again == imported->policies);
    } else {
      demand(!imported.error().message.empty());
    }
  }
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

  import_all(text);

  const auto equals = text.find('=');
  if (equals == std::string_view::npos) return 0;
  const std::array settings{
      std::pair(std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)))};
  const auto set = with_settings(PolicySet(), settings, "--set");
  demand(set.has_value() || !set.error().message.empty());
  return 0;
}
