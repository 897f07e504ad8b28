#include "server_facts.hpp"

#include "lib/core/base/text.hpp"

#include <tuple>

namespace httpretry::fleet::detail {
namespace {

// Returns the value for `name` in lines of the form "name:value" CR LF; empty if it is missing.
std::string_view value_of(std::string_view info, std::string_view name) {
  while (!info.empty()) {
    auto line = take_until(info, '\n');
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (take_until(line, ':') == name) return line;
  }
  return {};
}

}  // namespace

// Parses the reply to INFO. A number that is missing or malformed becomes 0.
ServerFacts read_info(std::string_view info) {
  ServerFacts facts;
  auto version = value_of(info, "redis_version");
  facts.version = version;
  facts.major = to_number<int>(take_until(version, '.')).value_or(0);
  facts.minor = to_number<int>(take_until(version, '.')).value_or(0);
  facts.max_memory = to_number<std::uint64_t>(value_of(info, "maxmemory")).value_or(0);
  facts.eviction = value_of(info, "maxmemory_policy");
  const auto appends = value_of(info, "aof_enabled");
  if (!appends.empty()) facts.appends = appends == "1";
  return facts;
}

bool too_old(const ServerFacts& facts) {
  return facts.major != 0 &&
         std::tie(facts.major, facts.minor) < std::tie(kLeastMajor, kLeastMinor);
}

std::string age_problem(const ServerFacts& facts) {
  return "Redis " + std::to_string(facts.major) + "." + std::to_string(facts.minor) +
         " is older than " + std::to_string(kLeastMajor) + "." + std::to_string(kLeastMinor);
}

bool evicts(const ServerFacts& facts) {
  return !facts.eviction.empty() && facts.eviction != "noeviction";
}

std::vector<std::string> problems_for_limits(const ServerFacts& facts) {
  std::vector<std::string> problems;
  if (too_old(facts)) problems.push_back(age_problem(facts) + ": limits are not shared");
  if (facts.max_memory > 0 && evicts(facts)) {
    problems.push_back("maxmemory-policy is " + facts.eviction +
                       ": an evicted limit starts over; set it to noeviction");
  }
  return problems;
}

}  // namespace httpretry::fleet::detail
