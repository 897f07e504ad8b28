// What an EndpointIndex holds: its patterns, parsed, and sorted by how specific they are.
#pragma once

#include "lib/policy/endpoint_pattern.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace httpretry {

namespace policy {

// A rank says how specific a pattern is with one of its hosts, the most important part first. Names
// do not matter. In bits:
//   1  the host is exact        1  a port is given        1  methods are given
//   7  its fixed labels        32  16 steps of the path   1  a scheme is given
//   7  those at its end                                  14  conditions
inline constexpr std::uint64_t kMostConditions = (1U << 14U) - 1;
inline constexpr int kSchemeShift = 14;
inline constexpr int kMethodsShift = 15;
inline constexpr int kPathShift = 16;
inline constexpr int kPortShift = 48;
inline constexpr int kHostShift = 49;

// Hashes a string_view like the string that it equals, so that a look-up makes no string.
struct HostHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view host) const {
    return std::hash<std::string_view>()(host);
  }
};

}  // namespace policy

struct EndpointIndex::Data {
  // Everything of a pattern except its hosts.
  struct Pattern {
    explicit Pattern(const EndpointPattern& pattern);

    std::optional<std::uint16_t> port;
    policy::PathPattern path;
    std::vector<std::string> methods;
    std::optional<std::string> scheme;
    std::vector<policy::Condition> conditions;
  };
  // A pattern with one of its hosts.
  struct Entry {
    std::uint64_t rank = 0;
    std::size_t pattern = 0;  // its number
    policy::HostPattern host;
  };

  explicit Data(const std::vector<EndpointPattern>& all);

  std::vector<Pattern> patterns;
  // Each list begins with the most specific entry, and of equal ones with the first one given.
  std::unordered_map<std::string, std::vector<Entry>, policy::HostHash, std::equal_to<>>
      exact_hosts;
  std::vector<Entry> other_hosts;  // any host, or one with a "*"
  std::vector<Tie> ties;

 private:
  void find_ties();
};

}  // namespace httpretry
