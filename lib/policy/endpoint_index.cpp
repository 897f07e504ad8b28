#include "lib/policy/endpoint_pattern.hpp"

#include <algorithm>
#include <bitset>
#include <map>
#include <stdexcept>
#include <utility>

namespace httpretry {

using policy::Label;
using policy::Step;
using HostKind = policy::HostPattern::Kind;

namespace {

using NodeId = std::uint32_t;
constexpr NodeId kNone = 0;  // a node without children
constexpr NodeId kHosts = 1;
constexpr NodeId kSuffixes = 2;
constexpr NodeId kSeveral = 0xFFFFFFFF;
constexpr std::uint32_t kNoPattern = 0xFFFFFFFF;

// The names below a node (hosts, ports, literal segments, methods, schemes) are its named children.
// If there is only one, it is compared directly; several are in a hash table, Data::slots. A node
// has 32 bytes, half a cache line.
struct Node {
  NodeId parent = kNone;
  NodeId any = kNone;    // for any segment; or where the pattern leaves this part out
  NodeId rest = kNone;   // in a path: for "**"
  NodeId end = kNone;    // in a path: where it ends
  NodeId named = kNone;  // the single named child, or kSeveral
  std::uint32_t pattern = kNoPattern;
  std::uint32_t name_begin = 0;  // among the names
  std::uint32_t name_size = 0;
};

// How specific a pattern is: the most important member first. Names of hosts etc. do not matter.
struct Rank {
  HostKind host = HostKind::Any;
  std::size_t labels = 0;  // of a suffix
  bool port = false;
  std::vector<Step> path;
  bool methods = false;
  bool scheme = false;

  friend auto operator<=>(const Rank&, const Rank&) = default;
};

}  // namespace

// All patterns as one tree, in the order of their comparison: host, port, path, methods, scheme.
struct EndpointIndex::Data {
  [[nodiscard]] NodeId child(NodeId parent, const Label& label) const {
    const auto single = nodes[parent].named;
    if (single != kSeveral) return single != kNone && label.is(name(single)) ? single : kNone;
    return slots[slot_of(parent, label)];
  }
  [[nodiscard]] std::string_view name(NodeId node) const {
    return std::string_view(names).substr(nodes[node].name_begin, nodes[node].name_size);
  }
  void add(const EndpointPattern& pattern) {
    const auto host = policy::parse_host(pattern.host.value_or("*"));
    const auto path = policy::parse_path(pattern.path.value_or("/**"));
    const auto suffix = host.kind == HostKind::Suffix;
    const auto dots = std::count(host.name.begin(), host.name.end(), '.');
    ranks.push_back({host.kind, suffix ? static_cast<std::size_t>(dots) : 0,
                     pattern.port.has_value(), path.steps, !pattern.methods.empty(),
                     pattern.scheme.has_value()});

    if (suffix) suffix_sizes.set(host.name.size());
    auto node = host.kind == HostKind::Any ? child_at(kHosts, &Node::any)
                                           : named_child(suffix ? kSuffixes : kHosts, host.name);
    node = pattern.port ? named_child(node, std::to_string(*pattern.port))
                        : child_at(node, &Node::any);
    for (std::size_t i = 0; i < path.steps.size(); ++i) {
      node = path.steps[i] == Step::Literal
                 ? named_child(node, path.literals[i])
                 : child_at(node, path.steps[i] == Step::One ? &Node::any : &Node::rest);
    }
    if (path.steps.back() != Step::Rest) node = child_at(node, &Node::end);
    if (pattern.methods.empty()) add_end(child_at(node, &Node::any), pattern.scheme);
    for (const auto& method : pattern.methods) add_end(named_child(node, method), pattern.scheme);
  }

  std::vector<Node> nodes = std::vector<Node>(kSuffixes + 1);
  std::bitset<policy::kMaxHost + 1> suffix_sizes;   // those that patterns have
  std::vector<Rank> ranks;                          // of the patterns
  std::map<NodeId, std::vector<std::size_t>> tied;  // patterns that end where another did before
  std::vector<Tie> ties;

 private:
  // The slot of the child, or the free one where it belongs.
  [[nodiscard]] std::size_t slot_of(NodeId parent, const Label& label) const {
    constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;  // 2^64 / the golden ratio
    const auto mixed = (label.hash() ^ parent * kGolden) * kGolden;
    for (auto i = mixed >> 32;; ++i) {
      policy::count_step();
      const auto slot = i & (slots.size() - 1);
      const auto node = slots[slot];
      if (node == kNone || (nodes[node].parent == parent && label.is(name(node)))) return slot;
    }
  }
  void insert(NodeId node) {
    if (2 * ++used > slots.size()) {
      const auto before = std::exchange(slots, std::vector<NodeId>(2 * slots.size()));
      for (const auto moved : before) {
        if (moved != kNone) slots[slot_of(nodes[moved].parent, Label(name(moved)))] = moved;
      }
    }
    slots[slot_of(nodes[node].parent, Label(name(node)))] = node;
  }
  NodeId make_node(NodeId parent) {
    nodes.emplace_back().parent = parent;
    return static_cast<NodeId>(nodes.size() - 1);
  }
  NodeId named_child(NodeId parent, const std::string& name) {
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
  NodeId child_at(NodeId parent, NodeId Node::*slot) {
    if (nodes[parent].*slot == kNone) {
      const auto made = make_node(parent);
      nodes[parent].*slot = made;
    }
    return nodes[parent].*slot;
  }
  void add_end(NodeId methods, const std::optional<std::string>& scheme) {
    const auto end = scheme ? named_child(methods, *scheme) : child_at(methods, &Node::any);
    const auto pattern = static_cast<std::uint32_t>(ranks.size() - 1);
    if (auto& first = nodes[end].pattern; first == kNoPattern) {
      first = pattern;
    } else {
      tied[end].push_back(pattern);
      ties.push_back({pattern, first});
    }
  }

  std::string names;  // of all nodes
  // The named children of nodes that have several, by hash: a power of two, half of them free. An
  // array, as most of what a look-up among 100 000 patterns costs is cache misses.
  std::vector<NodeId> slots = std::vector<NodeId>(8);
  std::size_t used = 0;
};

namespace {

// Walks the tree for one request, the more specific child first, so that the first pattern met is
// the winner. Each step says whether the walk is over.
class Walk {
 public:
  Walk(const EndpointIndex::Data& data, std::string_view method, const Url& url,
       std::vector<std::size_t>* all)
      : data_(data),
        host_(policy::without_trailing_dots(url.host())),
        port_text_(std::to_string(url.port())),  // too short to allocate
        port_(port_text_),
        path_(policy::split_path(url.path())),
        method_(method),
        scheme_(url.scheme()),
        all_(all) {}

  std::optional<std::size_t> winner() {
    // A longer name cannot be looked up: only patterns for any host match it.
    if (host_.size() > policy::kMaxHost) host_ = {};
    if (!ports(data_.child(kHosts, Label(host_))) && !suffixes()) ports(data_.nodes[kHosts].any);
    return winner_;
  }

 private:
  // Tries the longest suffix first. At least one label must come before a suffix.
  bool suffixes() {
    for (auto dot = host_.find('.', 1); dot != host_.npos; dot = host_.find('.', dot + 1)) {
      policy::count_step();
      const auto suffix = host_.substr(dot + 1);
      if (!data_.suffix_sizes[suffix.size()]) continue;
      if (ports(data_.child(kSuffixes, Label(suffix)))) return true;
    }
    return false;
  }

  bool ports(NodeId host) {
    return path(data_.child(host, port_), 0) || path(data_.nodes[host].any, 0);
  }

  // `depth` segments have led to the node; it is 16 at most, as patterns have no more steps.
  bool path(NodeId node, std::size_t depth) {
    if (node == kNone) return false;
    policy::count_step();
    const auto& [parent, any, rest, end, named, pattern, name_begin, name_size] = data_.nodes[node];
    if (depth == path_.count) return methods(rest) || methods(end);
    return path(data_.child(node, path_.kept[depth]), depth + 1) || path(any, depth + 1) ||
           methods(rest);
  }

  bool methods(NodeId node) {
    return schemes(data_.child(node, method_)) || schemes(data_.nodes[node].any);
  }

  bool schemes(NodeId node) {
    return hit(data_.child(node, scheme_)) || hit(data_.nodes[node].any);
  }

  bool hit(NodeId node) {
    const auto pattern = data_.nodes[node].pattern;
    if (pattern == kNoPattern) return false;
    if (!winner_) winner_ = pattern;
    if (all_ == nullptr) return true;
    all_->push_back(pattern);
    if (const auto tied = data_.tied.find(node); tied != data_.tied.end()) {
      all_->insert(all_->end(), tied->second.begin(), tied->second.end());
    }
    return false;
  }

  const EndpointIndex::Data& data_;
  std::string_view host_;
  std::string port_text_;
  Label port_;
  policy::Segments path_;
  Label method_;
  Label scheme_;
  std::vector<std::size_t>* all_;
  std::optional<std::size_t> winner_;
};

constexpr std::string_view kHostNames[] = {"any", "a suffix", "exact"};
constexpr std::string_view kStepNames[] = {"\"**\"", "\"*\"", "literal"};

template <class Enum>
std::string not_the_other(const std::string& what, const std::string_view (&names)[3], Enum has,
                          Enum other) {
  return what + " is " + std::string(names[static_cast<std::size_t>(has)]) + ", not " +
         std::string(names[static_cast<std::size_t>(other)]);
}

std::string why_path_less(const std::vector<Step>& lost, const std::vector<Step>& won) {
  const auto [a, b] = std::mismatch(lost.begin(), lost.end(), won.begin(), won.end());
  if (a == lost.end()) return "its path is shorter";
  return not_the_other("segment " + std::to_string(a - lost.begin() + 1) + " of its path",
                       kStepNames, *a, *b);
}

}  // namespace

EndpointIndex::EndpointIndex(const std::vector<EndpointPattern>& patterns) {
  auto data = std::make_shared<Data>();
  for (const auto& pattern : patterns) {
    const auto problems = problems_of(pattern);
    if (!problems.empty()) throw std::invalid_argument(problems.front().message);
    data->add(pattern);
  }
  // Patterns that share several methods tie in each of them.
  auto& ties = data->ties;
  std::sort(ties.begin(), ties.end());
  ties.erase(std::unique(ties.begin(), ties.end()), ties.end());
  data_ = std::move(data);
}

std::optional<std::size_t> EndpointIndex::find(std::string_view method, const Url& url) const {
  return data_ ? Walk(*data_, method, url, nullptr).winner() : std::nullopt;
}

std::vector<std::size_t> EndpointIndex::matches(std::string_view method, const Url& url) const {
  std::vector<std::size_t> all;
  if (data_) Walk(*data_, method, url, &all).winner();
  return all;
}

std::string EndpointIndex::why_less(std::size_t loser, std::size_t winner) const {
  const auto& lost = data_->ranks.at(loser);
  const auto& won = data_->ranks.at(winner);
  if (lost > won) return {};
  if (lost.host != won.host) return not_the_other("its host", kHostNames, lost.host, won.host);
  if (lost.labels != won.labels) return "its host is a shorter suffix";
  if (lost.port != won.port) return "it names no port";
  if (lost.path != won.path) return why_path_less(lost.path, won.path);
  if (lost.methods != won.methods) return "it names no methods";
  if (lost.scheme != won.scheme) return "it names no scheme";
  return "it is equally specific and comes later";
}

const std::vector<EndpointIndex::Tie>& EndpointIndex::ties() const {
  static const std::vector<Tie> none;
  return data_ ? data_->ties : none;
}

}  // namespace httpretry
