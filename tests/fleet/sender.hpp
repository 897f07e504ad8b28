// Sender: sends under a policy, as the gate of a client does, without a network. Each has a shared
// state of its own, so it stands for a process.
#pragma once

#include <httpretry/guard/shared_state.hpp>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

class Sender {
 public:
  Sender(std::shared_ptr<httpretry::SharedState> state, httpretry::GuardPolicy policy,
         const std::string& scope = "https://api.example.com");
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  // A send that is under way, if it was not refused.
  struct Sent {
    httpretry::SendGrant grant;
    httpretry::Time when{};
    [[nodiscard]] bool refused() const { return grant.held != httpretry::QueuedBy::Nothing; }
  };
  // Waits for its turn, but not for a circuit, and not for longer than that.
  Sent begin(httpretry::Duration limit = std::chrono::seconds(10), std::int64_t cost = 1);
  void end(const Sent& sent, bool failed = false);
  // Both. False: refused.
  bool send(bool failed = false);
  void pause(httpretry::Duration duration);
  // Waits until `good` says so, each time that something may have changed. False: not within 10 s.
  bool wait_until(const std::function<bool()>& good);

  [[nodiscard]] httpretry::SendGrant look() const;
  [[nodiscard]] httpretry::SharedState& state() { return *state_; }
  [[nodiscard]] httpretry::SendLimits& limits() { return *limits_; }
  [[nodiscard]] std::vector<httpretry::CircuitChange> circuit_changes() const;
  [[nodiscard]] std::vector<std::string> reasons() const;

 private:
  void note(const httpretry::StateChanges& changes);

  mutable std::mutex mutex_;  // guards the next four
  std::condition_variable changed_;
  std::uint64_t told_ = 0;
  std::vector<httpretry::CircuitChange> circuit_changes_;
  std::vector<std::string> reasons_;
  // The last: when it ends, nobody tells this any more.
  const std::shared_ptr<httpretry::SharedState> state_;
  std::shared_ptr<const httpretry::SharedState::Listener> listener_;
  std::shared_ptr<httpretry::SendLimits> limits_;
};
