#include <httpretry/policy/policy_set.hpp>
#include <httpretry/policy/presets.hpp>

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

TEST_CASE("the preset standard is the default-constructed policy") {
  const auto standard = resolve_preset("standard").value();
  CHECK(*standard.policy == RetryPolicy());
  CHECK(standard.source == "preset standard");
  CHECK(PolicySet().find("GET", Url::parse("https://a/").value()).source == "built in");
}

// If a later version changes `standard`, this test ends, and standard-2026 stays.
TEST_CASE("standard-2026 has the values of standard") {
  CHECK(*resolve_preset("standard-2026").value().policy == RetryPolicy());
}

TEST_CASE("every preset loads, and is the same in a file that names it") {
  for (const auto& preset : presets()) {
    CAPTURE(preset.name);
    const auto resolved = resolve_preset(preset.name);
    REQUIRE(resolved.has_value());
    CHECK(resolved->preset == preset.name);

    const auto name = std::string(preset.name);
    const auto checked =
        check_policies(R"({"version": 1, "default": {"preset": ")" + name + "\"}}", "p.json");
    for (const auto& problem : checked.problems) MESSAGE(to_string(problem));
    REQUIRE(checked.set.has_value());
    CHECK(checked.problems.empty());
    const auto& found = checked.set->find("GET", Url::parse("https://a/").value());
    CHECK(*found.policy == *resolved->policy);
    CHECK(found.preset == name);

    const auto pasted =
        check_policies(R"({"version": 1, "default": )" + std::string(preset.json) + "}", "p.json");
    REQUIRE(pasted.set.has_value());
    CHECK(*pasted.set->find("GET", Url::parse("https://a/").value()).policy == *resolved->policy);
  }
}

TEST_CASE("an unknown preset is refused with the nearest name") {
  const auto result = resolve_preset("google-drvie");
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().message ==
        "there is no preset \"google-drvie\"; did you mean \"google-drive\"?");
  CHECK(resolve_preset("dri").error().message.starts_with(
      "there is no preset \"dri\"; did you mean google-drive, google-drive-1"));
  CHECK(resolve_preset("dr").error().message == "there is no preset \"dr\"");
}
