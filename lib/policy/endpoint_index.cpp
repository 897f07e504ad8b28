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
      : method{asked_method},
        host{policy::without_trailing_dots(url.host())},
        port(url.port()),
        path(policy::split_path(url.path())),
        scheme(url.scheme() == "http" ? policy::kHttp : policy::kHttps) {
    // No pattern is longer, and no name that can be looked up.
    if (host.text.size() > policy::kMaxHost) host = {};
    take_path(data);
  }

  void take_path(const Data& data);

  Label method;
  Label host;
  policy::PortText port;
  policy::Segments path;
  std::uint32_t scheme;
};

// Three bytes may encode one. A longer segment than that equals no literal; its beginning neither,
// and is enough to see that.
void Question::take_path(const Data& data) {
  const auto longest = 3 * data.longest_literal + 1;
  for (std::size_t i = 0; i < std::min(path.count, path.kept.size()); ++i) {
    path.kept[i].text = path.kept[i].text.substr(0, longest);
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
    if (data_.suffix_labels.any() && suffixes()) return true;
    return ports(data_.any_host);
  }

 private:
  // Those of the host that a pattern may have, the longest first.
  bool suffixes() {
    const auto name = question_.host.text;
    std::array<std::uint8_t, policy::kMaxLabels> begins;  // NOLINT: set as counted
    std::size_t count = 0;
    std::size_t labels = 0;
    for (auto i = name.size(); i-- > 1;) {
      if (name[i] != '.' || ++labels > policy::kMaxLabels || !data_.suffix_labels[labels]) continue;
      begins[count++] = static_cast<std::uint8_t>(i + 1);
    }
    while (count-- > 0) {
      if (ports(data_.child(data_.suffixes, {name.substr(begins[count])}))) return true;
    }
    return false;
  }

  bool ports(NodeId host) {
    if (host == kNone) return false;
    return path(data_.port(host, question_.port), 0) || path(host, 0);
  }

  // `depth` segments have led to the node; it is 16 at most, as patterns have no more steps.
  bool path(NodeId node, std::size_t depth) {
    if (node == kNone) return false;
    if (depth == question_.path.count) {
      return methods(node + policy::kRest) || methods(node + policy::kEnd);
    }
    return path(data_.child(node, question_.path.kept[depth]), depth + 1) ||
           path(data_.at(node, policy::kOne), depth + 1) || methods(node + policy::kRest);
  }

  bool methods(std::uint32_t place) {
    const auto end = data_.at(place, 0);
    if (end == kNone || (end & policy::kPattern) != 0) return hit(place);
    const auto given = data_.child(end, question_.method);
    return (given != kNone && schemes(given)) || schemes(end);
  }

  bool schemes(NodeId end) { return hit(end + question_.scheme) || hit(end + policy::kAnyScheme); }

  bool hit(std::uint32_t place) {
    const auto pattern = data_.at(place, 0);
    if (pattern == kNone) return false;
    if (!first) first = pattern & ~policy::kPattern;
    if (all_ == nullptr) return true;
    all_->push_back(pattern & ~policy::kPattern);
    auto tied = std::lower_bound(data_.tied.begin(), data_.tied.end(), Data::Tied{place, 0});
    for (; tied != data_.tied.end() && tied->place == place; ++tied) {
      all_->push_back(tied->pattern);
    }
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
