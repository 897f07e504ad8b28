#include "lib/policy/endpoint_tree.hpp"

#include <algorithm>
#include <utility>

namespace httpretry {

using namespace policy;
using Kind = HostPattern::Kind;

namespace {

std::uint64_t rank_of(const EndpointPattern& pattern, const HostPattern& host,
                      const PathPattern& path) {
  std::uint64_t steps = 0;
  for (std::size_t i = 0; i < kMaxSegments; ++i) {
    steps <<= 2U;
    if (i < path.steps.size()) steps |= static_cast<std::uint64_t>(path.steps[i]) + 1;
  }
  constexpr std::size_t kMostConditions = (1U << 14U) - 1;
  const auto flag = [](bool given, unsigned shift) { return std::uint64_t{given} << shift; };
  return host_rank(host) << kHostShift | flag(pattern.port.has_value(), 48) | steps << kPathShift |
         flag(!pattern.methods.empty(), 15) | flag(pattern.scheme.has_value(), 14) |
         std::min(pattern.headers.size() + pattern.query.size(), kMostConditions);
}

// Its "**"; one that is not the last step is an inner one.
std::size_t count_rests(const PathPattern& path) {
  return static_cast<std::size_t>(std::count(path.steps.begin(), path.steps.end(), Step::Rest));
}

bool has_inner_rest(const PathPattern& path) {
  return count_rests(path) > (path.steps.back() == Step::Rest ? 1U : 0U);
}

bool methods_meet(const EndpointPattern& a, const EndpointPattern& b) {
  return a.methods.empty() || std::any_of(a.methods.begin(), a.methods.end(), [&](const auto& one) {
           return std::find(b.methods.begin(), b.methods.end(), one) != b.methods.end();
         });
}

}  // namespace

std::uint64_t policy::host_rank(const HostPattern& host) {
  if (host.kind == Kind::Exact) return 1U << 14U;
  return host_rank(host.fixed(), host.suffix());
}

void EndpointIndex::Data::add(std::uint32_t number, const EndpointPattern& pattern) {
  if (!pattern.headers.empty() || !pattern.query.empty()) {
    conditions.emplace(number, Conditions(pattern));
  }
  const auto path = parse_path(pattern.path.value_or("/**"));
  inner_rest = inner_rest || has_inner_rest(path);
  add_entry(number, pattern, parse_host(pattern.host.value_or("*")), path);
  for (const auto& host : pattern.more_hosts) add_entry(number, pattern, parse_host(host), path);
}

void EndpointIndex::Data::add_entry(std::uint32_t number, const EndpointPattern& pattern,
                                    const HostPattern& host, const PathPattern& path) {
  entries.push_back({rank_of(pattern, host, path), number});
  auto node = end_of_host(host);
  node =
      pattern.port ? named_child(node, std::to_string(*pattern.port)) : child_at(node, &Node::any);
  node = end_of_path(node, path);
  if (pattern.methods.empty()) add_end(child_at(node, &Node::any), pattern.scheme);
  for (const auto& method : pattern.methods) add_end(named_child(node, method), pattern.scheme);
  if (host.fixed() != host.suffix() || count_rests(path) > 1) note_loose(pattern, host, path);
}

NodeId EndpointIndex::Data::end_of_host(const HostPattern& host) {
  if (host.kind == Kind::Any) return child_at(kHosts, &Node::any);
  if (host.kind == Kind::Exact) return named_child(kHosts, host.name);
  auto node = kHostPatterns;
  for (auto label = host.labels.rbegin(); label != host.labels.rend(); ++label) {
    node = *label == "*" ? child_at(node, &Node::any) : named_child(node, *label);
  }
  return child_at(node, host.leading ? &Node::rest : &Node::end);
}

NodeId EndpointIndex::Data::end_of_path(NodeId node, const PathPattern& path) {
  for (std::size_t i = 0; i < path.steps.size(); ++i) {
    node = path.steps[i] == Step::Literal
               ? named_child(node, path.literals[i])
               : child_at(node, path.steps[i] == Step::One ? &Node::any : &Node::rest);
  }
  return child_at(node, &Node::end);
}

// Two tie elsewhere only if each has a "*" within its host, or two "**" in its path. With equal
// ranks they then have in common the fixed end of the host, and the literals of the path; but with
// two "**", those between these do not matter: "/x/**/a/**" and "/x/**/b/**" both match "/x/a/b".
void EndpointIndex::Data::note_loose(const EndpointPattern& pattern, const HostPattern& host,
                                     const PathPattern& path) {
  const auto entry = static_cast<std::uint32_t>(entries.size() - 1);
  auto key = std::to_string(entries[entry].rank) + ' ' + std::to_string(pattern.port.value_or(0)) +
             ' ' + pattern.scheme.value_or("") + ' ' + host.name.substr(host.name.rfind('*') + 1);
  const bool loose_path = count_rests(path) > 1;
  for (std::size_t i = 0; i < path.steps.size(); ++i) {
    if (loose_path && path.steps[i] == Step::Rest) break;
    key += '/' + path.literals[i];
  }
  // Hosts without a "*" within meet only if they are the same.
  const bool loose_host = host.fixed() != host.suffix();
  if (!loose_host) key += ' ' + host.name + (host.leading ? "*" : "");
  loose[key].push_back({entry, host});
}

void EndpointIndex::Data::find_ties(const std::vector<EndpointPattern>& patterns) {
  for (const auto& group : loose) {
    const auto& all = group.second;
    for (std::size_t i = 1; i < all.size(); ++i) {
      const auto later = entries[all[i].entry].pattern;
      const auto earlier =
          std::find_if(all.begin(), all.begin() + static_cast<long>(i), [&](const Loose& one) {
            const auto number = entries[one.entry].pattern;
            return number != later && can_meet(one.host, all[i].host) &&
                   methods_meet(patterns[number], patterns[later]) &&
                   conditions_meet(number, later);
          });
      const auto number = entries[earlier->entry].pattern;
      if (number != later) ties.push_back({later, number});
    }
  }
  loose.clear();
  // Patterns that share several methods or hosts tie in each of them.
  std::sort(ties.begin(), ties.end());
  ties.erase(std::unique(ties.begin(), ties.end()), ties.end());
}

bool EndpointIndex::Data::conditions_meet(std::uint32_t one, std::uint32_t other) const {
  const auto first = conditions.find(one);
  const auto second = conditions.find(other);
  return first == conditions.end() || second == conditions.end() ||
         first->second.can_meet(second->second);
}

void EndpointIndex::Data::insert(NodeId node) {
  if (2 * ++used > slots.size()) {
    const auto before = std::exchange(slots, std::vector<NodeId>(2 * slots.size()));
    for (const auto moved : before) {
      if (moved != kNone) slots[slot_of(nodes[moved].parent, Label(name(moved)))] = moved;
    }
  }
  slots[slot_of(nodes[node].parent, Label(name(node)))] = node;
}

NodeId EndpointIndex::Data::make_node(NodeId parent) {
  nodes.emplace_back().parent = parent;
  return static_cast<NodeId>(nodes.size() - 1);
}

NodeId EndpointIndex::Data::named_child(NodeId parent, const std::string& name) {
  const Label label(name);
  if (const auto found = child(parent, label); found != kNone) return found;
  const auto made = make_node(parent);
  nodes[made].name_begin = static_cast<std::uint32_t>(names.size());
  nodes[made].name_size = static_cast<std::uint32_t>(name.size());
  names += name;
  auto& single = nodes[parent].named;
  if (single == kNone) {
    single = made;
    return made;
  }
  if (single != kSeveral) insert(std::exchange(single, kSeveral));
  insert(made);
  return made;
}

NodeId EndpointIndex::Data::child_at(NodeId parent, NodeId Node::*slot) {
  if (nodes[parent].*slot == kNone) {
    const auto made = make_node(parent);
    nodes[parent].*slot = made;
  }
  return nodes[parent].*slot;
}

void EndpointIndex::Data::add_end(NodeId methods, const std::optional<std::string>& scheme) {
  const auto end = scheme ? named_child(methods, *scheme) : child_at(methods, &Node::any);
  const auto added = static_cast<std::uint32_t>(entries.size() - 1);
  auto& first = nodes[end].entry;
  if (first == kNoEntry) {
    first = added;
    return;
  }
  auto& all = several[end];
  if (all.empty()) all.push_back(first);
  add_among(end, all, added);
}

// The most specific first; of those that are equally specific the first one added.
void EndpointIndex::Data::add_among(NodeId end, std::vector<std::uint32_t>& all,
                                    std::uint32_t added) {
  const auto number = entries[added].pattern;
  const auto rank = entries[added].rank;
  const auto before = [&](std::uint32_t entry, std::uint64_t value) {
    return entries[entry].rank > value;
  };
  const auto equal = std::lower_bound(all.begin(), all.end(), rank, before);
  const auto less = std::upper_bound(equal, all.end(), rank, [&](std::uint64_t value, auto entry) {
    return value > entries[entry].rank;
  });
  const auto tied = std::find_if(equal, less, [&](std::uint32_t entry) {
    const auto other = entries[entry].pattern;
    return other != number && conditions_meet(other, number);
  });
  if (tied != less) ties.push_back({number, entries[*tied].pattern});
  all.insert(less, added);
  nodes[end].entry = all.front();
}

}  // namespace httpretry
