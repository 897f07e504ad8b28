// The states that guards have reported, by scope: circuits, pauses and limits. They rarely change,
// so all threads share them with a lock.
#pragma once

#include <httpretry/chain/observer.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace httpretry::telemetry {

struct ScopeNumbers {
  std::optional<Circuit> circuit;
  std::array<std::uint64_t, 3> changes{};  // of the circuit, by its new state
  std::optional<WallTime> paused_until;    // the epoch: a pause has ended
  std::optional<int> limit;
};

class GuardNumbers {
 public:
  using Scopes = std::map<std::string, ScopeNumbers, std::less<>>;

  // If there are more than `max_scopes` scopes, the others are counted as `_other`, which has no
  // state.
  explicit GuardNumbers(std::size_t max_scopes) : max_scopes_(max_scopes) {}

  // If memory runs out, the four functions below do nothing.
  void changed(const CircuitChange& change) noexcept;
  void changed(const LimitChange& change) noexcept;
  void paused(std::string_view key, WallTime until) noexcept;
  void resumed(std::string_view key) noexcept;

  [[nodiscard]] Scopes scopes() const;

 private:
  // Calls `change(scope)` with the scope, or with `_other` if there are too many scopes.
  template <class Change>
  void edit(std::string_view key, const Change& change) noexcept;

  const std::size_t max_scopes_;
  mutable std::mutex mutex_;
  Scopes scopes_;
};

}  // namespace httpretry::telemetry
