// EndpointIndex: parses patterns, sorts them by how specific they are, and finds the best match.
#include "endpoint_pattern.hpp"
#include "lib/core/base/text.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace httpretry {

using namespace policy;

struct EndpointIndex::Data {
  struct Pattern {
    EndpointPattern parts;  // as in the policy file
    PathPattern path;
    std::vector<Condition> conditions;
  };
  // A pattern with one of its hosts.
  struct Entry {
    std::uint64_t rank = 0;
    std::size_t pattern = 0;  // the index in `patterns`
    HostPattern host;
  };

  explicit Data(const std::vector<EndpointPattern>& valid_patterns);

  std::vector<Pattern> patterns;
  // Each list is sorted, the most specific entry first. Equal entries keep their order.
  std::unordered_map<std::string, std::vector<Entry>, TextHash, std::equal_to<>> exact_hosts;
  std::vector<Entry> other_hosts;  // any host, or one with a "*"
  std::vector<Tie> ties;

 private:
  using TieGroups = std::map<std::string, std::vector<const Entry*>>;
  [[nodiscard]] TieGroups tie_groups() const;
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

// Returns the first three parts of a rank: 15 bits.
std::uint64_t rank_of(const HostPattern& host) {
  if (host.kind == HostPattern::Kind::Exact) return 1U << 14U;
  return host.fixed_count() << 7U | host.suffix_count();
}

// Returns the part of the path: two bits for each segment, 0 if the path is shorter.
std::uint64_t rank_of(const PathPattern& path) {
  std::uint64_t rank = 0;
  for (std::size_t i = 0; i < kMaxSegments; ++i) {
    rank <<= 2U;
    if (i < path.steps.size()) rank |= static_cast<std::uint64_t>(path.steps[i]) + 1;
  }
  return rank;
}

std::uint64_t rank_of(const HostPattern& host, const EndpointIndex::Data::Pattern& pattern) {
  const auto bit = [](bool is_given, int shift) { return std::uint64_t{is_given} << shift; };
  const auto& parts = pattern.parts;
  return rank_of(host) << kHostShift | bit(parts.port.has_value(), kPortShift) |
         rank_of(pattern.path) << kPathShift | bit(!parts.methods.empty(), kMethodsShift) |
         bit(parts.scheme.has_value(), kSchemeShift) |
         std::min<std::uint64_t>(pattern.conditions.size(), kMostConditions);
}

// Returns whether a pattern that is not exact matches a host. Compares the labels from the last one
// to the first.
bool matches_host(const HostPattern& pattern, std::string_view host) {
  if (pattern.kind == HostPattern::Kind::Any) return true;
  bool all_compared = false;  // `host`, which loses each compared label, has none left
  for (auto label = pattern.labels.rbegin(); label != pattern.labels.rend(); ++label) {
    if (all_compared) return false;
    const auto dot = host.rfind('.');
    const auto last = host.substr(dot + 1);  // the whole host if there is no dot
    if (*label == "*" ? last.empty() : *label != last) return false;
    all_compared = dot == host.npos;
    host = all_compared ? std::string_view() : host.substr(0, dot);
  }
  return pattern.leading_star ? !host.empty() : all_compared;
}

// Returns whether the steps of a pattern from `step` on match the segments of a path from `segment`
// on. A pattern has at most one "**" before its end, so the recursion has a depth of one.
bool matches_path(const PathPattern& pattern, const Segments& segments, std::size_t step = 0,
                  std::size_t segment = 0) {
  const auto& [steps, literals, problem] = pattern;
  for (; step < steps.size(); ++step, ++segment) {
    if (steps[step] == Step::Rest) {
      if (step + 1 == steps.size()) return true;
      // Tries each number of segments for the "**".
      for (; segment < segments.count; ++segment) {
        if (matches_path(pattern, segments, step + 1, segment)) return true;
      }
      return false;
    }
    if (segment == segments.count) return false;
    if (steps[step] == Step::Literal && !segments[segment].is(literals[step])) return false;
  }
  return segment == segments.count;
}

// Calls `visit` with each entry that matches a request, the most specific first, until `visit`
// returns true. An entry is a pattern with one of its hosts.
template <class Visit>
void visit_matches(const EndpointIndex::Data& data, std::string_view method, const Url& url,
                   const Headers& headers, const Visit& visit) {
  auto host = without_trailing_dots(url.host());
  // A host that is longer than DNS allows matches only patterns for any host. So does an empty one,
  // which is compared at once.
  if (host.size() > kMaxHost) host = {};
  const auto path = split_path(url.path());
  // Compares everything except the host. A part that the pattern leaves out matches any request.
  const auto other_parts_match = [&](const EndpointIndex::Data::Entry& entry) {
    const auto& [parts, path_pattern, conditions] = data.patterns[entry.pattern];
    const auto& methods = parts.methods;
    return (!parts.port || *parts.port == url.port()) && matches_path(path_pattern, path) &&
           (methods.empty() || std::ranges::find(methods, method) != methods.end()) &&
           (!parts.scheme || *parts.scheme == url.scheme()) &&
           std::ranges::all_of(conditions, [&](const auto& condition) {
             return condition.holds(headers, url.query());
           });
  };
  // An exact host is more specific than any other, so its entries come first. Each of the two lists
  // is sorted.
  if (const auto exact = data.exact_hosts.find(host); exact != data.exact_hosts.end()) {
    for (const auto& entry : exact->second) {
      if (other_parts_match(entry) && visit(entry)) return;
    }
  }
  for (const auto& entry : data.other_hosts) {
    if (matches_host(entry.host, host) && other_parts_match(entry) && visit(entry)) return;
  }
}

// Returns whether one request can fulfill the conditions of two patterns, `some` and `others`.
bool can_hold_together(const std::vector<Condition>& some, const std::vector<Condition>& others) {
  return std::ranges::none_of(some, [&](const Condition& one) {
    return std::ranges::any_of(others, [&](const auto& other) { return one.contradicts(other); });
  });
}

// Returns a key that two entries have in common if they are equally specific and can match the same
// request. Not all entries with the same key can: methods and conditions are not in the key, and a
// host with a "*" between labels only in part. The key begins with the rank. Entries of equal rank
// have the same parts, of the same kinds.
std::string tie_key(const EndpointIndex::Data::Pattern& pattern,
                    const EndpointIndex::Data::Entry& entry) {
  const auto& host = entry.host;
  auto key = std::to_string(entry.rank) + ' ' + std::to_string(pattern.parts.port.value_or(0)) +
             ' ' + pattern.parts.scheme.value_or("") + ' ';
  // Hosts with a "*" between other labels may overlap if their fixed ends are the same.
  const bool inner_star = host.fixed_count() != host.suffix_count();
  key += inner_star ? host.name.substr(host.name.rfind('*'))
                    : host.name + (host.leading_star ? " *." : "");
  // The key ends at the first of two "**": "/x/**/a/**" and "/x/**/b/**" both match "/x/a/b".
  const auto& path = pattern.path;
  const auto rest_count = std::count(path.steps.begin(), path.steps.end(), Step::Rest);
  for (std::size_t i = 0; i < path.steps.size(); ++i) {
    if (rest_count > 1 && path.steps[i] == Step::Rest) break;
    key += '/' + path.literals[i];
  }
  return key;
}

// By the two bits of a segment in a rank.
constexpr std::string_view kStepNames[] = {"", "any rest", "any", "literal"};

std::string not_the_other(const std::string& part, std::string_view kind, std::string_view other) {
  return part + " is " + std::string(kind) + ", not " + std::string(other);
}

// Returns how a message names the kind of a host, from its part of a rank.
std::string_view host_kind(std::uint64_t rank) {
  if (rank == 0) return "any";
  return rank >> 14U == 0 ? "one with \"*\"" : "exact";
}

// Explains why the host of a pattern is less specific than that of the winner, from the parts of
// their ranks. `why_path_less` does the same for the paths.
std::string why_host_less(std::uint64_t loser, std::uint64_t winner) {
  if (host_kind(loser) != host_kind(winner)) {
    return not_the_other("its host", host_kind(loser), host_kind(winner));
  }
  return loser >> 7U != winner >> 7U ? "its host has fewer fixed labels"
                                     : "the fixed end of its host is shorter";
}

// Returns the 32 bits of the path from a whole rank.
std::uint64_t path_part(std::uint64_t rank) { return rank >> kPathShift & 0xFFFFFFFF; }

std::string why_path_less(std::uint64_t loser, std::uint64_t winner) {
  for (std::size_t segment = 1; segment <= kMaxSegments; ++segment) {
    const auto shift = 2 * (kMaxSegments - segment);
    const auto step = loser >> shift & 3U;
    const auto winners_step = winner >> shift & 3U;
    if (step == winners_step) continue;
    if (step == 0) break;  // its path has ended
    return not_the_other("segment " + std::to_string(segment) + " of its path", kStepNames[step],
                         kStepNames[winners_step]);
  }
  return "its path is shorter";
}

}  // namespace

// Builds the index: parses the patterns, which must be valid, and makes an entry for each host of
// each pattern. Entries with an exact host are stored by its name, and all others, such as
// "*.example.com", in one list. In each list, the most specific entry is the first.
EndpointIndex::Data::Data(const std::vector<EndpointPattern>& valid_patterns) {
  patterns.reserve(valid_patterns.size());
  for (const auto& parts : valid_patterns) {
    // A pattern without a path matches every path.
    patterns.push_back({parts, parse_path(parts.path.value_or("/**")), conditions_of(parts)});
    const auto add_entry = [&](const std::string& host_text) {
      auto host = parse_host(host_text);
      const bool is_exact = host.kind == HostPattern::Kind::Exact;
      auto& entries = is_exact ? exact_hosts[host.name] : other_hosts;
      const auto rank = rank_of(host, patterns.back());  // greater if it is more specific
      entries.push_back({.rank = rank, .pattern = patterns.size() - 1, .host = std::move(host)});
    };
    add_entry(parts.host.value_or("*"));  // without a host, the pattern matches every host
    for (const auto& host : parts.more_hosts) add_entry(host);
  }
  // Stable, so that entries of equal rank keep the order of their patterns.
  const auto sort_by_rank = [](std::vector<Entry>& entries) {
    std::ranges::stable_sort(entries, std::ranges::greater(), &Entry::rank);
  };
  for (auto& [host, entries] : exact_hosts) sort_by_rank(entries);
  sort_by_rank(other_hosts);
  find_ties();  // the loader of a policy file reports them
}

// Returns groups of entries that may tie. All entries of a group have the same rank, so they are in
// the order of their patterns. An entry with methods is in a group for each of them. It never ties
// with one that has no methods, whose rank is lower.
EndpointIndex::Data::TieGroups EndpointIndex::Data::tie_groups() const {
  TieGroups groups;
  const auto add = [&](const std::vector<Entry>& entries) {
    for (const auto& entry : entries) {
      const auto& pattern = patterns[entry.pattern];
      const auto key = tie_key(pattern, entry);
      if (pattern.parts.methods.empty()) groups[key].push_back(&entry);
      for (const auto& method : pattern.parts.methods) groups[key + ' ' + method].push_back(&entry);
    }
  };
  for (const auto& [host, entries] : exact_hosts) add(entries);
  add(other_hosts);
  return groups;
}

// Fills `ties` with pairs of patterns that are equally specific and can match the same request, so
// that only their order would select the winner. Compares entries only within a group, because it
// would be slow to compare each entry with all others.
void EndpointIndex::Data::find_ties() {
  // Within a group, only conditions and hosts with a "*" between labels can rule out a common
  // request. Two hosts of one pattern are no tie.
  const auto can_match_same = [this](const Entry& a, const Entry& b) {
    return a.pattern != b.pattern && can_overlap(a.host, b.host) &&
           can_hold_together(patterns[a.pattern].conditions, patterns[b.pattern].conditions);
  };
  for (const auto& [key, entries] : tie_groups()) {
    for (auto later = entries.begin(); later != entries.end(); ++later) {
      // Reports for each entry only the first earlier one that it ties with.
      const auto earlier = std::find_if(
          entries.begin(), later, [&](const Entry* one) { return can_match_same(*one, **later); });
      if (earlier != later) {
        ties.push_back({.later = (*later)->pattern, .earlier = (*earlier)->pattern});
      }
    }
  }
  // Two patterns that share several hosts or methods were found once for each.
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

// Returns the number of the most specific pattern that matches the request, or nullopt if none
// does. visit_matches begins with the most specific pattern.
std::optional<std::size_t> EndpointIndex::find(std::string_view method, const Url& url,
                                               const Headers& headers) const {
  std::optional<std::size_t> winner;
  if (!data_) return winner;
  visit_matches(*data_, method, url, headers, [&](const Data::Entry& entry) {
    winner = entry.pattern;
    return true;  // end the search
  });
  return winner;
}

// Returns all patterns that match the request, the most specific first.
std::vector<EndpointIndex::Match> EndpointIndex::matches(std::string_view method, const Url& url,
                                                         const Headers& headers) const {
  std::vector<Match> all;
  if (!data_) return all;
  // A pattern may match with several of its hosts. The most specific one counts.
  std::unordered_set<std::size_t> known;
  visit_matches(*data_, method, url, headers, [&](const Data::Entry& entry) {
    if (known.insert(entry.pattern).second) all.push_back({entry.pattern, entry.rank});
    return false;  // go on
  });
  return all;
}

// Explains why the loser is less specific, or equally specific and later. Returns "" if it is more
// specific. Compares the parts of the ranks (listed above kMostConditions) in their order.
std::string EndpointIndex::why_less(const Match& loser, const Match& winner) {
  const auto lower = loser.rank;
  const auto higher = winner.rank;
  // Compares the part of the ranks whose lowest bit is `shift`, and all more important parts.
  const auto differ = [&](int shift) { return lower >> shift != higher >> shift; };
  if (lower > higher) return {};
  if (differ(kHostShift)) return why_host_less(lower >> kHostShift, higher >> kHostShift);
  if (differ(kPortShift)) return "it names no port";
  if (differ(kPathShift)) return why_path_less(path_part(lower), path_part(higher));
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
