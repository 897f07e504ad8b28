#include "lib/policy/endpoint_pattern.hpp"

#include <algorithm>
#include <bitset>
#include <map>
#include <stdexcept>
#include <unordered_map>

namespace httpretry {

using policy::Label;
using policy::Step;
using HostKind = policy::HostPattern::Kind;

namespace {

using NodeId = std::uint32_t;
constexpr NodeId kNone = 0;  // a node without children
constexpr NodeId kHosts = 1;
constexpr NodeId kSuffixes = 2;

// The names below a node (a host, a port, a literal segment, a method, a scheme) are found by hash.
struct Node {
  NodeId parent = kNone;
  NodeId any = kNone;   // for any segment; or where the pattern leaves this part out
  NodeId rest = kNone;  // in a path: for "**"
  NodeId end = kNone;   // in a path: where it ends
  std::optional<std::size_t> pattern;
  bool has_named = false;
  std::string name;
};

// What patterns are compared by, the most important first; names do not matter.
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
    if (!nodes[parent].has_named) return kNone;
    const auto sought = key(parent, label);
    for (auto at = named.find(sought); at != named.end() && at->first == sought; ++at) {
      const auto& node = nodes[at->second];
      if (node.parent == parent && label.is(node.name)) return at->second;
    }
    return kNone;
  }
  void add(const EndpointPattern& pattern);

  std::vector<Node> nodes = std::vector<Node>(kSuffixes + 1);
  std::bitset<policy::kMaxHost + 1> suffix_sizes;   // those that patterns have
  std::vector<Rank> ranks;                          // of the patterns
  std::map<NodeId, std::vector<std::size_t>> tied;  // patterns that end where another did before
  std::vector<Tie> ties;

 private:
  static constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;  // 2^64 / the golden ratio
  static std::uint64_t key(NodeId parent, const Label& label) {
    const auto mixed = (label.hash ^ parent * kGolden) * kGolden;
    return mixed ^ (mixed >> 32);
  }
  NodeId make_node(NodeId parent) {
    nodes.emplace_back().parent = parent;
    return static_cast<NodeId>(nodes.size() - 1);
  }
  NodeId named_child(NodeId parent, const std::string& name);
  NodeId child_at(NodeId parent, NodeId Node::*slot);
  void add_end(NodeId methods, const std::optional<std::string>& scheme);

  std::unordered_multimap<std::uint64_t, NodeId> named;
};

NodeId EndpointIndex::Data::named_child(NodeId parent, const std::string& name) {
  const Label label(name);
  if (const auto found = child(parent, label); found != kNone) return found;
  const auto made = make_node(parent);
  nodes[made].name = name;
  nodes[parent].has_named = true;
  named.emplace(key(parent, label), made);
  return made;
}

NodeId EndpointIndex::Data::child_at(NodeId parent, NodeId Node::*slot) {
  if (nodes[parent].*slot == kNone) {
    const auto made = make_node(parent);
    nodes[parent].*slot = made;
  }
  return nodes[parent].*slot;
}

void EndpointIndex::Data::add(const EndpointPattern& pattern) {
  const auto host = policy::parse_host(pattern.host.value_or("*"));
  const auto path = policy::parse_path(pattern.path.value_or("/**"));
  const auto suffix = host.kind == HostKind::Suffix;
  const auto dots = std::count(host.name.begin(), host.name.end(), '.');
  ranks.push_back({host.kind, suffix ? static_cast<std::size_t>(dots) : 0, pattern.port.has_value(),
                   path.steps, !pattern.methods.empty(), pattern.scheme.has_value()});

  if (suffix) suffix_sizes.set(host.name.size());
  auto node = host.kind == HostKind::Any ? child_at(kHosts, &Node::any)
                                         : named_child(suffix ? kSuffixes : kHosts, host.name);
  node =
      pattern.port ? named_child(node, std::to_string(*pattern.port)) : child_at(node, &Node::any);
  for (std::size_t i = 0; i < path.steps.size(); ++i) {
    node = path.steps[i] == Step::Literal
               ? named_child(node, path.literals[i])
               : child_at(node, path.steps[i] == Step::One ? &Node::any : &Node::rest);
  }
  if (path.steps.back() != Step::Rest) node = child_at(node, &Node::end);
  if (pattern.methods.empty()) add_end(child_at(node, &Node::any), pattern.scheme);
  for (const auto& method : pattern.methods) add_end(named_child(node, method), pattern.scheme);
}

void EndpointIndex::Data::add_end(NodeId methods, const std::optional<std::string>& scheme) {
  const auto end = scheme ? named_child(methods, *scheme) : child_at(methods, &Node::any);
  const auto pattern = ranks.size() - 1;
  if (auto& first = nodes[end].pattern; !first) {
    first = pattern;
  } else {
    tied[end].push_back(pattern);
    ties.push_back({pattern, *first});
  }
}

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
    // No name that can be looked up is longer.
    if (host_.size() > policy::kMaxHost) host_ = {};
    if (!ports(data_.child(kHosts, Label(host_))) && !suffixes()) ports(data_.nodes[kHosts].any);
    return winner_;
  }

 private:
  // The longest first. A label must stand before it.
  bool suffixes() {
    for (auto dot = host_.find('.', 1); dot != host_.npos; dot = host_.find('.', dot + 1)) {
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
    const auto& [parent, any, rest, end, pattern, has_named, name] = data_.nodes[node];
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
    const auto& pattern = data_.nodes[node].pattern;
    if (!pattern) return false;
    if (!winner_) winner_ = pattern;
    if (all_ == nullptr) return true;
    all_->push_back(*pattern);
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
  return "it is equally specific and stands later";
}

const std::vector<EndpointIndex::Tie>& EndpointIndex::ties() const {
  static const std::vector<Tie> none;
  return data_ ? data_->ties : none;
}

}  // namespace httpretry
