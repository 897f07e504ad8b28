#include "lib/policy/endpoint_tree.hpp"

#include <algorithm>
#include <tuple>
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
  const auto flag = [](bool given, unsigned shift) { return std::uint64_t{given} << shift; };
  return host_rank(host) << kHostShift | flag(pattern.port.has_value(), 48) | steps << kPathShift |
         flag(!pattern.methods.empty(), 15) | flag(pattern.scheme.has_value(), 14) |
         std::min<std::uint64_t>(pattern.headers.size() + pattern.query.size(), kMostConditions);
}

// Its "**"; one that is not the last step is an inner one.
std::size_t count_rests(const PathPattern& path) {
  return static_cast<std::size_t>(std::count(path.steps.begin(), path.steps.end(), Step::Rest));
}

bool has_inner_rest(const PathPattern& path) {
  return count_rests(path) > (path.steps.back() == Step::Rest ? 1U : 0U);
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
  add_host(number, pattern, parse_host(pattern.host.value_or("*")), path);
  for (const auto& host : pattern.more_hosts) add_host(number, pattern, parse_host(host), path);
}

void EndpointIndex::Data::add_host(std::uint32_t number, const EndpointPattern& pattern,
                                   const HostPattern& host, const PathPattern& path) {
  const auto rank = rank_of(pattern, host, path);
  auto node = end_of_host(host);
  if (pattern.port) node = named_child(node, Part::Port, std::to_string(*pattern.port));
  node = end_of_path(node, path);
  const auto add_entry = [&](NodeId end) {
    if (pattern.scheme) end = named_child(end, Part::Scheme, *pattern.scheme);
    entries.push_back({rank, number, end});
  };
  if (pattern.methods.empty()) add_entry(node);
  for (const auto& method : pattern.methods) add_entry(named_child(node, Part::Method, method));
  const bool loose_host = host.fixed() != host.suffix();
  if (loose_host || count_rests(path) > 1) note_loose(number, rank, pattern, host, path);
}

NodeId EndpointIndex::Data::end_of_host(const HostPattern& host) {
  if (host.kind == Kind::Any) return child_at(kHosts, &Node::any);
  if (host.kind == Kind::Exact) return named_child(kHosts, Part::Host, host.name);
  auto node = kHostPatterns;
  for (auto label = host.labels.rbegin(); label != host.labels.rend(); ++label) {
    node = *label == "*" ? child_at(node, &Node::any) : named_child(node, Part::Label, *label);
  }
  return host.leading ? child_at(node, &Node::rest) : named_child(node, Part::HostEnd, "");
}

NodeId EndpointIndex::Data::end_of_path(NodeId node, const PathPattern& path) {
  for (std::size_t i = 0; i < path.steps.size(); ++i) {
    node = path.steps[i] == Step::Literal
               ? named_child(node, Part::Segment, path.literals[i])
               : child_at(node, path.steps[i] == Step::One ? &Node::any : &Node::rest);
  }
  return node;
}

// Two tie elsewhere only if each has a "*" within its host, or two "**" in its path. With equal
// ranks they then have in common the fixed end of the host, and the literals of the path; but with
// two "**", those between these do not matter: "/x/**/a/**" and "/x/**/b/**" both match "/x/a/b".
void EndpointIndex::Data::note_loose(std::uint32_t number, std::uint64_t rank,
                                     const EndpointPattern& pattern, const HostPattern& host,
                                     const PathPattern& path) {
  auto key = std::to_string(rank) + ' ' + std::to_string(pattern.port.value_or(0)) + ' ' +
             pattern.scheme.value_or("") + ' ' + host.name.substr(host.name.rfind('*') + 1);
  const bool loose_path = count_rests(path) > 1;
  for (std::size_t i = 0; i < path.steps.size(); ++i) {
    if (loose_path && path.steps[i] == Step::Rest) break;
    key += '/' + path.literals[i];
  }
  // Hosts without a "*" within meet only if they are the same.
  const bool loose_host = host.fixed() != host.suffix();
  if (!loose_host) key += ' ' + host.name + (host.leading ? "*" : "");
  loose[key].push_back({number, host});
}

void EndpointIndex::Data::finish(const std::vector<EndpointPattern>& patterns) {
  std::sort(entries.begin(), entries.end(), [](const IndexEntry& a, const IndexEntry& b) {
    return std::tie(a.node, b.rank, a.pattern) < std::tie(b.node, a.rank, b.pattern);
  });
  for (auto i = entries.size(); i-- > 0;) {
    nodes[entries[i].node].entry = static_cast<std::uint32_t>(i);
  }
  find_ties();
  find_loose_ties(patterns);
  // Patterns that share several methods or hosts tie in each of them.
  std::sort(ties.begin(), ties.end());
  ties.erase(std::unique(ties.begin(), ties.end()), ties.end());
  begins = {};
  nodes.shrink_to_fit();
  entries.shrink_to_fit();
  names.shrink_to_fit();
}

void EndpointIndex::Data::insert(NodeId node) {
  if (2 * ++used > slots.size()) {
    const auto before = std::exchange(slots, LargeVector<Slot>(2 * slots.size()));
    for (const auto& slot : before) {
      if (slot.node != kNone) put_in_slot(slot.node);
    }
  }
  put_in_slot(node);
}

void EndpointIndex::Data::put_in_slot(NodeId child) {
  const auto& node = nodes[child];
  const Label label(name(child));
  slots[slot_of(node.parent, node.part, label)] = {
      static_cast<std::uint32_t>(hash_of(node.parent, label)), child};
}

NodeId EndpointIndex::Data::make_node(NodeId parent) {
  nodes.emplace_back().parent = parent;
  return static_cast<NodeId>(nodes.size() - 1);
}

NodeId EndpointIndex::Data::named_child(NodeId parent, Part part, const std::string& name) {
  if (const auto found = child(parent, part, Label(name)); found != kNone) return found;
  const auto made = make_node(parent);
  const auto [known, added] = begins.emplace(name, static_cast<std::uint32_t>(names.size()));
  if (added) names.append(name);
  nodes[made].part = part;
  nodes[made].name_begin = known->second;
  nodes[made].name_size = static_cast<std::uint32_t>(name.size());
  nodes[parent].parts |= static_cast<std::uint8_t>(part);
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

}  // namespace httpretry
