// Gate: decides which sends of a client go out, and when. One step over pause, breaker, rate and
// slots (SendLimits::enter) takes everything that a send needs, or nothing, so a send that waits
// blocks no resource. Waiting sends are served by priority, then in the order of arrival.
//
// Thread-safe. The caller passes the time and the random numbers.
#pragma once

#include "lib/core/guard/detail/limits.hpp"
#include "scopes.hpp"
#include "sender.hpp"

#include <httpretry/flow/detail/shared_work.hpp>
#include <httpretry/guard/shared_state.hpp>

#include <cstdint>
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

  // Begins a pause for the scope that the policy names, or without one, for `default_scope`, which
  // is Host or Endpoint. The policy must have a pause. Returns the key of the pause.
  std::string pause(const Sender& sender, GuardScope default_scope, Time until, Time now);
  // Returns the limit that would hold a send back now. Takes nothing.
  [[nodiscard]] QueuedBy would_hold(const Sender& sender, Time now);
  // Returns whether nothing is paused. If so, a sender without other limits need not pass the gate.
  [[nodiscard]] bool quiet() const { return state_->quiet(); }
  [[nodiscard]] std::size_t queues() const;
  // Queues are kept while no send uses them, so that the next send need not make them, but at most
  // this many.
  static constexpr std::size_t kMaxIdleQueues = 1024;

 private:
  // The priority, then the arrival, which is negative for Order::Lifo. The lowest rank comes first.
  using Rank = std::pair<int, std::int64_t>;
  struct SendQueue;
  // The queues whose sends need one limit, and how many of these sends wait.
  struct LimitQueues {
    std::vector<SendQueue*> queues;
    int waiting = 0;
  };
  using LimitQueuesByKey = std::unordered_map<std::string, LimitQueues>;
  // The queue of the sends with the same limits. Only its head may go out next.
  struct SendQueue {
    SendQueue() = default;
    ~SendQueue();
    SendQueue(const SendQueue&) = delete;
    SendQueue& operator=(const SendQueue&) = delete;

    LimitQueuesByKey* queues_of_gate = nullptr;  // Gate::limit_queues_
    std::shared_ptr<const GuardPolicy> policy;
    std::shared_ptr<SendLimits> limits;  // nullptr in a new queue
    // For each of its limits, the entry in `queues_of_gate`. The pauses come first.
    std::vector<LimitQueuesByKey::value_type*> limit_entries;
    const LimitQueues* rate_with_costs = nullptr;  // of its rate, if the rate counts costs
    bool has_endpoint_pause = false;               // besides that of the host
    std::map<Rank, Turn*> waiting;
    std::uint64_t turns_granted = 0;

    [[nodiscard]] bool serves_lowest() const { return turns_granted % 10 == 9; }
    [[nodiscard]] Turn& head() const;
    // Removes the queue from the queues of its limits.
    void leave_limits();
    [[nodiscard]] bool idle(Time /*now*/) const { return true; }
  };
  // A listener's reference to a gate, which may be destroyed while the listener runs.
  struct GateRef {
    explicit GateRef(Gate* referred) : gate(referred) {}
    std::mutex mutex;
    Gate* gate;
  };

  std::shared_ptr<SendQueue> queue_of(const Sender& sender, Time now);
  void add_limits(SendQueue& queue, const Sender& sender, Time now);
  // Called whenever a waiting send may be able to go out: a limit has changed, or a send has left
  // the queue or has come with a higher priority.
  void serve(const SendQueue& queue, Time now);
  void serve(LimitQueues& limit, Time now);
  // Refuse the sends that would wait in vain now that a limit has changed.
  static void refuse_hopeless(const LimitQueues& limit, Time now);
  static void refuse_hopeless(const SendQueue& queue, Time now);
  static void wake_head(const SendQueue& queue, Time now);
  void serve_all(Time now);

  const std::shared_ptr<SharedState> state_;
  const std::shared_ptr<GateRef> gate_ref_;
  std::shared_ptr<const SharedState::Listener> listener_;
  mutable std::mutex mutex_;  // guards the rest
  std::uint64_t arrivals_ = 0;
  LimitQueuesByKey limit_queues_;
  Scopes<SendQueue> queues_{kMaxIdleQueues};  // after `limit_queues_`, which ~SendQueue uses
};

// A send's place in the queue, and later its permission to go out, for as long as this lives. The
// gate must outlive it.
class Gate::Turn {
 public:
  enum class Status : std::uint8_t { Waiting, Granted, Refused };
  Turn(Gate& gate, const Sender& sender, Time now);
  // Without a call of `end`, the send is over and says nothing about the server.
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  [[nodiscard]] Status status() const;
  // Returns the limit that holds the send back or has refused it.
  [[nodiscard]] Hold why() const;
  // Waits until the status may have changed. Returns false if the wait was canceled.
  Task<bool> wait(Scheduler& scheduler, std::stop_token stop);
  // Returns whether the send is a probe of a breaker that does not know its result yet. A vote
  // reports the result.
  [[nodiscard]] bool probes() const { return grant_.votes && grant_.probe != 0; }
  // Votes before the send ends, because its headers already show how it will end. `unit_random` is
  // uniform in [0, 1).
  void vote_early(const SendEnd& ended, Time now, double unit_random);
  void end(const SendEnd& ended, Time now, double unit_random);
  // Returns what this send has changed since the last call, for observers.
  [[nodiscard]] StateChanges take_changes();
  [[nodiscard]] GuardFacts facts(Time now, WallTime wall_now) const;

 private:
  friend class Gate;
  // All functions from here on require the mutex.
  void arrive(Time now);
  // Returns the limit that holds the send back now.
  [[nodiscard]] Hold find_hold(Time now);
  [[nodiscard]] Hold held_by_order(Time now);
  // Takes everything that the send needs. Returns false if a limit holds it back, and sets `why_`
  // or refuses the send.
  bool enter(Time now);
  // Sets the time and the priority in `ask_`.
  void prepare_ask(Time now);
  // Notes that the limit holds the send back. Refuses the send if it may not wait for it.
  void hold_back(Hold hold, Time now);
  // Returns the reason to refuse the send, or nullopt if it may wait for `held`.
  [[nodiscard]] std::optional<Hold> refusal(const Hold& held, Time now) const;
  void refuse(const Hold& why);
  void set_rank();
  void enter_queue();
  // Does nothing if the send is not in the queue.
  void leave_queue();
  void release(const SendEnd* ended, Time now, double unit_random);
  void update_status(Time now);
  [[nodiscard]] Time next_wake(Time now);

  Gate& gate_;
  std::shared_ptr<SendQueue> queue_;
  Status status_ = Status::Waiting;
  Hold why_;
  bool must_release_ = false;  // what the limits have granted
  SendAsk ask_;
  Time deadline_;
  Time pause_deadline_;
  Time slot_deadline_ = kNever;  // kNever also while other limits hold the send back
  Time rate_deadline_ = kNever;
  Time latest_now_{};       // the latest time that a caller passed
  Time wakes_at_ = kNever;  // when the timer of `wait` ends
  std::shared_ptr<httpretry::detail::Event> wake_;
  Rank rank_;
  SendGrant grant_;
  StateChanges changes_;
};

}  // namespace httpretry::guard
