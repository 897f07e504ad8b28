// All patterns as one tree, in the order of their comparison: host, port, path, methods, scheme.
//
// Its nodes lie in one array. A node has up to three children that stand for a kind of step, held
// in itself, and any number of named ones (hosts, ports, literal segments, methods): a single one
// is held in the node too, so that the usual path is compared without a look-up; of several, each
// is found by one look-up in a hash table that all nodes share.
#pragma once

#include "endpoint_host.hpp"
#include "endpoint_path.hpp"

#include <httpretry/endpoint.hpp>

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry::policy {

using NodeId = std::uint32_t;
inline constexpr NodeId kNone = 0;  // node 0 is nobody's child

// FNV-1a.
inline constexpr std::uint64_t kHashStart = 0xCBF29CE484222325;
inline std::uint64_t mixed(std::uint64_t hash, char byte) {
  return (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3;
}
std::uint64_t hash_of_host(std::string_view host);     // from its end: see take_host
std::uint64_t hash_of_data(std::string_view data);     // bytes as they are
std::uint64_t hash_of_segment(std::string_view text);  // the data of a percent-encoded segment

// What a named child is looked up by.
struct Label {
  std::string_view text;
  std::uint64_t hash = 0;
  bool encoded = false;  // the text has percent-encoded bytes

  [[nodiscard]] bool is(std::string_view data) const;
};

struct PortText {
  explicit PortText(std::uint16_t port)
      : bytes{static_cast<char>(port >> 8), static_cast<char>(port & 0xFF)} {}
  [[nodiscard]] Label label() const {
    const std::string_view text(bytes.data(), bytes.size());
    return {text, hash_of_data(text), false};
  }
  std::array<char, 2> bytes;
};

struct Node {
  NodeId parent = kNone;
  std::uint32_t text = 0;  // where its name begins
  std::uint32_t length = 0;
  NodeId named = kNone;  // the single named child, or kSeveral
  std::array<std::uint32_t, 3> next{};
};
inline constexpr NodeId kSeveral = 0xFFFFFFFF;

// What Node::next holds, by the depth of the node.
enum HostNext : std::size_t { kAnyPort };
enum PathNext : std::size_t { kOne, kRest, kEnd };
enum MethodNext : std::size_t { kHttp, kHttps, kAnyScheme };  // a Hit each, not a node

// A pattern that ends in a place of the tree, and the next that does: a tie.
struct Hit {
  std::uint32_t pattern = 0;
  std::uint32_t next = 0;  // 0: none
};

// What patterns are compared by; names do not matter.
struct Specificity {
  HostPattern::Kind host = HostPattern::Kind::Any;
  std::uint8_t labels = 0;
  std::uint8_t steps = 0;
  bool port = false;
  bool methods = false;
  bool scheme = false;
  std::uint32_t path = 0;  // two bits a step, the first lowest

  [[nodiscard]] Step step(std::size_t i) const { return static_cast<Step>(path >> (2 * i) & 3U); }
};

}  // namespace httpretry::policy

namespace httpretry {

struct EndpointIndex::Data {
  using NodeId = policy::NodeId;

  Data();
  void add(const EndpointPattern& pattern);
  void finish();  // after the last

  [[nodiscard]] NodeId child(NodeId parent, const policy::Label& label) const {
    const auto named = nodes[parent].named;
    if (named == policy::kNone) return policy::kNone;
    if (named != policy::kSeveral) return label.is(name(named)) ? named : policy::kNone;
    return look_up(parent, label);
  }
  [[nodiscard]] std::string_view name(NodeId node) const {
    return std::string_view(text).substr(nodes[node].text, nodes[node].length);
  }

  std::vector<policy::Node> nodes;
  std::vector<policy::Hit> hits;
  std::vector<policy::Specificity> patterns;
  std::vector<EndpointIndex::Tie> ties;
  NodeId exact_hosts = 0;
  NodeId suffixes = 0;
  NodeId any_host = 0;
  std::bitset<policy::kMaxLabels + 1> suffix_labels;  // the lengths that there are
  std::size_t longest_literal = 0;

 private:
  struct Slot {
    std::uint32_t hash = 0;
    NodeId node = 0;
  };

  [[nodiscard]] NodeId look_up(NodeId parent, const policy::Label& label) const;
  NodeId make_node(NodeId parent, std::string_view name);
  NodeId named_child(NodeId parent, const policy::Label& label);
  NodeId next_child(NodeId parent, std::size_t which);
  NodeId add_host(const policy::HostPattern& host);
  NodeId add_path(NodeId node, const policy::PathPattern& path, policy::Specificity& rank);
  void add_hit(NodeId node, std::size_t scheme);
  void insert(std::uint32_t hash, NodeId node);
  void put(std::uint32_t hash, NodeId node);

  std::string text;         // the names of all nodes
  std::vector<Slot> slots;  // a power of two of them, half of them free
  std::size_t used = 0;
};

}  // namespace httpretry
