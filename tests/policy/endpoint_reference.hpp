// The matcher of the format's description, as one would write it down first: every pattern is
// asked, and those that match are compared. It knows nothing of the index but its patterns.
#pragma once

#include <httpretry/policy/endpoint.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace endpoint_test {

using httpretry::EndpointPattern;

// A request in its parts, in the normal form: `segments` hold data, not percent-encoding.
struct Asked {
  std::string method;
  std::string scheme;
  std::string host;
  int port = 0;
  std::vector<std::string> segments;
};

inline std::vector<std::string> cut(std::string_view path) {
  std::vector<std::string> segments(1);
  for (const auto c : path.substr(1)) {
    if (c == '/') {
      segments.emplace_back();
    } else {
      segments.back().push_back(c);
    }
  }
  return segments;
}

inline bool host_matches(const std::string& pattern, const std::string& host) {
  if (pattern == "*") return true;
  if (!pattern.starts_with("*.")) return pattern == host;
  const auto suffix = pattern.substr(1);
  return host.size() > suffix.size() && host.ends_with(suffix);
}

inline bool is_one(const std::string& segment) {
  return segment == "*" || segment.starts_with("{");
}

inline bool path_matches(std::vector<std::string> pattern, const std::vector<std::string>& path) {
  if (pattern.back() == "**") {
    pattern.pop_back();
    if (path.size() < pattern.size()) return false;
  } else if (path.size() != pattern.size()) {
    return false;
  }
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (!is_one(pattern[i]) && pattern[i] != path[i]) return false;
  }
  return true;
}

inline bool matches(const EndpointPattern& pattern, const Asked& asked) {
  const auto& methods = pattern.methods;
  return host_matches(pattern.host.value_or("*"), asked.host) &&
         (!pattern.port || *pattern.port == asked.port) &&
         path_matches(cut(pattern.path.value_or("/**")), asked.segments) &&
         (methods.empty() ||
          std::find(methods.begin(), methods.end(), asked.method) != methods.end()) &&
         (!pattern.scheme || *pattern.scheme == asked.scheme);
}

// Greater is more specific.
using Rank = std::tuple<std::size_t, bool, std::vector<int>, bool, bool>;
inline Rank rank(const EndpointPattern& pattern) {
  const auto host = pattern.host.value_or("*");
  const auto dots = static_cast<std::size_t>(std::count(host.begin(), host.end(), '.'));
  const std::size_t host_rank = host == "*" ? 0 : host.starts_with("*.") ? dots : 1000;
  std::vector<int> path;
  for (const auto& segment : cut(pattern.path.value_or("/**"))) {
    path.push_back(segment == "**" ? 0 : is_one(segment) ? 1 : 2);
  }
  return {host_rank, pattern.port.has_value(), path, !pattern.methods.empty(),
          pattern.scheme.has_value()};
}

// Whether the two can match the same request and are equally specific. With equal ranks, hosts that
// can meet are the same, and so are paths but for the names in them.
inline bool tie(const EndpointPattern& a, const EndpointPattern& b) {
  if (rank(a) != rank(b)) return false;
  if (a.host.value_or("*") != b.host.value_or("*") || a.port != b.port || a.scheme != b.scheme) {
    return false;
  }
  const auto first = cut(a.path.value_or("/**"));
  const auto second = cut(b.path.value_or("/**"));
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (!is_one(first[i]) && first[i] != second[i]) return false;
  }
  return a.methods.empty() ||
         std::any_of(a.methods.begin(), a.methods.end(), [&](const std::string& method) {
           return std::find(b.methods.begin(), b.methods.end(), method) != b.methods.end();
         });
}

inline std::vector<std::size_t> all_matches(const std::vector<EndpointPattern>& patterns,
                                            const Asked& asked) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    if (matches(patterns[i], asked)) found.push_back(i);
  }
  std::stable_sort(found.begin(), found.end(), [&](std::size_t a, std::size_t b) {
    return rank(patterns[a]) > rank(patterns[b]);
  });
  return found;
}

}  // namespace endpoint_test
