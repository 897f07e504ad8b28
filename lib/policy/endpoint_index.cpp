#include "lib/policy/endpoint_tree.hpp"

#include <algorithm>
#include <stdexcept>
#include <unordered_set>
#include <utility>

namespace httpretry {

using namespace policy;

namespace {

// Walks the tree for one request, the more specific child first. Each step says whether a match was
// found, so that what is less specific need not be followed.
class Walk {
 public:
  using Match = EndpointIndex::Match;

  Walk(const EndpointIndex::Data& data, std::string_view method, const Url& url,
       const Headers& headers, std::vector<Match>* all)
      : data_(data),
        host_(without_trailing_dots(url.host())),
        port_(url.port()),
        path_(split_path(url.path(), data.inner_rest)),
        method_(method),
        scheme_(url.scheme()),
        headers_(headers),
        query_(url.query()),
        all_(all) {}

  std::optional<std::size_t> winner() {
    // A longer name cannot be looked up: only patterns for any host match it.
    if (host_.size() > kMaxHost) host_ = {};
    if (!ports(data_.child(kHosts, Part::Host, Label(host_)))) {
      host_patterns(kHostPatterns, host_, {});
      if (winner_.rank == 0 || all_ != nullptr) ports(data_.nodes[kHosts].any);
    }
    return winner_.rank == 0 ? std::nullopt : std::optional(winner_.pattern);
  }

 private:
  struct FixedLabels {
    std::size_t all = 0;
    std::size_t at_end = 0;
    bool after_any = false;
  };

  // `left` is the part of the host that has not led to the node. Without data, it is all used.
  void host_patterns(NodeId node, std::string_view left, const FixedLabels& fixed) {
    if (node == kNone) return;
    count_step();
    if (left.data() == nullptr) return host_pattern(data_.child(node, Part::HostEnd, {}), fixed);
    const auto dot = left.rfind('.');
    const auto label = left.substr(dot + 1);  // all of it where there is no dot
    const auto further = dot == left.npos ? std::string_view() : left.substr(0, dot);
    auto with_label = fixed;
    ++with_label.all;
    if (!fixed.after_any) ++with_label.at_end;
    host_patterns(data_.child(node, Part::Label, Label(label)), further, with_label);
    auto with_any = fixed;
    with_any.after_any = true;
    if (!label.empty()) host_patterns(data_.nodes[node].any, further, with_any);
    if (!left.empty()) host_pattern(data_.nodes[node].rest, fixed);
  }

  void host_pattern(NodeId node, const FixedLabels& fixed) {
    if (node == kNone) return;
    const auto rank = host_rank(fixed.all, fixed.at_end);
    if (all_ == nullptr && rank < winner_.rank >> kHostShift) return;
    ports(node);
  }

  bool ports(NodeId host) {
    if (data_.has_named(host, Part::Port)) {
      const auto text = std::to_string(port_);  // too short to allocate
      if (path(data_.child(host, Part::Port, Label(text)), 0)) return true;
    }
    return path(host, 0);
  }

  // `depth` segments have led to the node; patterns have 16 steps at most, so this ends.
  bool path(NodeId node, std::size_t depth) {
    if (node == kNone) return false;
    count_step();
    const auto any = data_.nodes[node].any;
    const auto rest = data_.nodes[node].rest;
    if (depth == path_.count) return methods(rest) || methods(node);
    return path(data_.child(node, Part::Segment, path_[depth]), depth + 1) ||
           path(any, depth + 1) || after_rest(rest, depth);
  }

  // What follows a "**" may begin anywhere, and each place may lead to another match.
  bool after_rest(NodeId node, std::size_t depth) {
    if (node == kNone) return false;
    auto found = false;
    const auto any = data_.nodes[node].any;
    const bool ends = any == kNone && !data_.has_named(node, Part::Segment);
    for (auto at = depth; at < path_.count && !ends; ++at) {
      const auto here =
          path(data_.child(node, Part::Segment, path_[at]), at + 1) || path(any, at + 1);
      found = found || here;
    }
    return found || methods(node);
  }

  bool methods(NodeId node) {
    if (node == kNone) return false;
    return schemes(data_.child(node, Part::Method, method_)) || schemes(node);
  }

  bool schemes(NodeId node) {
    if (node == kNone) return false;
    return end(data_.child(node, Part::Scheme, scheme_)) || end(node);
  }

  bool end(NodeId node) {
    if (data_.nodes[node].entry == kNoEntry) return false;
    for (std::size_t i = data_.nodes[node].entry; i < data_.entries.size(); ++i) {
      if (data_.entries[i].node != node) break;
      count_step();
      if (hit(data_.entries[i])) return true;
    }
    return false;
  }

  // Whether that was the end of this way.
  bool hit(const IndexEntry& entry) {
    if (!conditions_hold(entry)) return false;
    const bool better = entry.rank > winner_.rank ||
                        (entry.rank == winner_.rank && entry.pattern < winner_.pattern);
    if (better) winner_ = {entry.pattern, entry.rank};
    if (all_ != nullptr) all_->push_back({entry.pattern, entry.rank});
    return all_ == nullptr;
  }

  [[nodiscard]] bool conditions_hold(const IndexEntry& entry) const {
    if ((entry.rank & kMostConditions) == 0) return true;
    return data_.conditions.at(entry.pattern).hold(headers_, query_);
  }

  const EndpointIndex::Data& data_;
  std::string_view host_;
  std::uint16_t port_;
  Segments path_;
  Label method_;
  Label scheme_;
  const Headers& headers_;
  std::string_view query_;
  std::vector<Match>* all_;
  Match winner_;  // each rank is more than 0, as a path has a step
};

constexpr std::string_view kHostNames[] = {"any", "one with \"*\"", "exact"};
constexpr std::string_view kStepNames[] = {"", "any rest", "any", "literal"};

std::string not_the_other(const std::string& what, std::string_view has, std::string_view other) {
  return what + " is " + std::string(has) + ", not " + std::string(other);
}

std::string_view host_name(std::uint64_t host) {
  if (host == 0) return kHostNames[0];
  return kHostNames[host >> 14U == 0 ? 1 : 2];
}

std::string why_host_less(std::uint64_t lost, std::uint64_t won) {
  if (host_name(lost) != host_name(won)) {
    return not_the_other("its host", host_name(lost), host_name(won));
  }
  return lost >> 7U != won >> 7U ? "its host has fewer fixed labels"
                                 : "the fixed end of its host is shorter";
}

std::string why_path_less(std::uint64_t lost, std::uint64_t won) {
  for (std::size_t i = 1; i <= kMaxSegments; ++i) {
    const auto shift = 2 * (kMaxSegments - i);
    const auto here = lost >> shift & 3U;
    const auto other = won >> shift & 3U;
    if (here == other) continue;
    if (here == 0) break;
    return not_the_other("segment " + std::to_string(i) + " of its path", kStepNames[here],
                         kStepNames[other]);
  }
  return "its path is shorter";
}

}  // namespace

EndpointIndex::EndpointIndex(const std::vector<EndpointPattern>& patterns) {
  auto data = std::make_shared<Data>();
  for (std::uint32_t number = 0; number < patterns.size(); ++number) {
    const auto problems = problems_of(patterns[number]);
    if (!problems.empty()) throw std::invalid_argument(problems.front().message);
    data->add(number, patterns[number]);
  }
  data->finish(patterns);
  data_ = std::move(data);
}

std::optional<std::size_t> EndpointIndex::find(std::string_view method, const Url& url,
                                               const Headers& headers) const {
  return data_ ? Walk(*data_, method, url, headers, nullptr).winner() : std::nullopt;
}

std::vector<EndpointIndex::Match> EndpointIndex::matches(std::string_view method, const Url& url,
                                                         const Headers& headers) const {
  std::vector<Match> all;
  if (data_) Walk(*data_, method, url, headers, &all).winner();
  std::sort(all.begin(), all.end(), [](const Match& a, const Match& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.pattern < b.pattern;
  });
  // A pattern may match by several hosts, and in several ways: the most specific counts.
  std::vector<Match> once;
  std::unordered_set<std::size_t> known;
  for (const auto& match : all) {
    if (known.insert(match.pattern).second) once.push_back(match);
  }
  return once;
}

std::string EndpointIndex::why_less(const Match& loser, const Match& winner) {
  const auto lost = loser.rank;
  const auto won = winner.rank;
  const auto differ = [&](int shift) { return lost >> shift != won >> shift; };
  if (lost > won) return {};
  if (differ(kHostShift)) return why_host_less(lost >> kHostShift, won >> kHostShift);
  if (differ(kHostShift - 1)) return "it names no port";
  if (differ(kPathShift)) {
    return why_path_less(lost >> kPathShift & 0xFFFFFFFF, won >> kPathShift & 0xFFFFFFFF);
  }
  if (differ(15)) return "it names no methods";
  if (differ(14)) return "it names no scheme";
  if (differ(0)) return "it has fewer conditions";
  return "it is equally specific and comes later";
}

const std::vector<EndpointIndex::Tie>& EndpointIndex::ties() const {
  static const std::vector<Tie> none;
  return data_ ? data_->ties : none;
}

}  // namespace httpretry
