// Labels get numbers, so that a series is found by a number. There is a limit: what comes later
// shares the last number, `_other`.
#pragma once

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

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>()(text);
  }
};
using Numbers = std::unordered_map<std::string, std::uint32_t, TextHash, std::equal_to<>>;

// Shared by all threads.
class Names {
 public:
  explicit Names(std::size_t most) : most_(most) {}

  [[nodiscard]] std::uint32_t other() const { return static_cast<std::uint32_t>(most_); }
  // The number of the name, a new one where there is room.
  std::uint32_t number(std::string_view name);
  // Then no name gets a new number any more.
  [[nodiscard]] bool full() const { return full_.load(std::memory_order_acquire); }
  [[nodiscard]] Numbers all() const;
  // By their numbers; `_other` is not among them.
  [[nodiscard]] std::vector<std::string> texts() const;

 private:
  const std::size_t most_;
  mutable std::mutex mutex_;
  Numbers numbers_;
  std::atomic<bool> full_ = false;
};

// What one thread knows of them. It asks the shared ones only for a name that is new to it, and not
// at all when they are full.
class NamesSeen {
 public:
  std::uint32_t number(Names& names, std::string_view name) {
    const auto found = numbers_.find(name);
    return found != numbers_.end() ? found->second : ask(names, name);
  }

 private:
  std::uint32_t ask(Names& names, std::string_view name);

  Numbers numbers_;
  bool has_all_ = false;
};

// The endpoint and the policy of a request, as one name: "ENDPOINT\nPOLICY".
class EndpointsSeen {
 public:
  using Policy = std::shared_ptr<const ResolvedPolicy>;

  // `policy` may be nullptr: then both are empty.
  std::uint32_t number(Names& names, const Policy& policy) {
    if (last_ != nullptr && last_->is(policy)) return last_->number;
    return look_up(names, policy);
  }

 private:
  struct Entry {
    // Where it is gone, another one may have its place.
    [[nodiscard]] bool is(const Policy& other) const {
      return policy == other.get() && (policy == nullptr || !alive.expired());
    }

    const ResolvedPolicy* policy = nullptr;
    std::weak_ptr<const ResolvedPolicy> alive;
    std::uint32_t number = 0;
  };
  std::uint32_t look_up(Names& names, const Policy& policy);

  NamesSeen names_;
  std::unordered_map<const ResolvedPolicy*, Entry> entries_;
  const Entry* last_ = nullptr;
};

}  // namespace httpretry::telemetry
