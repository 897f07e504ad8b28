// --policy, --preset and --set: the policies of a command line.
#pragma once

#include "cli/args.hpp"

#include <httpretry/http/request.hpp>
#include <httpretry/policy/policy_set.hpp>

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace httpretry::cli {

// A policy file cannot be read or has errors; the exit status is 3. what() has one line for each
// problem.
struct BadPolicyFile : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// All words of retry_on.transport, as JSON.
inline constexpr const char* kAllTransport =
    R"(["resolve", "connect", "tls", "timeout", "send", "receive", "protocol", "partial"])";

struct PolicyChoice {
  std::optional<std::string> file;
  std::optional<std::string> preset;
  // From --set and the flags that imply settings. They apply to every policy; the last value of a
  // key counts.
  std::vector<std::pair<std::string, std::string>> settings;

  void set(std::string key, std::string value);
  // Returns whether there is a setting for the key or for one below it ("budget.capacity" for
  // "budget").
  [[nodiscard]] bool has_setting(std::string_view key) const;
};

std::vector<Flag> policy_flags(PolicyChoice& choice);

// Returns whether neither the flags nor HTTPRETRY_POLICY name a file or a preset.
bool uses_standard(const PolicyChoice& choice);

// Returns the policies of the file or preset that the flags name, with the settings applied. The
// default is the file in HTTPRETRY_POLICY or, if that is not set, the preset `standard`. Throws
// UsageError, BadPolicyFile and WaitEnded; `cancel` is that of read_whole.
PolicySet chosen_policies(const PolicyChoice& choice, int cancel = -1);

// Returns the policy that the request gets.
inline const ResolvedPolicy& policy_for(const PolicySet& policies, const Request& request) {
  return policies.find(request.method(), *request.parsed_url(), request.headers());
}

// Returns the text of a file. Throws BadPolicyFile if it cannot be read, and WaitEnded as
// read_whole does.
std::string read_policy_file(const std::string& path, int cancel = -1);

}  // namespace httpretry::cli
