#include "names.hpp"

namespace httpretry::telemetry {

// Returns the number of a name. A new name gets the next number, or other() if no number is left.
std::uint32_t Names::number(std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (const auto found = numbers_.find(name); found != numbers_.end()) return found->second;
  if (numbers_.size() >= limit_) {
    full_.store(true, std::memory_order_release);
    return other();
  }
  const auto number = static_cast<std::uint32_t>(numbers_.size());
  numbers_.emplace(name, number);
  if (numbers_.size() == limit_) full_.store(true, std::memory_order_release);
  return number;
}

Numbers Names::all() const {
  const std::lock_guard lock(mutex_);
  return numbers_;
}

std::vector<std::string> Names::texts() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> texts(numbers_.size());
  for (const auto& [text, number] : numbers_) texts[number] = text;
  return texts;
}

// Asks the shared Names for a name that is not in this copy. Once Names is full, it copies all
// names, so that each name that is not in the copy is `_other`.
std::uint32_t NameCache::look_up(Names& names, std::string_view name) {
  if (has_all_) return names.other();
  if (names.is_full()) {
    numbers_ = names.all();
    has_all_ = true;
    return number(names, name);
  }
  const auto number = names.number(name);
  if (number != names.other()) numbers_.emplace(name, number);
  return number;
}

// Returns the number that labels the endpoint and policy of a request. Stores the entry of the
// policy in `last_`, which number() checks first. Entries are found by the address of the policy.
// matches() returns false if the policy of an entry was destroyed and another one has its address.
// Without a policy (nullptr), the names of the endpoint and the policy are empty.
std::uint32_t EndpointCache::look_up(Names& names, const Policy& policy) {
  constexpr std::size_t kMaxEntries = 1024;  // each reload of a policy file adds entries
  const auto found = entries_.find(policy.get());
  if (found != entries_.end() && found->second.matches(policy)) {
    last_ = &found->second;
    return last_->number;
  }
  last_ = nullptr;  // clear() may destroy the entry to which it points
  if (entries_.size() >= kMaxEntries) entries_.clear();
  std::string name(1, kNameSeparator);
  if (policy)
    name =
        policy->endpoint + kNameSeparator + (policy->name.empty() ? policy->preset : policy->name);
  const auto number = name_cache_.number(names, name);  // a new one if the name is new
  last_ = &(entries_[policy.get()] = Entry{policy.get(), /*alive=*/policy, number});
  return number;
}

}  // namespace httpretry::telemetry
