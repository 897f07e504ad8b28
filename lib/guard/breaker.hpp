// Breaker: whether the sends of one scope go out, by how the sends before them ended. A plain state
// machine, without clock, lock and chance.
//
//   closed     all sends go out; it opens when too many fail
//   open       none goes out until a time
//   half-open  from then on a few probes go out: their success closes it, one failure opens it
//
// Each change of the state begins a generation, and votes of an older one do not count. Share has
// no states and counts in another way, so where the kind becomes or was Share, it begins anew.
#pragma once

#include "window.hpp"

#include <httpretry/flow/shared_state.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace httpretry::guard {

// Whether a closed breaker opens: by the sends of its window, and the failures in a row.
[[nodiscard]] HTTPRETRY_API bool too_many_failed(const BreakerPolicy& policy, const Counts& counts,
                                                 int in_a_row);

class HTTPRETRY_API Breaker {
 public:
  // No send may go out before; `now` or earlier where one may. kNever where only the end of a probe
  // can tell. Share never says so before it is asked.
  [[nodiscard]] Time held_until(const BreakerPolicy& policy, Time now) const;
  // Sets the `votes` of `grant` if the send may go out, and what `vote` and `give_back` need of it.
  void ask(const BreakerPolicy& policy, Time now, double unit_random, SendGrant& grant);
  // For a send that goes out without being asked: its vote counts while the breaker is closed.
  void pass(SendGrant& grant) const;
  // The send did not go out, or how it ended says nothing about the server.
  // Returns false if it was no probe that counts.
  bool give_back(const SendGrant& grant);
  void vote(const BreakerPolicy& policy, const SendGrant& grant, const SendEnd& end, Time now,
            double unit_random);

  void open_until(Time until);
  // As new. Votes of sends that are under way do not count.
  void close();

  [[nodiscard]] Circuit state() const { return state_; }
  // While it is open.
  [[nodiscard]] Time until() const { return opened_ ? opened_->until : Time(); }
  // While it is closed the sends of the window, else those that have opened it; of a probe that
  // failed, that one.
  [[nodiscard]] Counts counts(Time now) const;
  // For people, while it is not closed: what has opened it.
  [[nodiscard]] const std::string& why_open() const;
  // As new.
  [[nodiscard]] bool idle(Time now) const;

 private:
  struct Probe {
    std::uint32_t number = 0;
    Time sent{};
  };
  // Most breakers never open, so what this needs is made when one does.
  struct Opened {
    Time until{};
    Time closed_at{};
    Duration open_for{};        // the last time
    Duration forgets_after{1};  // so long without an opening takes one off `openings`
    int openings = 0;           // in a row
    Counts tripped;
    std::string why;
    int good_probes = 0;
    std::uint32_t last_probe = 0;
    std::vector<Probe> probes;
  };
  // Which sends the window has: those that asked (Share), or those that ended.
  enum class Counting : std::uint8_t { Nothing, Asked, Ended };
  void ask_share(const BreakerPolicy& policy, Time now, double unit_random, SendGrant& grant);
  void ask_to_probe(const BreakerPolicy& policy, Time now, SendGrant& grant);
  void vote_of_probe(const BreakerPolicy& policy, const SendEnd& end, Time now, double unit_random);
  void open(const BreakerPolicy& policy, const SendEnd& end, Time now, double unit_random);
  [[nodiscard]] int quiet_windows(Time now) const;
  void change_to(Circuit state);

  Circuit state_ = Circuit::Closed;
  Counting counting_ = Counting::Nothing;  // by the policy that was asked for last
  std::uint32_t generation_ = 0;
  int in_a_row_ = 0;  // failures
  Window window_;
  std::unique_ptr<Opened> opened_;  // where it is not closed, or was not
};

}  // namespace httpretry::guard
