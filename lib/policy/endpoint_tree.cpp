#include "endpoint_tree.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace httpretry {
namespace policy {
namespace {

// A place for the pair in a table: FNV-1a leaves the low bits to the last bytes.
std::uint32_t place(NodeId parent, std::uint64_t hash) {
  auto mix = hash ^ (parent * 0x9E3779B97F4A7C15);
  mix = (mix ^ (mix >> 32)) * 0xD6E8FEB86659FD93;
  return static_cast<std::uint32_t>(mix >> 32);
}

}  // namespace

std::uint64_t hash_of_host(std::string_view host) {
  auto hash = kHashStart;
  for (auto byte = host.rbegin(); byte != host.rend(); ++byte) hash = mixed(hash, *byte);
  return hash;
}

std::uint64_t hash_of_data(std::string_view data) {
  auto hash = kHashStart;
  for (const auto byte : data) hash = mixed(hash, byte);
  return hash;
}

std::uint64_t hash_of_segment(std::string_view text) {
  auto hash = kHashStart;
  while (!text.empty()) hash = mixed(hash, take_byte(text));
  return hash;
}

bool Label::is(std::string_view data) const {
  if (!encoded) return text == data;
  auto rest = text;
  for (const auto byte : data) {
    if (rest.empty() || take_byte(rest) != byte) return false;
  }
  return rest.empty();
}

}  // namespace policy

using policy::kNone;
using policy::kSeveral;
using policy::Label;
using policy::NodeId;

EndpointIndex::Data::Data() : hits(1) {
  nodes.resize(4);
  exact_hosts = 1;
  suffixes = 2;
  any_host = 3;
}

NodeId EndpointIndex::Data::look_up(NodeId parent, const Label& label) const {
  const auto hash = policy::place(parent, label.hash);
  for (auto at = hash & (slots.size() - 1);; at = (at + 1) & (slots.size() - 1)) {
    const auto& slot = slots[at];
    if (slot.node == kNone) return kNone;
    if (slot.hash != hash || nodes[slot.node].parent != parent) continue;
    if (label.is(name(slot.node))) return slot.node;
  }
}

void EndpointIndex::Data::put(std::uint32_t hash, NodeId node) {
  auto at = hash & (slots.size() - 1);
  while (slots[at].node != kNone) at = (at + 1) & (slots.size() - 1);
  slots[at] = {hash, node};
}

void EndpointIndex::Data::insert(std::uint32_t hash, NodeId node) {
  if (2 * ++used > slots.size()) {
    const auto old =
        std::exchange(slots, std::vector<Slot>(std::max<std::size_t>(8, 2 * slots.size())));
    for (const auto& slot : old) {
      if (slot.node != kNone) put(slot.hash, slot.node);
    }
  }
  put(hash, node);
}

NodeId EndpointIndex::Data::make_node(NodeId parent, std::string_view name) {
  // Node numbers and places in the text have 32 bits.
  constexpr std::size_t kMost = 0xFFFFFFF0;
  if (nodes.size() > kMost || text.size() + name.size() > kMost) {
    throw std::length_error("too many endpoint patterns");
  }
  auto& node = nodes.emplace_back();
  node.parent = parent;
  node.text = static_cast<std::uint32_t>(text.size());
  node.length = static_cast<std::uint32_t>(name.size());
  text += name;
  return static_cast<NodeId>(nodes.size() - 1);
}

NodeId EndpointIndex::Data::named_child(NodeId parent, const Label& label) {
  if (const auto found = child(parent, label); found != kNone) return found;
  const auto made = make_node(parent, label.text);
  const auto single = nodes[parent].named;
  if (single == kNone) {
    nodes[parent].named = made;
    return made;
  }
  if (single != kSeveral) {
    // A host's name is hashed backwards, and only the hosts' parents know that.
    const bool hosts = parent == exact_hosts || parent == suffixes;
    const auto hash =
        hosts ? policy::hash_of_host(name(single)) : policy::hash_of_data(name(single));
    insert(policy::place(parent, hash), single);
    nodes[parent].named = kSeveral;
  }
  insert(policy::place(parent, label.hash), made);
  return made;
}

NodeId EndpointIndex::Data::next_child(NodeId parent, std::size_t which) {
  if (nodes[parent].next[which] == kNone) {
    const auto made = make_node(parent, {});
    nodes[parent].next[which] = made;
  }
  return nodes[parent].next[which];
}

NodeId EndpointIndex::Data::add_host(const policy::HostPattern& host) {
  using Kind = policy::HostPattern::Kind;
  if (host.kind == Kind::Any) return any_host;
  if (host.kind == Kind::Suffix) suffix_labels.set(host.labels);
  return named_child(host.kind == Kind::Exact ? exact_hosts : suffixes,
                     {host.name, policy::hash_of_host(host.name), false});
}

NodeId EndpointIndex::Data::add_path(NodeId node, const policy::PathPattern& path,
                                     policy::Specificity& rank) {
  rank.steps = static_cast<std::uint8_t>(path.steps.size());
  for (std::size_t i = 0; i < path.steps.size(); ++i) {
    const auto step = path.steps[i];
    rank.path |= static_cast<std::uint32_t>(step) << (2 * i);
    if (step == policy::Step::Rest) return next_child(node, policy::kRest);
    if (step == policy::Step::One) {
      node = next_child(node, policy::kOne);
    } else {
      const auto& literal = path.literals[i];
      longest_literal = std::max(longest_literal, literal.size());
      node = named_child(node, {literal, policy::hash_of_data(literal), false});
    }
  }
  return next_child(node, policy::kEnd);
}

void EndpointIndex::Data::add_hit(NodeId node, std::size_t scheme) {
  const auto pattern = static_cast<std::uint32_t>(patterns.size() - 1);
  const auto made = static_cast<std::uint32_t>(hits.size());
  const auto first = nodes[node].next[scheme];
  if (first == 0) {
    nodes[node].next[scheme] = made;
    hits.push_back({pattern, 0});
  } else {
    ties.push_back({pattern, hits[first].pattern});
    hits.push_back({pattern, hits[first].next});
    hits[first].next = made;
  }
}

void EndpointIndex::Data::add(const EndpointPattern& pattern) {
  const auto host = policy::parse_host(pattern.host.value_or("*"));
  const auto path = policy::parse_path(pattern.path.value_or("/**"));
  auto& rank = patterns.emplace_back();
  rank.host = host.kind;
  rank.labels = static_cast<std::uint8_t>(host.labels);
  rank.port = pattern.port.has_value();
  rank.methods = !pattern.methods.empty();
  rank.scheme = pattern.scheme.has_value();

  auto node = add_host(host);
  node = pattern.port ? named_child(node, policy::PortText(*pattern.port).label())
                      : next_child(node, policy::kAnyPort);
  node = add_path(node, path, rank);
  const auto scheme = !pattern.scheme             ? policy::kAnyScheme
                      : *pattern.scheme == "http" ? policy::kHttp
                                                  : policy::kHttps;
  if (pattern.methods.empty()) add_hit(node, scheme);
  for (const auto& method : pattern.methods) {
    add_hit(named_child(node, {method, policy::hash_of_data(method), false}), scheme);
  }
}

void EndpointIndex::Data::finish() {
  nodes.shrink_to_fit();
  hits.shrink_to_fit();
  patterns.shrink_to_fit();
  text.shrink_to_fit();
  // Patterns that share several methods tie in each of them.
  std::sort(ties.begin(), ties.end());
  ties.erase(std::unique(ties.begin(), ties.end()), ties.end());
}

}  // namespace httpretry
