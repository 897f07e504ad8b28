// Which policies a command line asks for.
#pragma once

#include "cli/args.hpp"

#include <httpretry/policy/policy_set.hpp>

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace httpretry::cli {

// what() is the problems, a line each: exit status 3.
struct BadPolicyFile : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Every kind of retry_on.transport, as JSON.
inline constexpr const char* kAllTransport =
    R"(["resolve", "connect", "tls", "timeout", "send", "receive", "protocol", "partial"])";

struct PolicyChoice {
  std::optional<std::string> file;
  std::optional<std::string> preset;
  // One layer over every policy; a later value of a key replaces an earlier one.
  std::vector<std::pair<std::string, std::string>> settings;

  void set(std::string key, std::string value);
};

// --policy, --preset and --set.
std::vector<Flag> policy_flags(PolicyChoice& choice);

// The file, or HTTPRETRY_POLICY where neither a file nor a preset is named; `standard` without any.
PolicySet chosen_policies(const PolicyChoice& choice);

// A file's text; throws BadPolicyFile where it cannot be read.
std::string read_policy_file(const std::string& path);

}  // namespace httpretry::cli
