// EndpointIndex: parses patterns, sorts them by how specific they are, and finds the best match.
#include "endpoint_pattern.hpp"
#include "lib/core/base/text.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace httpretry {

using namespace policy;

struct EndpointIndex::Data {
  struct Pattern {
    EndpointPattern given;
    PathPattern path;
    std::vector<Condition> conditions;
  };
  // A pattern with one of its hosts.
  struct Entry {
    std::uint64_t rank = 0;
    std::size_t pattern = 0;  // the index in `patterns`
    HostPattern host;
  };

  explicit Data(const std::vector<EndpointPattern>& all);

  std::vector<Pattern> patterns;
  // Each list is sorted, the most specific entry first. Equal entries keep their order.
  std::unordered_map<std::string, std::vector<Entry>, TextHash, std::equal_to<>> exact_hosts;
  std::vector<Entry> other_hosts;  // any host, or one with a "*"
  std::vector<Tie> ties;

 private:
  void find_ties();
};

namespace {

// A rank says how specific a pattern is with one of its hosts. The number of bits of each part,
// with the most important part first:
//   1  the host is exact        1  a port is given        1  methods are given
//   7  its fixed labels        32  16 steps of the path   1  a scheme is given
//   7  fixed labels at the end                           14  conditions
constexpr std::uint64_t kMostConditions = (1U << 14U) - 1;
constexpr int kSchemeShift = 14;
constexpr int kMethodsShift = 15;
constexpr int kPathShift = 16;
constexpr int kPortShift = 48;
constexpr int kHostShift = 49;

std::uint64_t rank_of(const HostPattern& host) {
  if (host.kind == HostPattern::Kind::Exact) return 1U << 14U;
  return host.fixed() << 7U | host.suffix();
}

std::uint64_t rank_of(const PathPattern& path) {
  std::uint64_t rank = 0;
  for (std::size_t i = 0; i < kMaxSegments; ++i) {
    rank <<= 2U;
    if (i < path.steps.size()) rank |= static_cast<std::uint64_t>(path.steps[i]) + 1;
  }
  return rank;
}

std::uint64_t rank_of(const HostPattern& host, const EndpointIndex::Data::Pattern& pattern) {
  const auto flag = [](bool given, int shift) { return std::uint64_t{given} << shift; };
  const auto& given = pattern.given;
  return rank_of(host) << kHostShift | flag(given.port.has_value(), kPortShift) |
         rank_of(pattern.path) << kPathShift | flag(!given.methods.empty(), kMethodsShift) |
         flag(given.scheme.has_value(), kSchemeShift) |
         std::min<std::uint64_t>(pattern.conditions.size(), kMostConditions);
}

// Compares the labels from the last one to the first.
bool matches_host(const HostPattern& pattern, std::string_view host) {
  if (pattern.kind == HostPattern::Kind::Any) return true;
  bool all_used = false;
  for (auto label = pattern.labels.rbegin(); label != pattern.labels.rend(); ++label) {
    if (all_used) return false;
    const auto dot = host.rfind('.');
    const auto last = host.substr(dot + 1);  // the whole host if there is no dot
    if (*label == "*" ? last.empty() : *label != last) return false;
    all_used = dot == host.npos;
    host = all_used ? std::string_view() : host.substr(0, dot);
  }
  return pattern.leading ? !host.empty() : all_used;
}

// Returns whether the steps from `step` on match the segments from `at` on. A path has at most one
// "**" before its end, so the recursion has a depth of one.
bool matches_path(const PathPattern& path, const Segments& segments, std::size_t step = 0,
                  std::size_t at = 0) {
  for (; step < path.steps.size(); ++step, ++at) {
    if (path.steps[step] == Step::Rest) {
      if (step + 1 == path.steps.size()) return true;
      for (; at < segments.count; ++at) {
        if (matches_path(path, segments, step + 1, at)) return true;
      }
      return false;
    }
    if (at == segments.count) return false;
    if (path.steps[step] == Step::Literal && !segments[at].is(path.literals[step])) return false;
  }
  return at == segments.count;
}

// Calls `found` with each entry that matches a request, the most specific first, until `found`
// returns true.
template <class Found>
void each_match(const EndpointIndex::Data& data, std::string_view method, const Url& url,
                const Headers& headers, const Found& found) {
  auto host = without_trailing_dots(url.host());
  // Only a pattern for any host matches a name that is longer than DNS allows.
  if (host.size() > kMaxHost) host = {};
  const auto path = split_path(url.path());
  const auto matches = [&](const EndpointIndex::Data::Entry& entry) {
    const auto& [given, steps, conditions] = data.patterns[entry.pattern];
    const auto& methods = given.methods;
    return (!given.port || *given.port == url.port()) && matches_path(steps, path) &&
           (methods.empty() ||
            std::find(methods.begin(), methods.end(), method) != methods.end()) &&
           (!given.scheme || *given.scheme == url.scheme()) &&
           std::all_of(conditions.begin(), conditions.end(),
                       [&](const Condition& one) { return one.holds(headers, url.query()); });
  };
  if (const auto exact = data.exact_hosts.find(host); exact != data.exact_hosts.end()) {
    for (const auto& entry : exact->second) {
      if (matches(entry) && found(entry)) return;
    }
  }
  for (const auto& entry : data.other_hosts) {
    if (matches_host(entry.host, host) && matches(entry) && found(entry)) return;
  }
}

bool conditions_meet(const std::vector<Condition>& some, const std::vector<Condition>& others) {
  return std::none_of(some.begin(), some.end(), [&](const Condition& one) {
    return std::any_of(others.begin(), others.end(),
                       [&](const Condition& other) { return one.contradicts(other); });
  });
}

// Returns a key that is the same for two entries of equal rank if they can match the same request.
// Equal ranks mean that the same parts are given, with the same kinds. Methods are compared
// separately.
std::string common_key(const EndpointIndex::Data::Pattern& pattern,
                       const EndpointIndex::Data::Entry& entry) {
  const auto& host = entry.host;
  auto key = std::to_string(entry.rank) + ' ' + std::to_string(pattern.given.port.value_or(0)) +
             ' ' + pattern.given.scheme.value_or("") + ' ';
  // Hosts with a "*" between other labels can meet if their fixed ends are the same.
  const bool inner_star = host.fixed() != host.suffix();
  key += inner_star ? host.name.substr(host.name.rfind('*') + 1)
                    : host.name + (host.leading ? " *." : "");
  // The key ends at the first of two "**": "/x/**/a/**" and "/x/**/b/**" both match "/x/a/b".
  const auto& path = pattern.path;
  const auto rests = std::count(path.steps.begin(), path.steps.end(), Step::Rest);
  for (std::size_t i = 0; i < path.steps.size(); ++i) {
    if (rests > 1 && path.steps[i] == Step::Rest) break;
    key += '/' + path.literals[i];
  }
  return key;
}

constexpr std::string_view kStepNames[] = {"", "any rest", "any", "literal"};

std::string not_the_other(const std::string& what, std::string_view has, std::string_view other) {
  return what + " is " + std::string(has) + ", not " + std::string(other);
}

std::string_view host_name(std::uint64_t host) {
  if (host == 0) return "any";
  return host >> 14U == 0 ? "one with \"*\"" : "exact";
}

std::string why_host_less(std::uint64_t lost, std::uint64_t won) {
  if (host_name(lost) != host_name(won)) {
    return not_the_other("its host", host_name(lost), host_name(won));
  }
  return lost >> 7U != won >> 7U ? "its host has fewer fixed labels"
                                 : "the fixed end of its host is shorter";
}

std::string why_path_less(std::uint64_t lost, std::uint64_t won) {
  for (std::size_t i = 1; i <= kMaxSegments; ++i) {
    const auto shift = 2 * (kMaxSegments - i);
    const auto here = lost >> shift & 3U;
    const auto other = won >> shift & 3U;
    if (here == other) continue;
    if (here == 0) break;
    return not_the_other("segment " + std::to_string(i) + " of its path", kStepNames[here],
                         kStepNames[other]);
  }
  return "its path is shorter";
}

}  // namespace

EndpointIndex::Data::Data(const std::vector<EndpointPattern>& all) {
  patterns.reserve(all.size());
  for (const auto& each : all) {
    patterns.push_back({each, parse_path(each.path.value_or("/**")), conditions_of(each)});
    const auto add = [&](const std::string& host_text) {
      auto host = parse_host(host_text);
      const bool exact = host.kind == HostPattern::Kind::Exact;
      auto& entries = exact ? exact_hosts[host.name] : other_hosts;
      const auto rank = rank_of(host, patterns.back());
      entries.push_back({rank, patterns.size() - 1, std::move(host)});
    };
    add(each.host.value_or("*"));
    for (const auto& host : each.more_hosts) add(host);
  }
  const auto sort = [](std::vector<Entry>& entries) {
    std::stable_sort(entries.begin(), entries.end(),
                     [](const Entry& a, const Entry& b) { return a.rank > b.rank; });
  };
  for (auto& one : exact_hosts) sort(one.second);
  sort(other_hosts);
  find_ties();
}

void EndpointIndex::Data::find_ties() {
  std::map<std::string, std::vector<const Entry*>> groups;
  const auto add = [&](const std::vector<Entry>& entries) {
    for (const auto& entry : entries) {
      const auto& pattern = patterns[entry.pattern];
      const auto key = common_key(pattern, entry);
      if (pattern.given.methods.empty()) groups[key].push_back(&entry);
      for (const auto& method : pattern.given.methods) groups[key + ' ' + method].push_back(&entry);
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

EndpointIndex::EndpointIndex(const std::vector<EndpointPattern>& patterns) {
  for (const auto& pattern : patterns) {
    const auto problems = problems_of(pattern);
    if (!problems.empty()) throw std::invalid_argument(problems.front().message);
  }
  data_ = std::make_shared<Data>(patterns);
}

std::optional<std::size_t> EndpointIndex::find(std::string_view method, const Url& url,
                                               const Headers& headers) const {
  std::optional<std::size_t> winner;
  if (!data_) return winner;
  each_match(*data_, method, url, headers, [&](const Data::Entry& entry) {
    winner = entry.pattern;
    return true;
  });
  return winner;
}

std::vector<EndpointIndex::Match> EndpointIndex::matches(std::string_view method, const Url& url,
                                                         const Headers& headers) const {
  std::vector<Match> all;
  if (!data_) return all;
  // A pattern may match with several of its hosts. The most specific one counts.
  std::unordered_set<std::size_t> known;
  each_match(*data_, method, url, headers, [&](const Data::Entry& entry) {
    if (known.insert(entry.pattern).second) all.push_back({entry.pattern, entry.rank});
    return false;
  });
  return all;
}

std::string EndpointIndex::why_less(const Match& loser, const Match& winner) {
  const auto lost = loser.rank;
  const auto won = winner.rank;
  const auto differ = [&](int shift) { return lost >> shift != won >> shift; };
  if (lost > won) return {};
  if (differ(kHostShift)) return why_host_less(lost >> kHostShift, won >> kHostShift);
  if (differ(kPortShift)) return "it names no port";
  if (differ(kPathShift)) {
    return why_path_less(lost >> kPathShift & 0xFFFFFFFF, won >> kPathShift & 0xFFFFFFFF);
  }
  if (differ(kMethodsShift)) return "it names no methods";
  if (differ(kSchemeShift)) return "it names no scheme";
  if (differ(0)) return "it has fewer conditions";
  return "it is equally specific and comes later";
}

const std::vector<EndpointIndex::Tie>& EndpointIndex::ties() const {
  static const std::vector<Tie> none;
  return data_ ? data_->ties : none;
}

}  // namespace httpretry
