// The patterns of an EndpointIndex as one tree, in the order of their comparison: host, port, path,
// methods, scheme.
#pragma once

#include "lib/policy/endpoint_pattern.hpp"
#include "lib/policy/large_pages.hpp"

#include <map>
#include <span>
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

// What the name of a node is: a bit each.
enum class Part : std::uint8_t {
  Host = 1,     // a whole one
  Label = 2,    // of a host with a "*"
  HostEnd = 4,  // the end of such a host where it has no leading "*."; without a name
  Port = 8,
  Segment = 16,
  Method = 32,
  Scheme = 64
};

// What a pattern says up to a place. What it leaves out (port, methods, scheme) has no node: a
// pattern of a host and a path ends at the last segment, and its methods would be children of that.
//
// If there is only one named child, it is compared directly; several are in a hash table,
// Data::slots. A node has 32 bytes, half a cache line.
struct Node {
  NodeId parent = kNone;
  NodeId any = kNone;              // for any host, label or segment
  NodeId rest = kNone;             // in a path: for "**"; in a host: for the leading "*."
  NodeId named = kNone;            // the single named child, or kSeveral
  std::uint32_t entry = kNoEntry;  // the first one that ends here
  std::uint32_t name_begin = 0;    // among the names
  std::uint32_t name_size = 0;
  Part part{};             // that its name is
  std::uint8_t parts = 0;  // that the names of its children are
};

// A pattern with one of its hosts and one of its methods.
struct IndexEntry {
  // How specific it is, the most important part first: names do not matter. In bits:
  //   1  the host is exact        1  a port is given        1  methods are given
  //   7  its fixed labels        32  16 steps of the path   1  a scheme is given
  //   7  those at its end                                  14  conditions
  std::uint64_t rank = 0;
  std::uint32_t pattern = 0;  // its number
  NodeId node = kNone;        // where it ends
};
inline constexpr std::uint64_t kMostConditions = (1U << 14U) - 1;
inline constexpr int kPathShift = 16;
inline constexpr int kHostShift = 49;

inline std::uint64_t host_rank(std::size_t fixed, std::size_t suffix) {
  return fixed << 7U | suffix;
}
std::uint64_t host_rank(const HostPattern& host);

}  // namespace policy

struct EndpointIndex::Data {
  using NodeId = policy::NodeId;
  template <class T>
  using LargeVector = std::vector<T, policy::LargePages<T>>;

  void add(std::uint32_t number, const EndpointPattern& pattern);
  // Once all are added.
  void finish(const std::vector<EndpointPattern>& patterns);

  [[nodiscard]] NodeId child(NodeId parent, policy::Part part, const policy::Label& label) const {
    if (!has_named(parent, part)) return policy::kNone;
    const auto single = nodes[parent].named;
    if (single == policy::kSeveral) return slots[slot_of(parent, part, label)].node;
    return label.is(name(single)) ? single : policy::kNone;
  }
  // Whether it has named children of that part.
  [[nodiscard]] bool has_named(NodeId node, policy::Part part) const {
    return (nodes[node].parts & static_cast<unsigned>(part)) != 0;
  }
  [[nodiscard]] std::string_view name(NodeId node) const {
    return std::string_view(names).substr(nodes[node].name_begin, nodes[node].name_size);
  }

  std::basic_string<char, std::char_traits<char>, policy::LargePages<char>>
      names;  // of all nodes, each once
  LargeVector<policy::Node> nodes = LargeVector<policy::Node>(policy::kHostPatterns + 1);
  // By node, so those that differ only in their conditions stand together; there the most specific
  // first, of those that are equally specific the first one given.
  LargeVector<policy::IndexEntry> entries;
  std::unordered_map<std::uint32_t, policy::Conditions> conditions;  // of a pattern
  bool inner_rest = false;  // a path has a "**" before its end
  std::vector<Tie> ties;

 private:
  // A pattern that can tie with one that ends elsewhere in the tree.
  struct Loose {
    std::uint32_t pattern;
    policy::HostPattern host;
  };

  void add_host(std::uint32_t number, const EndpointPattern& pattern,
                const policy::HostPattern& host, const policy::PathPattern& path);
  NodeId end_of_host(const policy::HostPattern& host);
  NodeId end_of_path(NodeId node, const policy::PathPattern& path);
  void note_loose(std::uint32_t number, std::uint64_t rank, const EndpointPattern& pattern,
                  const policy::HostPattern& host, const policy::PathPattern& path);
  void find_ties();
  void find_ties_among(std::span<const policy::IndexEntry> all);
  void find_loose_ties(const std::vector<EndpointPattern>& patterns);
  [[nodiscard]] bool conditions_meet(std::uint32_t one, std::uint32_t other) const;

  // A named child of a node that has several. Most that are not looked for have another hash, so
  // their nodes and names need not be read: that is a cache miss each.
  struct Slot {
    std::uint32_t hash = 0;
    NodeId node = policy::kNone;
  };

  static std::uint64_t hash_of(NodeId parent, const policy::Label& label) {
    constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;  // 2^64 / the golden ratio
    return (label.hash() ^ parent * kGolden) * kGolden;
  }
  // The slot of the child, or the free one where it belongs.
  [[nodiscard]] std::size_t slot_of(NodeId parent, policy::Part part,
                                    const policy::Label& label) const {
    const auto hash = hash_of(parent, label);
    for (auto i = hash >> 32U;; ++i) {
      policy::count_step();
      const auto at = i & (slots.size() - 1);
      const auto& slot = slots[at];
      if (slot.node == policy::kNone) return at;
      if (slot.hash != static_cast<std::uint32_t>(hash)) continue;
      const auto& node = nodes[slot.node];
      if (node.parent == parent && node.part == part && label.is(name(slot.node))) return at;
    }
  }
  void insert(NodeId node);
  void put_in_slot(NodeId node);
  NodeId make_node(NodeId parent);
  NodeId named_child(NodeId parent, policy::Part part, const std::string& name);
  NodeId child_at(NodeId parent, NodeId policy::Node::*slot);

  std::unordered_map<std::string, std::uint32_t> begins;  // of the names; only while they are added
  // By hash: a power of two, half of them free.
  LargeVector<Slot> slots = LargeVector<Slot>(8);
  std::size_t used = 0;
  // By all that two that tie must have in common.
  std::map<std::string, std::vector<Loose>> loose;
};

}  // namespace httpretry
