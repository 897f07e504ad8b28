#include <httpretry/policy/presets.hpp>

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

using httpretry::find_preset;
using httpretry::presets;
using Json = nlohmann::json;

namespace {

const std::set<std::string> kStated = {
    "max_attempts",     "max_elapsed_time", "elapsed_rule", "backoff",
    "throttle_backoff", "retry_on",         "repeat",       "budget"};
const std::set<std::string> kOwn = {"attempt_timeout",
                                    "response_timeout",
                                    "connect_timeout",
                                    "stall_timeout",
                                    "server_delay",
                                    "adaptive",
                                    "idempotency_key",
                                    "pause",
                                    "rate",
                                    "concurrency",
                                    "breaker",
                                    "priority",
                                    "hedge"};

}  // namespace

TEST_CASE("every preset states what a preset must state, and nothing unknown") {
  std::set<std::string> names;
  for (const auto& preset : presets()) {
    const std::string name(preset.name);
    CAPTURE(name);
    CHECK(names.insert(name).second);
    CHECK_FALSE(preset.description.empty());
    CHECK(preset.description.find('\n') == std::string_view::npos);
    const auto json = Json::parse(preset.json);
    for (const auto& key : kStated) CHECK(json.contains(key));
    for (auto item = json.begin(); item != json.end(); ++item) {
      const auto key = item.key();
      CAPTURE(key);
      CHECK(kStated.count(key) + kOwn.count(key) == 1);
    }
    for (const auto* key : {"statuses", "throttle_statuses", "error_codes", "transport"}) {
      CHECK(json["retry_on"].contains(key));
    }
    // Without a limit of attempts there is one of time.
    if (json["max_attempts"] == "unlimited") CHECK(json["max_elapsed_time"] != "none");
  }
  CHECK(names.size() == 30);
  CHECK(presets().front().name == "standard");
}

TEST_CASE(
    "the clients of AWS, Google, Azure, OpenAI, Anthropic, Stripe and OpenTelemetry repeat "
    "everything") {
  for (const auto& preset : presets()) {
    const std::string name(preset.name);
    CAPTURE(name);
    const auto always = name.starts_with("aws-") || name.starts_with("google-") || name == "gcs" ||
                        name == "azure" || name == "openai" || name == "anthropic" ||
                        name == "gemini" || name == "stripe" || name == "otlp";
    CHECK(Json::parse(preset.json)["repeat"] == (always ? "always" : "safe"));
  }
}

TEST_CASE("a preset is found by its whole name") {
  CHECK(find_preset("aws-standard")->name == "aws-standard");
  CHECK(find_preset("standard")
            ->json.find("\n  \"pause\": {\"max\": \"1m\", \"resume\": \"ramp\"}") !=
        std::string_view::npos);
  CHECK(find_preset("aws") == nullptr);
  CHECK(find_preset("") == nullptr);
}
