// Gate: decides which sends of a client go out, and when. One step over pause, breaker, rate and
// slots (SendLimits::enter) takes all that a send needs, or nothing: what has to wait holds
// nothing, and is served by priority and then in the order of its arrival.
//
// Safe to use from many threads. The caller brings the time and the random numbers.
#pragma once

#include "lib/core/guard/detail/limits.hpp"
#include "scopes.hpp"
#include "sender.hpp"

#include <httpretry/flow/detail/shared_work.hpp>
#include <httpretry/guard/shared_state.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace httpretry::guard {

class Gate {
 public:
  explicit Gate(std::shared_ptr<SharedState> state);
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  class Turn;

  // The server asks the senders of a scope to wait: of the one that the policy names, else of
  // `scope`, which is Host or Endpoint. The policy must have a pause. Returns the scope's key.
  std::string pause(const Sender& sender, GuardScope scope, Time until, Time now);
  // What would hold a send back now. Takes nothing.
  [[nodiscard]] QueuedBy would_hold(const Sender& sender, Time now);
  // Nothing is paused: a sender without other limits need not ask.
  [[nodiscard]] bool quiet() const { return state_->quiet(); }
  [[nodiscard]] std::size_t lanes() const;
  // A lane is kept while nobody uses it, so that the next send need not make it; but not more.
  static constexpr std::size_t kMaxIdleLanes = 1024;

 private:
  // Priority, then arrival; where the policy says so the last comes first.
  using Rank = std::pair<int, std::int64_t>;
  struct Lane;
  // Who waits for one state.
  struct Scope {
    std::vector<Lane*> lanes;
    int waiting = 0;
  };
  using Scopes = std::unordered_map<std::string, Scope>;
  // Sends with the same limits. Only the first in its queue may be next.
  struct Lane {
    Lane() = default;
    // Nobody waits for its states in it any more.
    ~Lane();
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;

    Scopes* all_scopes = nullptr;  // of the gate
    std::shared_ptr<const GuardPolicy> policy;
    std::shared_ptr<SendLimits> limits;       // nullptr: it is new
    std::vector<Scopes::value_type*> scopes;  // each once
    bool two_pauses = false;
    std::map<Rank, Turn*> queue;
    int turns = 0;  // that were granted

    [[nodiscard]] Turn& head() const;
    [[nodiscard]] bool idle(Time /*now*/) const { return true; }
  };
  // What a listener has of a gate, which may end while it is told.
  struct Hearing {
    explicit Hearing(Gate* its) : gate(its) {}
    std::mutex mutex;
    Gate* gate;
  };

  std::shared_ptr<Lane> lane_of(const Sender& sender, Time now);
  void serve(const Lane& lane, Time now);
  void serve(Scope& scope, Time now);
  // Something has closed: those that would wait in vain are refused.
  static void refuse_in_vain(const Scope& scope, Time now);
  static void refuse_in_vain(const Lane& lane, Time now);
  static void wake_head(const Lane& lane, Time now);
  void look_again(Time now);

  const std::shared_ptr<SharedState> state_;
  const std::shared_ptr<Hearing> hearing_;
  std::shared_ptr<const SharedState::Listener> listener_;
  mutable std::mutex mutex_;  // guards the rest
  std::uint64_t arrivals_ = 0;
  Scopes scopes_;
  guard::Scopes<Lane> lanes_{kMaxIdleLanes};  // destroyed before the scopes that they are in
};

// A send's turn: its place in the queue, and then its right to be sent, for as long as this lives.
// The gate must outlive it.
class Gate::Turn {
 public:
  enum class Status : std::uint8_t { Waiting, Granted, Refused };
  Turn(Gate& gate, const Sender& sender, Time now);
  // Not after `end`: the send is over, and says nothing about the server.
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  [[nodiscard]] Status status() const;
  // What holds it back, or has refused it.
  [[nodiscard]] Hold why() const;
  // Continues when the status may have changed. False: canceled.
  Task<bool> wait(Scheduler& scheduler, std::stop_token stop);
  // It is a probe of a breaker, which has not voted yet.
  [[nodiscard]] bool probes() const { return grant_.votes && grant_.probe != 0; }
  // Its response says already how it ends.
  void vote_early(const SendEnd& ended, Time now, double chance);
  void end(const SendEnd& ended, Time now, double chance);
  // For observers: what this send has changed since this was last asked.
  [[nodiscard]] StateChanges take_changes();
  [[nodiscard]] GuardFacts facts(Time now, WallTime wall_now) const;

 private:
  friend class Gate;
  // Everything from here on with the mutex.
  void arrive(Time now);
  // What holds it back now.
  [[nodiscard]] Hold held(Time now);
  // Takes what it needs, or says what holds it back.
  bool enter(Time now);
  // Why it would wait in vain.
  [[nodiscard]] std::optional<Hold> refusal(const Hold& held, Time now) const;
  void refuse(const Hold& why);
  void enter_queue();
  // Also where it has not waited.
  void leave_queue();
  void give_back(const SendEnd* ended, Time now, double chance);
  void look(Time now);
  [[nodiscard]] Time next_look(Time now);

  Gate& gate_;
  std::shared_ptr<Lane> lane_;
  Status status_ = Status::Waiting;
  Hold why_;
  bool taken_ = false;
  SendAsk ask_;
  Time limit_;
  Time pause_limit_;
  Time slot_limit_ = kNever;
  Time rate_limit_ = kNever;
  Time last_{};             // the latest time that this was given
  Time looks_at_ = kNever;  // while it waits
  std::shared_ptr<detail::Event> wake_;
  Rank rank_;
  SendGrant grant_;
  StateChanges changes_;
};

}  // namespace httpretry::guard
