// All patterns as one tree, in the order of their comparison: host, port, path, methods, scheme.
//
// Made for few cache misses, which are what a look-up among 100 000 patterns costs. The nodes lie
// in one array, each with its name behind it, so that those of a pattern are neighbours. A node has
// up to three children that stand for a kind of step, and any number of named ones (literal
// segments, methods). A single named child is held in the node itself, and compared without a
// look-up; of several, each is found by one look-up in a hash table that all nodes share.
#pragma once

#include "endpoint_host.hpp"
#include "endpoint_path.hpp"

#include <httpretry/policy/endpoint.hpp>

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry::policy {

struct PortText {
  explicit PortText(std::uint16_t port)
      : bytes{static_cast<char>(port >> 8), static_cast<char>(port & 0xFF)} {}
  [[nodiscard]] Label label() const {
    return {std::string_view(bytes.data(), bytes.size()), false};
  }
  std::array<char, 2> bytes;
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

// A node is the place of its first word in the array; 0 is none. As a child it may also be a
// pattern's number with kPattern set: where the walk ends.
using NodeId = std::uint32_t;
inline constexpr NodeId kNone = 0;
inline constexpr NodeId kPattern = 0x80000000;

// The words of a node; its name follows.
enum Word : std::uint32_t {
  kParent,
  kLength,  // of its name; with kHasPorts
  kNamed,   // its single named child, or kSeveral
  // After a host, or a port, or a segment: the children for "*" and for "**", and what ends here.
  kOne,
  kRest,
  kEnd,
  kName,
  // After the path, or a method: the patterns by their scheme.
  kHttp = kOne,
  kHttps = kRest,
  kAnyScheme = kEnd,
};
inline constexpr NodeId kSeveral = 0xFFFFFFFF;

// A host has its patterns without a port below itself, and its ports as named children of a parent
// that is itself with this bit.
inline constexpr std::uint32_t kHasPorts = 0x80000000;

}  // namespace httpretry::policy

namespace httpretry {

struct EndpointIndex::Data {
  using NodeId = policy::NodeId;

  Data();
  void add(const EndpointPattern& pattern);
  void finish();  // after the last

  [[nodiscard]] std::uint32_t at(NodeId node, std::uint32_t word) const {
    return words[node + word];
  }
  [[nodiscard]] NodeId child(NodeId parent, const policy::Label& label) const {
    const auto named = at(parent, policy::kNamed);
    if (named == policy::kNone) return policy::kNone;
    if (named != policy::kSeveral) return label.is(name(named)) ? named : policy::kNone;
    return look_up(parent, label);
  }
  [[nodiscard]] NodeId port(NodeId host, const policy::PortText& number) const {
    if ((at(host, policy::kLength) & policy::kHasPorts) == 0) return policy::kNone;
    return look_up(host | policy::kHasPorts, number.label());
  }
  [[nodiscard]] std::string_view name(NodeId node) const {
    return {reinterpret_cast<const char*>(words.data() + node + policy::kName),
            at(node, policy::kLength) & ~policy::kHasPorts};
  }

  // Patterns that end where another did before them.
  struct Tied {
    std::uint32_t place;  // the word that holds the first
    std::uint32_t pattern;
    friend auto operator<=>(const Tied&, const Tied&) = default;
  };

  std::vector<policy::Specificity> patterns;
  std::vector<Tied> tied;  // in order
  std::vector<EndpointIndex::Tie> ties;
  NodeId exact_hosts = policy::kNone;
  NodeId suffixes = policy::kNone;
  NodeId any_host = policy::kNone;
  std::bitset<policy::kMaxLabels + 1> suffix_labels;  // the lengths that there are
  std::size_t longest_literal = 0;

 private:
  struct Slot {
    std::uint32_t hash = 0;
    NodeId node = policy::kNone;
  };

  [[nodiscard]] NodeId look_up(NodeId parent, const policy::Label& label) const;
  NodeId make_node(NodeId parent, std::string_view name);
  NodeId named_child(NodeId parent, const policy::Label& label);
  NodeId add_host(const policy::HostPattern& host);
  NodeId add_port(NodeId host, std::uint16_t number);
  std::uint32_t add_path(NodeId node, const policy::PathPattern& path, policy::Specificity& rank);
  void add_end(std::uint32_t place, const EndpointPattern& pattern);
  void add_hit(std::uint32_t place);
  void insert(NodeId node);
  void put(std::uint32_t hash, NodeId node);

  std::vector<std::uint32_t> words;
  std::vector<Slot> slots;  // a power of two of them, half of them free
  std::size_t used = 0;
};

}  // namespace httpretry
