#include "endpoint_tree.hpp"

#include <algorithm>
#include <stdexcept>

namespace httpretry {
namespace {

using policy::kNone;
using policy::Label;
using policy::NodeId;
using Data = EndpointIndex::Data;

// A request, prepared once for all the places of the tree that it is compared in.
struct Question {
  Question(const Data& data, std::string_view asked_method, const Url& url)
      : method{asked_method, policy::hash_of_data(asked_method), false},
        port(url.port()),
        scheme(url.scheme() == "http" ? policy::kHttp : policy::kHttps) {
    take_host(data, policy::without_trailing_dots(url.host()));
    take_path(data, policy::split_path(url.path()));
  }

  void take_host(const Data& data, std::string_view name);
  void take_path(const Data& data, const policy::Segments& path);

  Label method;
  Label host;
  policy::PortText port;
  std::size_t scheme;
  std::size_t segment_count = 0;
  std::array<Label, policy::kMaxSegments + 1> segments;

  // The suffixes of the host that a pattern may have, the shortest first.
  struct Suffix {
    std::size_t begin;
    std::uint64_t hash;
  };
  std::size_t suffix_count = 0;
  std::array<Suffix, policy::kMaxLabels> suffixes;  // what is not counted is not set: 2 KiB
};

// One pass from the end meets the hash of each suffix on the way to that of the whole.
void Question::take_host(const Data& data, std::string_view name) {
  auto hash = policy::kHashStart;
  std::size_t labels = 0;
  for (auto i = name.size(); i-- > 0;) {
    if (name[i] == '.' && i > 0 && ++labels <= policy::kMaxLabels && data.suffix_labels[labels]) {
      suffixes[suffix_count++] = {i + 1, hash};
    }
    hash = policy::mixed(hash, name[i]);
  }
  host = {name, hash, false};
}

void Question::take_path(const Data& data, const policy::Segments& path) {
  segment_count = path.count;
  for (std::size_t i = 0; i < std::min(path.count, path.kept.size()); ++i) {
    const auto text = path.kept[i];
    segments[i].text = text;
    // Three bytes may encode one; what is longer equals no literal and needs no hash.
    if (text.size() > 3 * data.longest_literal) continue;
    segments[i].encoded = text.find('%') != std::string_view::npos;
    segments[i].hash =
        segments[i].encoded ? policy::hash_of_segment(text) : policy::hash_of_data(text);
  }
}

// Walks the tree, the more specific child first, so that the first pattern met is the winner.
// Each step says whether the walk is over.
class Walk {
 public:
  Walk(const Data& data, const Question& question, std::vector<std::size_t>* all)
      : data_(data), question_(question), all_(all) {}

  std::optional<std::size_t> first;

  bool hosts() {
    if (ports(data_.child(data_.exact_hosts, question_.host))) return true;
    for (auto i = question_.suffix_count; i-- > 0;) {
      const auto& suffix = question_.suffixes[i];
      const Label label{question_.host.text.substr(suffix.begin), suffix.hash, false};
      if (ports(data_.child(data_.suffixes, label))) return true;
    }
    return ports(data_.any_host);
  }

 private:
  bool ports(NodeId host) {
    if (host == kNone) return false;
    return path(data_.child(host, question_.port.label()), 0) ||
           path(data_.nodes[host].next[policy::kAnyPort], 0);
  }

  // `depth` segments have led to the node; it is 16 at most, as patterns have no more steps.
  bool path(NodeId at, std::size_t depth) {
    if (at == kNone) return false;
    const auto& node = data_.nodes[at];
    if (depth == question_.segment_count) {
      return methods(node.next[policy::kRest]) || methods(node.next[policy::kEnd]);
    }
    return path(data_.child(at, question_.segments[depth]), depth + 1) ||
           path(node.next[policy::kOne], depth + 1) || methods(node.next[policy::kRest]);
  }

  bool methods(NodeId end) {
    if (end == kNone) return false;
    const auto given = data_.child(end, question_.method);
    return (given != kNone && schemes(given)) || schemes(end);
  }

  bool schemes(NodeId end) {
    const auto& next = data_.nodes[end].next;
    return hits(next[question_.scheme]) || hits(next[policy::kAnyScheme]);
  }

  bool hits(std::uint32_t hit) {
    if (hit == 0) return false;
    if (!first) first = data_.hits[hit].pattern;
    if (all_ == nullptr) return true;
    const auto before = static_cast<std::ptrdiff_t>(all_->size());
    for (; hit != 0; hit = data_.hits[hit].next) all_->push_back(data_.hits[hit].pattern);
    std::sort(all_->begin() + before, all_->end());
    return false;
  }

  const Data& data_;
  const Question& question_;
  std::vector<std::size_t>* all_;
};

std::string_view name_of(policy::HostPattern::Kind kind) {
  switch (kind) {
    case policy::HostPattern::Kind::Exact: return "exact";
    case policy::HostPattern::Kind::Suffix: return "a suffix";
    case policy::HostPattern::Kind::Any: return "any";
  }
  return "?";
}

std::string_view name_of(policy::Step step) {
  switch (step) {
    case policy::Step::Literal: return "literal";
    case policy::Step::One: return "\"*\"";
    case policy::Step::Rest: return "\"**\"";
  }
  return "?";
}

std::string not_the_other(std::string_view what, std::string_view has, std::string_view other) {
  return std::string(what).append(" is ").append(has).append(", not ").append(other);
}

// Empty where the paths are equally specific, or the second is less so.
std::string why_path_less(const policy::Specificity& lost, const policy::Specificity& won) {
  for (std::size_t i = 0; i < std::min(lost.steps, won.steps); ++i) {
    if (lost.step(i) < won.step(i)) return {};
    if (lost.step(i) == won.step(i)) continue;
    return not_the_other("segment " + std::to_string(i + 1) + " of its path", name_of(lost.step(i)),
                         name_of(won.step(i)));
  }
  return lost.steps < won.steps ? "its path is shorter" : "";
}

bool same_path(const policy::Specificity& a, const policy::Specificity& b) {
  return a.steps == b.steps && a.path == b.path;
}

}  // namespace

EndpointIndex::EndpointIndex() = default;

EndpointIndex::EndpointIndex(const std::vector<EndpointPattern>& patterns) {
  auto data = std::make_shared<Data>();
  for (const auto& pattern : patterns) {
    const auto problems = problems_of(pattern);
    if (!problems.empty()) throw std::invalid_argument(problems.front().message);
    data->add(pattern);
  }
  data->finish();
  data_ = std::move(data);
}

std::optional<std::size_t> EndpointIndex::find(std::string_view method, const Url& url) const {
  if (!data_) return std::nullopt;
  const Question question(*data_, method, url);
  Walk walk(*data_, question, nullptr);
  walk.hosts();
  return walk.first;
}

std::vector<std::size_t> EndpointIndex::matches(std::string_view method, const Url& url) const {
  std::vector<std::size_t> all;
  if (!data_) return all;
  const Question question(*data_, method, url);
  Walk walk(*data_, question, &all);
  walk.hosts();
  return all;
}

std::string EndpointIndex::why_less(std::size_t loser, std::size_t winner) const {
  const auto& lost = data_->patterns.at(loser);
  const auto& won = data_->patterns.at(winner);
  if (lost.host != won.host) {
    return lost.host < won.host ? ""
                                : not_the_other("its host", name_of(lost.host), name_of(won.host));
  }
  if (lost.labels != won.labels)
    return lost.labels < won.labels ? "its host is a shorter suffix" : "";
  if (lost.port != won.port) return won.port ? "it names no port" : "";
  if (!same_path(lost, won)) return why_path_less(lost, won);
  if (lost.methods != won.methods) return won.methods ? "it names no methods" : "";
  if (lost.scheme != won.scheme) return won.scheme ? "it names no scheme" : "";
  return "it is equally specific and stands later";
}

const std::vector<EndpointIndex::Tie>& EndpointIndex::ties() const {
  static const std::vector<Tie> none;
  return data_ ? data_->ties : none;
}

}  // namespace httpretry
