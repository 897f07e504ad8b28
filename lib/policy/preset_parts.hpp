// What each preset states, as JSON values. A part left out has the value that most presets have.
#pragma once

#include <span>
#include <string_view>

namespace httpretry::policy_file {

inline constexpr std::string_view kAllFamilies =
    R"(["aws", "google", "github", "openai", "stripe"])";
inline constexpr std::string_view kAllTransports =
    R"(["resolve", "connect", "tls", "timeout", "send", "receive", "protocol", "partial"])";

struct PresetParts {
  std::string_view name;
  std::string_view description;
  std::string_view max_attempts;
  std::string_view max_elapsed_time = R"("none")";
  std::string_view elapsed_rule = R"("include_wait")";
  std::string_view backoff;
  std::string_view throttle_backoff = R"("none")";
  std::string_view statuses;
  std::string_view throttle_statuses = "[429]";
  std::string_view error_codes = "[]";
  std::string_view transport = kAllTransports;
  std::string_view pending = {};  // not stated where it is empty, like the last two
  std::string_view repeat = R"("safe")";
  std::string_view budget = R"("none")";
  std::string_view server_delay = {};
  std::string_view adaptive = {};
};

std::span<const PresetParts> client_presets();
std::span<const PresetParts> textbook_presets();

}  // namespace httpretry::policy_file
