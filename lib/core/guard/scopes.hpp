// Scopes: a bounded map from keys to the states of one kind. It drops states that are not in use,
// beginning with those in their initial state.
#pragma once

#include "lib/core/base/text.hpp"

#include <httpretry/http/time.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

namespace httpretry::guard {

// `Scope::idle(now)` returns whether the state is as good as a new one.
template <typename Scope>
class Scopes {
 public:
  explicit Scopes(std::size_t most) : most_(most), drop_at_(most) {}

  // Returns the state of the key. It is in use as long as the caller keeps the pointer.
  std::shared_ptr<Scope> at(const std::string& key, Time now) {
    if (const auto found = scopes_.find(key); found != scopes_.end()) return found->second;
    if (scopes_.size() >= drop_at_) drop_unused(now);
    return scopes_.emplace(key, std::make_shared<Scope>()).first->second;
  }
  // Calls how(scope) for the state of the key. Returns false if the key is unknown.
  template <typename Change>
  bool change(std::string_view key, const Change& how) const {
    const auto found = scopes_.find(key);
    if (found != scopes_.end()) how(*found->second);
    return found != scopes_.end();
  }
  // Calls tell(key, scope) for each key with this prefix.
  template <typename Tell>
  void each(std::string_view prefix, const Tell& tell) const {
    for (const auto& [key, scope] : scopes_) {
      if (key.starts_with(prefix)) tell(key, *scope);
    }
  }
  [[nodiscard]] std::size_t size() const { return scopes_.size(); }

 private:
  // Drops the unused states in their initial state. If too many remain, drops all unused ones.
  void drop_unused(Time now) {
    const auto is_unused = [](const auto& entry) { return entry.second.use_count() == 1; };
    std::erase_if(scopes_,
                  [&](const auto& entry) { return is_unused(entry) && entry.second->idle(now); });
    if (scopes_.size() > most_ / 2) std::erase_if(scopes_, is_unused);
    drop_at_ = std::max(most_, 2 * scopes_.size());
  }

  const std::size_t most_;
  std::size_t drop_at_;  // the size at which unused states are dropped
  // With this hash, unlike std::hash, libstdc++ stores no hash in the nodes. That saves memory, and
  // lookups are rare.
  std::unordered_map<std::string, std::shared_ptr<Scope>, TextHash, std::equal_to<>> scopes_;
};

}  // namespace httpretry::guard
