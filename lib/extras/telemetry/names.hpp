// Assigns numbers to the names in labels, so that a series can be found by a number. Up to a limit,
// each name gets its own number. All later names share one more number, which is for `_other`.
#pragma once

#include "lib/core/base/text.hpp"

#include <httpretry/policy/policy_set.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace httpretry::telemetry {

using Numbers = std::unordered_map<std::string, std::uint32_t, TextHash, std::equal_to<>>;

// The numbers of names. All threads share them.
class Names {
 public:
  explicit Names(std::size_t limit) : limit_(limit) {}

  [[nodiscard]] std::uint32_t other() const { return static_cast<std::uint32_t>(limit_); }
  // Returns the number of the name, which is a new one if the name is new and the limit allows it.
  std::uint32_t number(std::string_view name);
  // If true, no name gets a new number any more.
  [[nodiscard]] bool is_full() const { return full_.load(std::memory_order_acquire); }
  [[nodiscard]] Numbers all() const;
  // Returns the names in the order of their numbers, without `_other`.
  [[nodiscard]] std::vector<std::string> texts() const;

 private:
  const std::size_t limit_;
  mutable std::mutex mutex_;
  Numbers numbers_;
  std::atomic<bool> full_ = false;
};

// A thread's copy of the names that it has used. It needs the lock of the shared Names only for a
// name that is new to the thread, and never again once Names is full.
class NameCache {
 public:
  std::uint32_t number(Names& names, std::string_view name) {
    const auto found = numbers_.find(name);
    return found != numbers_.end() ? found->second : look_up(names, name);
  }

 private:
  std::uint32_t look_up(Names& names, std::string_view name);

  Numbers numbers_;
  bool has_all_ = false;  // it is a copy of all names, and no new one can follow
};

// Separates an endpoint from a policy. Neither name has this byte, because names are UTF-8.
inline constexpr char kNameSeparator = '\xFF';

// Finds the number for the endpoint and policy of a request. Their name is that of the endpoint,
// kNameSeparator, and that of the policy. It compares pointers, so that it need not build the name
// each time.
class EndpointCache {
 public:
  using Policy = std::shared_ptr<const ResolvedPolicy>;

  // If `policy` is nullptr, endpoint and policy are empty.
  std::uint32_t number(Names& names, const Policy& policy) {
    if (last_ != nullptr && last_->matches(policy)) return last_->number;
    return look_up(names, policy);
  }

 private:
  struct Entry {
    // The weak_ptr detects that the policy was destroyed and another one reuses its address.
    [[nodiscard]] bool matches(const Policy& other) const {
      return policy == other.get() && (policy == nullptr || !alive.expired());
    }

    const ResolvedPolicy* policy = nullptr;
    std::weak_ptr<const ResolvedPolicy> alive;
    std::uint32_t number = 0;
  };
  std::uint32_t look_up(Names& names, const Policy& policy);

  NameCache name_cache_;
  std::unordered_map<const ResolvedPolicy*, Entry> entries_;
  const Entry* last_ = nullptr;
};

}  // namespace httpretry::telemetry
