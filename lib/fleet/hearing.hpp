// Hearing: what the thread of the remote state has of a FleetState, which may end meanwhile.
#pragma once

#include "fleet_state.hpp"

namespace httpretry::fleet {

class FleetState::Hearing final : public RemoteState::Listener {
 public:
  explicit Hearing(FleetState& state) : state_(&state) {}
  // `use` is called with the state, if it still lives. It must not throw.
  template <class Use>
  void with_state(const Use& use) {
    const std::lock_guard lock(mutex_);
    if (state_ != nullptr) use(*state_);
  }
  // From then on nothing reaches it.
  void close() {
    const std::lock_guard lock(mutex_);
    state_ = nullptr;
  }

 private:
  void on_news(const RemoteState::News& news, Time now) override {
    with_state([&](FleetState& state) {
      state.take_in(news, now);
      state.look_after_accounts(now);
      state.tell_changed(now);
    });
  }

  std::mutex mutex_;
  FleetState* state_;
};

}  // namespace httpretry::fleet
