// Which of the patterns that are equally specific can match the same request.
#include "lib/policy/endpoint_tree.hpp"

#include "lib/http/text.hpp"

#include <algorithm>
#include <set>
#include <span>

namespace httpretry {

using namespace policy;

namespace {

constexpr std::size_t kFew = 16;
constexpr std::size_t kNoOther = SIZE_MAX;

// What an entry wants of one header, query item or label of the host. Two entries that want
// different values there match no request in common.
struct Wish {
  std::string about;
  std::string_view value;
  bool begins = false;  // what follows does not matter
};

using AllConditions = std::unordered_map<std::uint32_t, Conditions>;

void add_wishes(std::vector<Wish>& wishes, const AllConditions& all, std::uint32_t pattern) {
  const auto found = all.find(pattern);
  if (found == all.end()) return;
  const auto& conditions = found->second;
  for (const auto& one : conditions.headers) {
    wishes.push_back({"header " + to_lower(one.name), one.value, one.begins});
  }
  for (const auto& one : conditions.query) {
    wishes.push_back({"query " + one.name, one.value, one.begins});
  }
}

void add_wishes(std::vector<Wish>& wishes, const HostPattern& host) {
  for (std::size_t i = 0; i < host.labels.size(); ++i) {
    const auto& label = host.labels[host.labels.size() - 1 - i];
    if (label != "*") wishes.push_back({"label " + std::to_string(i), label, false});
  }
}

// Entries by what they want of one thing.
class ByWish {
 public:
  void add(std::uint32_t entry, const Wish& wish) {
    wishes_.push_back({wish.value, entry});
    if (wish.begins) lengths_.insert(wish.value.size());
  }

  void finish(std::size_t entries) {
    std::vector<bool> has(entries);
    for (const auto& wish : wishes_) has[wish.entry] = true;
    for (std::uint32_t i = 0; i < entries; ++i) {
      if (!has[i]) without_.push_back(i);
    }
    std::sort(wishes_.begin(), wishes_.end(), [](const Wanted& a, const Wanted& b) {
      return a.value != b.value ? a.value < b.value : a.entry < b.entry;
    });
  }

  [[nodiscard]] std::size_t count() const { return wishes_.size(); }
  // How many entries may match what one with that wish does, about.
  [[nodiscard]] std::size_t rivals(const Wish& wish) const {
    return alike(wish.value, wish.begins).size() + without_.size();
  }
  template <class Function>
  void each_rival(const Wish& wish, const Function& function) const {
    for (const auto entry : without_) function(entry);
    for (const auto& other : alike(wish.value, wish.begins)) function(other.entry);
    for (const auto length : lengths_) {
      if (length >= wish.value.size()) break;
      for (const auto& other : alike(wish.value.substr(0, length), false)) function(other.entry);
    }
  }

 private:
  struct Wanted {
    std::string_view value;
    std::uint32_t entry;
  };

  // Those that want that value, or one that begins with it.
  [[nodiscard]] std::span<const Wanted> alike(std::string_view value, bool begins) const {
    const auto cut = [&](std::string_view text) {
      return begins ? text.substr(0, value.size()) : text;
    };
    const auto first = std::partition_point(
        wishes_.begin(), wishes_.end(), [&](const auto& one) { return cut(one.value) < value; });
    const auto last = std::partition_point(
        first, wishes_.end(), [&](const auto& one) { return cut(one.value) == value; });
    return {first, last};
  }

  std::vector<Wanted> wishes_;
  std::vector<std::uint32_t> without_;
  std::set<std::size_t> lengths_;  // of the beginnings among the values
};

// To ask for each of many entries whether an earlier one can match the same request, without
// comparing all pairs: most entries want different values of one thing.
class Rivals {
 public:
  explicit Rivals(std::vector<std::vector<Wish>> wishes) : wishes_(std::move(wishes)) {
    if (wishes_.size() <= kFew) return;
    for (std::uint32_t i = 0; i < wishes_.size(); ++i) {
      for (const auto& wish : wishes_[i]) by_[wish.about].add(i, wish);
    }
    // What few speak of tells few apart, and there may be as many such things as entries.
    std::erase_if(by_, [&](const auto& one) { return one.second.count() < wishes_.size() / 2; });
    for (auto& one : by_) one.second.finish(wishes_.size());
  }

  // The first entry before `later` that meets it; kNoOther where none does.
  template <class Meet>
  [[nodiscard]] std::size_t first_before(std::size_t later, const Meet& meet) const {
    const Wish* best = nullptr;
    auto fewest = later / 2;  // where more are left, all are asked: the first that meets ends that
    for (const auto& wish : wishes_[later]) {
      const auto found = by_.find(wish.about);
      const auto count = found == by_.end() ? kNoOther : found->second.rivals(wish);
      if (count >= fewest) continue;
      fewest = count;
      best = &wish;
    }
    auto first = kNoOther;
    if (best == nullptr) {
      for (std::size_t i = 0; i < later && first == kNoOther; ++i) {
        if (meet(i)) first = i;
      }
      return first;
    }
    by_.at(best->about).each_rival(*best, [&](std::size_t other) {
      if (other < std::min(later, first) && meet(other)) first = other;
    });
    return first;
  }

 private:
  std::vector<std::vector<Wish>> wishes_;
  std::map<std::string, ByWish> by_;
};

bool methods_meet(const EndpointPattern& a, const EndpointPattern& b) {
  return a.methods.empty() || std::any_of(a.methods.begin(), a.methods.end(), [&](const auto& one) {
           return std::find(b.methods.begin(), b.methods.end(), one) != b.methods.end();
         });
}

}  // namespace

void EndpointIndex::Data::find_ties() {
  for (auto first = entries.begin(); first != entries.end();) {
    const auto end = std::find_if(first, entries.end(), [&](const IndexEntry& one) {
      return one.node != first->node || one.rank != first->rank;
    });
    find_ties_among({first, end});
    first = end;
  }
}

// They end at one node, and are equally specific.
void EndpointIndex::Data::find_ties_among(std::span<const IndexEntry> all) {
  if (all.size() < 2) return;
  std::vector<std::vector<Wish>> wishes(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) add_wishes(wishes[i], conditions, all[i].pattern);
  const Rivals rivals(std::move(wishes));
  for (std::size_t later = 1; later < all.size(); ++later) {
    const auto earlier = rivals.first_before(later, [&](std::size_t other) {
      return all[other].pattern != all[later].pattern &&
             conditions_meet(all[other].pattern, all[later].pattern);
    });
    if (earlier != kNoOther) ties.push_back({all[later].pattern, all[earlier].pattern});
  }
}

void EndpointIndex::Data::find_loose_ties(const std::vector<EndpointPattern>& patterns) {
  for (const auto& group : loose) {
    const auto& all = group.second;
    std::vector<std::vector<Wish>> wishes(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      add_wishes(wishes[i], conditions, all[i].pattern);
      add_wishes(wishes[i], all[i].host);
    }
    const Rivals rivals(std::move(wishes));
    for (std::size_t later = 1; later < all.size(); ++later) {
      const auto earlier = rivals.first_before(later, [&](std::size_t other) {
        return all[other].pattern != all[later].pattern &&
               can_meet(all[other].host, all[later].host) &&
               methods_meet(patterns[all[other].pattern], patterns[all[later].pattern]) &&
               conditions_meet(all[other].pattern, all[later].pattern);
      });
      if (earlier != kNoOther) ties.push_back({all[later].pattern, all[earlier].pattern});
    }
  }
  loose.clear();
}

bool EndpointIndex::Data::conditions_meet(std::uint32_t one, std::uint32_t other) const {
  count_step();
  const auto first = conditions.find(one);
  const auto second = conditions.find(other);
  return first == conditions.end() || second == conditions.end() ||
         first->second.can_meet(second->second);
}

}  // namespace httpretry
