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

using Conditions = EndpointPattern::Conditions;

// A request in its parts, in the normal form: `segments` hold data, not percent-encoding.
struct Asked {
  std::string method;
  std::string scheme;
  std::string host;
  int port = 0;
  std::vector<std::string> segments;
  Conditions headers;
  Conditions query;
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

// What a host or a path is made of. Words in it: "?" any one, "#" any number, "+" one or more.
using Words = std::vector<std::string>;

inline Words words_of_host(std::string host) {
  if (host == "*") return {"+"};
  Words words;
  if (host.starts_with("*.")) {
    words.emplace_back("+");
    host.erase(0, 2);
  }
  std::replace(host.begin(), host.end(), '.', '/');
  for (auto& label : cut("/" + host)) words.push_back(label == "*" ? "?" : "=" + label);
  return words;
}

inline bool is_one(const std::string& segment) {
  return segment == "*" || segment.starts_with("{");
}

inline Words words_of_path(const EndpointPattern& pattern) {
  Words words;
  for (const auto& segment : cut(pattern.path.value_or("/**"))) {
    words.push_back(segment == "**" ? "#" : is_one(segment) ? "?" : "=" + segment);
  }
  return words;
}

// Whether there is anything that both fit.
inline bool meet(const Words& a, std::size_t i, const Words& b, std::size_t j) {
  if (i == a.size() && j == b.size()) return true;
  if (i < a.size() && a[i] == "#") {
    return meet(a, i + 1, b, j) || (j < b.size() && meet(a, i, b, j + 1));
  }
  if (j < b.size() && b[j] == "#") return meet(b, j, a, i);
  if (i == a.size() || j == b.size()) return false;
  if (a[i] == "+") {
    auto more = a;
    more[i] = "?";
    more.insert(more.begin() + static_cast<long>(i), "#");
    return meet(more, i, b, j);
  }
  if (b[j] == "+") return meet(b, j, a, i);
  return (a[i] == b[j] || a[i] == "?" || b[j] == "?") && meet(a, i + 1, b, j + 1);
}
inline bool meet(const Words& a, const Words& b) { return meet(a, 0, b, 0); }

// Values that are drawn are never other than these, with or without something behind.
inline bool value_fits(const std::string& wanted, const std::string& value) {
  return wanted.ends_with('*') ? value.starts_with(wanted.substr(0, wanted.size() - 1))
                               : value == wanted;
}

inline bool hold(const Conditions& wanted, const Conditions& asked) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& one) {
    const auto found = asked.find(one.first);
    return found != asked.end() && value_fits(one.second, found->second);
  });
}

inline Words literal(const std::vector<std::string>& parts) {
  Words words;
  for (const auto& part : parts) words.push_back("=" + part);
  return words;
}

inline bool matches(const EndpointPattern& pattern, const Asked& asked) {
  const auto& methods = pattern.methods;
  return meet(words_of_host(pattern.host.value_or("*")), words_of_host(asked.host)) &&
         (!pattern.port || *pattern.port == asked.port) &&
         meet(words_of_path(pattern), literal(asked.segments)) &&
         (methods.empty() ||
          std::find(methods.begin(), methods.end(), asked.method) != methods.end()) &&
         (!pattern.scheme || *pattern.scheme == asked.scheme) &&
         hold(pattern.headers, asked.headers) && hold(pattern.query, asked.query);
}

// Greater is more specific. Only for patterns with one host.
using Rank =
    std::tuple<int, std::size_t, std::size_t, bool, std::vector<int>, bool, bool, std::size_t>;
inline Rank rank(const EndpointPattern& pattern) {
  const auto host = pattern.host.value_or("*");
  const auto words = words_of_host(host);
  std::size_t fixed = 0;
  std::size_t at_end = 0;
  for (const auto& word : words) {
    at_end = word.starts_with('=') ? at_end + 1 : 0;
    if (word.starts_with('=')) ++fixed;
  }
  const bool exact = fixed == words.size();
  std::vector<int> path;
  for (const auto& word : words_of_path(pattern)) {
    path.push_back(word == "#" ? 0 : word == "?" ? 1 : 2);
  }
  return {host == "*" ? 0
          : exact     ? 2
                      : 1,
          exact ? 0 : fixed,
          exact ? 0 : at_end,
          pattern.port.has_value(),
          path,
          !pattern.methods.empty(),
          pattern.scheme.has_value(),
          pattern.headers.size() + pattern.query.size()};
}

inline bool can_both_hold(const Conditions& a, const Conditions& b) {
  return std::all_of(a.begin(), a.end(), [&](const auto& one) {
    const auto other = b.find(one.first);
    if (other == b.end()) return true;
    for (const std::string value : {"", "a", "ab", "b", "abc"}) {
      if (value_fits(one.second, value) && value_fits(other->second, value)) return true;
    }
    return false;
  });
}

// Whether the two can match the same request and are equally specific.
inline bool tie(const EndpointPattern& a, const EndpointPattern& b) {
  if (rank(a) != rank(b) || a.port != b.port || a.scheme != b.scheme) return false;
  if (!meet(words_of_host(a.host.value_or("*")), words_of_host(b.host.value_or("*")))) return false;
  if (!meet(words_of_path(a), words_of_path(b))) return false;
  if (!can_both_hold(a.headers, b.headers) || !can_both_hold(a.query, b.query)) return false;
  return a.methods.empty() ||
         std::any_of(a.methods.begin(), a.methods.end(), [&](const std::string& method) {
           return std::find(b.methods.begin(), b.methods.end(), method) != b.methods.end();
         });
}

// A list of hosts is as if each had an entry.
struct Single {
  EndpointPattern pattern;
  std::size_t number;
};
inline std::vector<Single> singles(const std::vector<EndpointPattern>& patterns) {
  std::vector<Single> all;
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    all.push_back({patterns[i], i});
    all.back().pattern.more_hosts.clear();
    for (const auto& host : patterns[i].more_hosts) {
      all.push_back(all.back());
      all.back().pattern.host = host;
    }
  }
  return all;
}

struct Found {
  std::size_t number;
  Rank rank;
};
inline std::vector<Found> all_matches(const std::vector<EndpointPattern>& patterns,
                                      const Asked& asked) {
  std::vector<Found> found;
  for (const auto& one : singles(patterns)) {
    if (matches(one.pattern, asked)) found.push_back({one.number, rank(one.pattern)});
  }
  std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.number < b.number;
  });
  std::vector<Found> once;
  for (const auto& one : found) {
    const auto known = std::any_of(once.begin(), once.end(),
                                   [&](const Found& other) { return other.number == one.number; });
    if (!known) once.push_back(one);
  }
  return once;
}

}  // namespace endpoint_test
