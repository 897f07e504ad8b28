// Scopes: the states of one kind by their keys. Bounded: those that nobody uses are dropped, first
// those that are as new.
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

// `Scope` has `idle(now)`: it is as new.
template <typename Scope>
class Scopes {
 public:
  explicit Scopes(std::size_t most) : most_(most), room_at_(most) {}

  // In use while somebody holds it.
  std::shared_ptr<Scope> at(const std::string& key, Time now) {
    if (const auto found = scopes_.find(key); found != scopes_.end()) return found->second;
    if (scopes_.size() >= room_at_) make_room(now);
    return scopes_.emplace(key, std::make_shared<Scope>()).first->second;
  }
  // Calls how(scope) for the scope of that key. Returns false if there is none.
  template <typename Change>
  bool change(std::string_view key, const Change& how) const {
    const auto found = scopes_.find(key);
    if (found != scopes_.end()) how(*found->second);
    return found != scopes_.end();
  }
  // tell(key, scope), for the keys that begin like that.
  template <typename Tell>
  void each(std::string_view prefix, const Tell& tell) const {
    for (const auto& [key, scope] : scopes_) {
      if (key.starts_with(prefix)) tell(key, *scope);
    }
  }
  [[nodiscard]] std::size_t size() const { return scopes_.size(); }

 private:
  void make_room(Time now) {
    const auto drop = [&](bool also_changed) {
      std::erase_if(scopes_, [&](const auto& entry) {
        return entry.second.use_count() == 1 && (also_changed || entry.second->idle(now));
      });
    };
    drop(false);
    if (scopes_.size() > most_ / 2) drop(true);
    room_at_ = std::max(most_, 2 * scopes_.size());
  }

  const std::size_t most_;
  std::size_t room_at_;  // so many, and those that nobody uses are dropped
  // With a hash of our own, libstdc++ keeps none in the nodes: keys are looked up seldom.
  std::unordered_map<std::string, std::shared_ptr<Scope>, TextHash, std::equal_to<>> scopes_;
};

}  // namespace httpretry::guard
