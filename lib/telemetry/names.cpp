#include "names.hpp"

namespace httpretry::telemetry {

std::uint32_t Names::number(std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (const auto found = numbers_.find(name); found != numbers_.end()) return found->second;
  if (numbers_.size() >= most_) {
    full_.store(true, std::memory_order_release);
    return other();
  }
  const auto number = static_cast<std::uint32_t>(numbers_.size());
  numbers_.emplace(name, number);
  if (numbers_.size() == most_) full_.store(true, std::memory_order_release);
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

std::uint32_t NamesSeen::ask(Names& names, std::string_view name) {
  if (has_all_) return names.other();
  if (names.full()) {
    numbers_ = names.all();
    has_all_ = true;
    return number(names, name);
  }
  const auto number = names.number(name);
  if (number != names.other()) numbers_.emplace(name, number);
  return number;
}

std::uint32_t EndpointsSeen::look_up(Names& names, const ResolvedPolicy* policy) {
  constexpr std::size_t kMost = 1024;  // of a file with more endpoints, or of many reloads
  const auto found = entries_.find(policy);
  if (found != entries_.end() && is(found->second, policy)) {
    last_ = &found->second;
    return last_->number;
  }
  if (entries_.size() >= kMost) entries_.clear();
  Entry entry;
  entry.policy = policy;
  std::string name = "\n";
  if (policy != nullptr) {
    entry.endpoint = policy->endpoint;
    entry.name = policy->name;
    entry.preset = policy->preset;
    name = policy->endpoint + "\n" + (policy->name.empty() ? policy->preset : policy->name);
  }
  entry.number = names_.number(names, name);
  last_ = nullptr;
  last_ = &(entries_[policy] = std::move(entry));
  return last_->number;
}

}  // namespace httpretry::telemetry
