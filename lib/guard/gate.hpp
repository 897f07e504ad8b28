// Gate: decides which sends of a client go out, and when. It holds the states of all scopes. One
// pass over pause, breaker, rate and slots takes all that a send needs, or nothing: what has to
// wait holds nothing, and is served in the order of its arrival.
//
// Safe to use from many threads. The caller brings the time and the random numbers.
#pragma once

#include "breaker.hpp"
#include "pause.hpp"
#include "rate.hpp"
#include "slots.hpp"

#include <httpretry/flow/detail/shared_work.hpp>
#include <httpretry/flow/shared_state.hpp>

#include <array>
#include <atomic>
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

// Whose limits a send is under.
struct Sender {
  std::shared_ptr<const GuardPolicy> policy;
  std::string_view host;          // "https://api.example.com"
  std::string_view endpoint;      // what identifies it; empty: its host
  std::string_view name;          // what identifies the policy, in each version of its file
  std::uint64_t credentials = 0;  // a hash of those that are sent
  bool is_retry = false;
  Time limit = kNever;  // of waiting
  double chance = 0;    // uniform in [0, 1)
};

// What keeps a send from going out.
enum class Held : std::uint8_t { Nothing, Pause, Ramp, Circuit, Rate, Slots };

struct Wait {
  Held by = Held::Nothing;
  Time until = kNever;  // it may change by itself then
  bool asked = false;   // the shared state is about to tell
};

// What became of a send.
struct Ended {
  bool counts = true;      // it says something about the server
  bool failed = false;     // for the breaker
  bool dropped = false;    // for the limit of concurrent sends
  bool responded = false;  // and was not throttled
  Duration took{};         // to the headers of the response
  Duration server_delay{};
};

class Gate {
 public:
  // `shared`: what other processes know of the scopes, too. Without one there is only this process.
  explicit Gate(std::shared_ptr<SharedState> shared = nullptr);
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  class Turn;

  // The server asks the senders of a scope to wait.
  void pause(const Sender& sender, GuardScope scope, Time until, Time now);
  // Nothing is paused: a sender without other limits need not ask.
  [[nodiscard]] bool quiet() const { return pauses_.load(std::memory_order_relaxed) == 0; }
  [[nodiscard]] std::size_t scopes() const;
  // From there on those that nobody uses are dropped, first those that are as new.
  static constexpr std::size_t kMaxScopes = 100'000;

 private:
  struct Scope;
  struct Lane;
  class Sharing;  // gate_shared.cpp

  Lane& lane_of(const Sender& sender, Time now);
  std::unique_ptr<Lane> make_lane(const Sender& sender);
  Scope& scope_of(std::string key);
  [[nodiscard]] static Wait held(const Lane& lane, const Turn& turn, Time now);
  [[nodiscard]] static Wait held_by_circuit(const Lane& lane, Time now);
  [[nodiscard]] static Wait held_by_rate(const Lane& lane, Time now);
  static void take_token(const Lane& lane, Time now);
  // Whether all processes vote on its circuit.
  [[nodiscard]] static bool shares_circuit(const Lane& lane);
  [[nodiscard]] static Wait held_by_slots(const Lane& lane, Time now);
  void pause(Scope& scope, Time until, Time now);
  void serve(const Lane& lane, Time now);
  void serve(Scope& scope, Time now);
  // Something has closed: those that would wait in vain are refused.
  static void refuse_in_vain(const Scope& scope, Time now);
  static void wake_head(const Lane& lane, Time now);
  void end_pauses(Time now);
  void make_room(Time now);

  mutable std::mutex mutex_;  // guards the rest
  std::atomic<int> pauses_ = 0;
  std::uint64_t arrivals_ = 0;
  std::unordered_map<std::string, std::unique_ptr<Lane>> lanes_;
  std::unordered_map<std::string, std::unique_ptr<Scope>> scopes_;
  std::vector<Scope*> paused_;
  std::shared_ptr<SharedState> shared_;
  std::shared_ptr<Sharing> sharing_;
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
  [[nodiscard]] Wait why() const;
  // Continues when the status may have changed. False: canceled.
  Task<bool> wait(Scheduler& scheduler, std::stop_token stop);
  void end(const Ended& ended, Time now, double chance);

 private:
  friend class Gate;
  class Wake final : public detail::Event {
   public:
    using Event::happen;
  };
  // Priority, then arrival; where the policy says so the last comes first.
  using Rank = std::pair<int, std::int64_t>;

  // Everything from here on with the mutex.
  void arrive(Time now);
  // Why it would wait in vain.
  [[nodiscard]] std::optional<Wait> refusal(const Wait& held, Time now) const;
  void refuse(const Wait& why);
  void enter_queue();
  void leave_queue();
  void take(Time now);
  void give_back(const Ended* ended, Time now, double chance);
  void look(Time now);
  [[nodiscard]] Time next_look(Time now) const;

  Gate& gate_;
  Lane* lane_ = nullptr;
  Status status_ = Status::Waiting;
  Wait why_;
  bool queued_ = false;
  bool taken_ = false;
  bool is_retry_;
  double chance_;
  Time limit_;
  Time slot_limit_ = kNever;
  Time rate_limit_ = kNever;
  Time last_{};             // the latest time that this was given
  Time looks_at_ = kNever;  // while it waits
  std::shared_ptr<Wake> wake_;
  Rank rank_;
  std::optional<Ticket> ticket_;
  std::array<std::uint32_t, 2> ramps_{};
};

}  // namespace httpretry::guard
