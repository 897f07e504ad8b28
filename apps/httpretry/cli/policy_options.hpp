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

// what() has one line for each problem. Exit status 3.
struct BadPolicyFile : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// All words of retry_on.transport, as JSON.
inline constexpr const char* kAllTransport =
    R"(["resolve", "connect", "tls", "timeout", "send", "receive", "protocol", "partial"])";

struct PolicyChoice {
  std::optional<std::string> file;
  std::optional<std::string> preset;
  // From --set and the flags that imply settings: applied to every policy, the last value of a key
  // counts.
  std::vector<std::pair<std::string, std::string>> settings;

  void set(std::string key, std::string value);
  // A setting of the key, or of one below it ("budget.capacity" for "budget").
  [[nodiscard]] bool sets(std::string_view key) const;
};

std::vector<Flag> policy_flags(PolicyChoice& choice);

// Neither a file nor a preset is named, also not by HTTPRETRY_POLICY.
bool uses_standard(const PolicyChoice& choice);

// Without a file and a preset: the file in HTTPRETRY_POLICY, or else the preset `standard`.
PolicySet chosen_policies(const PolicyChoice& choice, int cancel = -1);

// The policy that the request gets.
inline const ResolvedPolicy& policy_for(const PolicySet& policies, const Request& request) {
  return policies.find(request.method(), *request.parsed_url(), request.headers());
}

// The text of a file. Throws BadPolicyFile if it cannot be read; WaitEnded as read_whole.
std::string read_policy_file(const std::string& path, int cancel = -1);

}  // namespace httpretry::cli
