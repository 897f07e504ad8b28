// The patterns of an EndpointIndex as one tree, in the order of their comparison: host, port, path,
// methods, scheme.
#pragma once

#include "lib/policy/endpoint_pattern.hpp"

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace httpretry {

namespace policy {

using NodeId = std::uint32_t;
inline constexpr NodeId kNone = 0;  // a node without children
inline constexpr NodeId kHosts = 1;
inline constexpr NodeId kHostPatterns = 2;  // their labels, the last one first
inline constexpr NodeId kSeveral = 0xFFFFFFFF;
inline constexpr std::uint32_t kNoEntry = 0xFFFFFFFF;

// The names below a node (hosts, labels, ports, literal segments, methods, schemes) are its named
// children. If there is only one, it is compared directly; several are in a hash table,
// Data::slots. A node has 32 bytes, half a cache line.
struct Node {
  NodeId parent = kNone;
  NodeId any = kNone;    // for any label or segment; or where the pattern leaves this part out
  NodeId rest = kNone;   // in a path: for "**"; in a host: for the leading "*."
  NodeId end = kNone;    // in a path or host: where it ends
  NodeId named = kNone;  // the single named child, or kSeveral
  std::uint32_t entry = kNoEntry;  // what ends here; of several the most specific
  std::uint32_t name_begin = 0;    // among the names
  std::uint32_t name_size = 0;
};

// A pattern with one of its hosts.
struct IndexEntry {
  // How specific it is, the most important part first: names do not matter. In bits:
  //   1  the host is exact        1  a port is given        1  methods are given
  //   7  its fixed labels        32  16 steps of the path   1  a scheme is given
  //   7  those at its end                                  14  conditions
  std::uint64_t rank = 0;
  std::uint32_t pattern = 0;  // its number
};
inline constexpr int kPathShift = 16;
inline constexpr int kHostShift = 49;

inline std::uint64_t host_rank(std::size_t fixed, std::size_t suffix) {
  return fixed << 7U | suffix;
}
std::uint64_t host_rank(const HostPattern& host);

}  // namespace policy

struct EndpointIndex::Data {
  using NodeId = policy::NodeId;

  void add(std::uint32_t number, const EndpointPattern& pattern);
  // Once all are added.
  void find_ties(const std::vector<EndpointPattern>& patterns);

  [[nodiscard]] NodeId child(NodeId parent, const policy::Label& label) const {
    const auto single = nodes[parent].named;
    if (single != policy::kSeveral) {
      return single != policy::kNone && label.is(name(single)) ? single : policy::kNone;
    }
    return slots[slot_of(parent, label)];
  }
  [[nodiscard]] std::string_view name(NodeId node) const {
    return std::string_view(names).substr(nodes[node].name_begin, nodes[node].name_size);
  }

  std::vector<policy::Node> nodes = std::vector<policy::Node>(policy::kHostPatterns + 1);
  std::vector<policy::IndexEntry> entries;
  // Entries that end where others do, the most specific first; those differ in conditions.
  std::unordered_map<NodeId, std::vector<std::uint32_t>> several;
  std::unordered_map<std::uint32_t, policy::Conditions> conditions;  // of a pattern
  bool inner_rest = false;  // a path has a "**" before its end
  std::vector<Tie> ties;

 private:
  // An entry that can tie with one that ends elsewhere in the tree.
  struct Loose {
    std::uint32_t entry;
    policy::HostPattern host;
  };

  void add_entry(std::uint32_t number, const EndpointPattern& pattern,
                 const policy::HostPattern& host, const policy::PathPattern& path);
  NodeId end_of_host(const policy::HostPattern& host);
  NodeId end_of_path(NodeId node, const policy::PathPattern& path);
  void note_loose(const EndpointPattern& pattern, const policy::HostPattern& host,
                  const policy::PathPattern& path);
  void add_end(NodeId methods, const std::optional<std::string>& scheme);
  void add_among(NodeId end, std::vector<std::uint32_t>& all, std::uint32_t added);
  [[nodiscard]] bool conditions_meet(std::uint32_t one, std::uint32_t other) const;

  // The slot of the child, or the free one where it belongs.
  [[nodiscard]] std::size_t slot_of(NodeId parent, const policy::Label& label) const {
    constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;  // 2^64 / the golden ratio
    const auto mixed = (label.hash() ^ parent * kGolden) * kGolden;
    for (auto i = mixed >> 32;; ++i) {
      policy::count_step();
      const auto slot = i & (slots.size() - 1);
      const auto node = slots[slot];
      if (node == policy::kNone) return slot;
      if (nodes[node].parent == parent && label.is(name(node))) return slot;
    }
  }
  void insert(NodeId node);
  NodeId make_node(NodeId parent);
  NodeId named_child(NodeId parent, const std::string& name);
  NodeId child_at(NodeId parent, NodeId policy::Node::*slot);

  std::string names;  // of all nodes
  // The named children of nodes that have several, by hash: a power of two, half of them free. An
  // array, as most of what a look-up among 100 000 patterns costs is cache misses.
  std::vector<NodeId> slots = std::vector<NodeId>(8);
  std::size_t used = 0;
  // By all that two that tie must have in common.
  std::map<std::string, std::vector<Loose>> loose;
};

}  // namespace httpretry
