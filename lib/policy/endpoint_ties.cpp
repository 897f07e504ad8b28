// Which of the patterns that are equally specific can match the same request.
#include "lib/policy/endpoint_index.hpp"

#include <algorithm>
#include <map>

namespace httpretry {

using namespace policy;

namespace {

bool conditions_meet(const std::vector<Condition>& some, const std::vector<Condition>& others) {
  return std::none_of(some.begin(), some.end(), [&](const Condition& one) {
    return std::any_of(others.begin(), others.end(),
                       [&](const Condition& other) { return one.contradicts(other); });
  });
}

// Returns what two entries must have in common to match the same request, if their ranks are equal.
// Ranks tell which parts of the pattern are given and of what kind they are. Methods are apart.
std::string common_key(const EndpointIndex::Data::Pattern& pattern,
                       const EndpointIndex::Data::Entry& entry) {
  const auto& host = entry.host;
  auto key = std::to_string(entry.rank) + ' ' + std::to_string(pattern.port.value_or(0)) + ' ' +
             pattern.scheme.value_or("") + ' ';
  // Hosts with a "*" between other labels can meet if their fixed ends are the same.
  const bool inner_star = host.fixed() != host.suffix();
  key += inner_star ? host.name.substr(host.name.rfind('*') + 1)
                    : host.name + (host.leading ? " *." : "");
  // What follows the first of two "**" does not matter: "/x/**/a/**" and "/x/**/b/**" both match
  // "/x/a/b".
  const auto& path = pattern.path;
  const auto rests = std::count(path.steps.begin(), path.steps.end(), Step::Rest);
  for (std::size_t i = 0; i < path.steps.size(); ++i) {
    if (rests > 1 && path.steps[i] == Step::Rest) break;
    key += '/' + path.literals[i];
  }
  return key;
}

}  // namespace

void EndpointIndex::Data::find_ties() {
  std::map<std::string, std::vector<const Entry*>> groups;
  const auto add = [&](const std::vector<Entry>& entries) {
    for (const auto& entry : entries) {
      const auto& pattern = patterns[entry.pattern];
      const auto key = common_key(pattern, entry);
      if (pattern.methods.empty()) groups[key].push_back(&entry);
      for (const auto& method : pattern.methods) groups[key + ' ' + method].push_back(&entry);
    }
  };
  for (const auto& one : exact_hosts) add(one.second);
  add(other_hosts);
  const auto meet = [this](const Entry& a, const Entry& b) {
    return a.pattern != b.pattern && can_meet(a.host, b.host) &&
           conditions_meet(patterns[a.pattern].conditions, patterns[b.pattern].conditions);
  };
  for (const auto& group : groups) {
    const auto& entries = group.second;
    for (auto later = entries.begin(); later != entries.end(); ++later) {
      const auto earlier = std::find_if(entries.begin(), later,
                                        [&](const Entry* one) { return meet(*one, **later); });
      if (earlier != later) ties.push_back({(*later)->pattern, (*earlier)->pattern});
    }
  }
  // Two patterns may share several hosts and methods.
  std::sort(ties.begin(), ties.end());
  ties.erase(std::unique(ties.begin(), ties.end()), ties.end());
}

}  // namespace httpretry
