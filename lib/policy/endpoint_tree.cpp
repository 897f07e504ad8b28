#include "endpoint_tree.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace httpretry {
namespace policy {
namespace {

// Eight bytes at a time, as a name is looked up about once for every ten of its bytes.
class Hash {
 public:
  void add(const char* bytes, std::size_t size) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, size);
    value_ = (value_ ^ word ^ size) * 0x9E3779B97F4A7C15;
    value_ ^= value_ >> 32;
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xCBF29CE484222325;
};

std::uint64_t hash_of_data(std::string_view data) {
  Hash hash;
  for (; data.size() > 8; data.remove_prefix(8)) hash.add(data.data(), 8);
  hash.add(data.data(), data.size());
  return hash.value();
}

// The same of what the segment encodes.
std::uint64_t hash_of_segment(std::string_view text) {
  Hash hash;
  std::array<char, 8> bytes{};
  std::size_t size = 0;
  while (!text.empty()) {
    if (size == bytes.size()) {
      hash.add(bytes.data(), size);
      size = 0;
    }
    bytes[size++] = take_byte(text);
  }
  hash.add(bytes.data(), size);
  return hash.value();
}

// Where the search for a child begins.
std::uint32_t hash_of(NodeId parent, const Label& label) {
  const auto hash = label.encoded ? hash_of_segment(label.text) : hash_of_data(label.text);
  const auto mix = (hash ^ (parent * 0x9E3779B97F4A7C15)) * 0xD6E8FEB86659FD93;
  return static_cast<std::uint32_t>(mix >> 32);
}

}  // namespace
}  // namespace policy

using policy::kNone;
using policy::kPattern;
using policy::kSeveral;
using policy::Label;
using policy::NodeId;

EndpointIndex::Data::Data() : words(1) {
  exact_hosts = make_node(kNone, {});
  suffixes = make_node(kNone, {});
  any_host = make_node(kNone, {});
}

NodeId EndpointIndex::Data::look_up(NodeId parent, const Label& label) const {
  const auto hash = policy::hash_of(parent, label);
  for (auto i = hash & (slots.size() - 1);; i = (i + 1) & (slots.size() - 1)) {
    const auto& slot = slots[i];
    if (slot.node == kNone) return kNone;
    if (slot.hash != hash || at(slot.node, policy::kParent) != parent) continue;
    if (label.is(name(slot.node))) return slot.node;
  }
}

void EndpointIndex::Data::put(std::uint32_t hash, NodeId node) {
  auto i = hash & (slots.size() - 1);
  while (slots[i].node != kNone) i = (i + 1) & (slots.size() - 1);
  slots[i] = {hash, node};
}

void EndpointIndex::Data::insert(NodeId node) {
  if (2 * ++used > slots.size()) {
    std::vector<Slot> larger(std::max<std::size_t>(8, 2 * slots.size()));
    for (const auto& slot : std::exchange(slots, std::move(larger))) {
      if (slot.node != kNone) put(slot.hash, slot.node);
    }
  }
  put(policy::hash_of(at(node, policy::kParent), {name(node)}), node);
}

NodeId EndpointIndex::Data::make_node(NodeId parent, std::string_view name) {
  const auto made = words.size();
  const auto size = policy::kName + (name.size() + 3) / 4;
  if (made + size >= kPattern) throw std::length_error("too many endpoint patterns");
  words.resize(made + size);
  words[made + policy::kParent] = parent;
  words[made + policy::kLength] = static_cast<std::uint32_t>(name.size());
  std::copy(name.begin(), name.end(), reinterpret_cast<char*>(words.data() + made + policy::kName));
  return static_cast<NodeId>(made);
}

NodeId EndpointIndex::Data::named_child(NodeId parent, const Label& label) {
  if (const auto found = child(parent, label); found != kNone) return found;
  const auto made = make_node(parent, label.text);
  const auto single = at(parent, policy::kNamed);
  if (single == kNone) {
    words[parent + policy::kNamed] = made;
    return made;
  }
  if (single != kSeveral) {
    insert(single);
    words[parent + policy::kNamed] = kSeveral;
  }
  insert(made);
  return made;
}

NodeId EndpointIndex::Data::add_host(const policy::HostPattern& host) {
  using Kind = policy::HostPattern::Kind;
  if (host.kind == Kind::Any) return any_host;
  if (host.kind == Kind::Suffix) suffix_labels.set(host.labels);
  return named_child(host.kind == Kind::Exact ? exact_hosts : suffixes, {host.name});
}

NodeId EndpointIndex::Data::add_port(NodeId host, std::uint16_t number) {
  const policy::PortText text(number);
  if (const auto found = port(host, text); found != kNone) return found;
  const auto parent = host | policy::kHasPorts;
  const auto made = make_node(parent, text.label().text);
  words[host + policy::kLength] |= policy::kHasPorts;
  insert(made);
  return made;
}

// The word in which the path ends.
std::uint32_t EndpointIndex::Data::add_path(NodeId node, const policy::PathPattern& path,
                                            policy::Specificity& rank) {
  rank.steps = static_cast<std::uint8_t>(path.steps.size());
  for (std::size_t i = 0; i < path.steps.size(); ++i) {
    const auto step = path.steps[i];
    rank.path |= static_cast<std::uint32_t>(step) << (2 * i);
    if (step == policy::Step::Rest) return node + policy::kRest;
    if (step == policy::Step::One) {
      if (at(node, policy::kOne) == kNone) {
        const auto made = make_node(node, {});
        words[node + policy::kOne] = made;
      }
      node = at(node, policy::kOne);
    } else {
      const auto& literal = path.literals[i];
      longest_literal = std::max(longest_literal, literal.size());
      node = named_child(node, {literal});
    }
  }
  return node + policy::kEnd;
}

// A pattern with neither methods nor scheme stands in the word itself while it is alone there.
void EndpointIndex::Data::add_end(std::uint32_t place, const EndpointPattern& pattern) {
  if (words[place] == kNone && pattern.methods.empty() && !pattern.scheme) {
    return add_hit(place);
  }
  if (words[place] == kNone || (words[place] & kPattern) != 0) {
    const auto made = make_node(kNone, {});
    words[made + policy::kAnyScheme] = std::exchange(words[place], made);
  }
  const auto end = words[place];
  const auto scheme = !pattern.scheme             ? policy::kAnyScheme
                      : *pattern.scheme == "http" ? policy::kHttp
                                                  : policy::kHttps;
  if (pattern.methods.empty()) add_hit(end + scheme);
  for (const auto& method : pattern.methods) {
    add_hit(named_child(end, {method}) + scheme);
  }
}

void EndpointIndex::Data::add_hit(std::uint32_t place) {
  const auto pattern = static_cast<std::uint32_t>(patterns.size() - 1);
  if (words[place] == kNone) {
    words[place] = pattern | kPattern;
  } else {
    tied.push_back({place, pattern});
    ties.push_back({pattern, words[place] & ~kPattern});
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
  if (pattern.port) node = add_port(node, *pattern.port);
  add_end(add_path(node, path, rank), pattern);
}

void EndpointIndex::Data::finish() {
  words.shrink_to_fit();
  patterns.shrink_to_fit();
  std::sort(tied.begin(), tied.end());
  // Patterns that share several methods tie in each of them.
  std::sort(ties.begin(), ties.end());
  ties.erase(std::unique(ties.begin(), ties.end()), ties.end());
}

}  // namespace httpretry
