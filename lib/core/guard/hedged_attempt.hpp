// HedgedAttempt: the sends of one attempt. The first goes out at once, and while none has a
// response, hedges follow it. The first outcome that settles the matter is that of the attempt:
//
//   success, pending, permanent   settle it: the other sends are canceled
//   transient, throttle,          do not while another send is in flight. Where none is left, the
//   transport                     one with the longest server delay counts, else the last
//
// All of it happens on the loop of the call.
#pragma once

#include "hedge_state.hpp"

#include "lib/core/chain/current_attempt.hpp"
#include "lib/core/chain/racing_send.hpp"

#include <httpretry/chain/middleware.hpp>
#include <httpretry/flow/detail/shared_work.hpp>
#include <httpretry/flow/task_group.hpp>

#include <memory>
#include <vector>

namespace httpretry::guard {

class HedgedAttempt {
 public:
  // All of these must outlive it.
  HedgedAttempt(CurrentAttempt& attempt, HedgeAccount& scope, const Request& request, Call& call,
                Next next);
  ~HedgedAttempt();
  HedgedAttempt(const HedgedAttempt&) = delete;
  HedgedAttempt& operator=(const HedgedAttempt&) = delete;

  Task<Outcome> run();

 private:
  class Send;

  [[nodiscard]] Time now() const { return call_.scheduler().now(); }
  void start(int number, Time deadline);
  static Task<> carry(HedgedAttempt& race, Send& send);
  // Of the sends:
  void began(Send& send);
  void ended(Send& send, Outcome outcome);
  RacingSend::Use headers_came(Send& send, const Response& head);
  bool uses(Send& send, const Response& begun);

  // A hedge.
  [[nodiscard]] Time next_hedge() const;
  void try_hedge();
  [[nodiscard]] std::optional<HedgeRefused> refusal();
  [[nodiscard]] std::optional<HedgeRefused> never() const;
  [[nodiscard]] bool too_late() const;
  void refuse(HedgeRefused why);

  [[nodiscard]] bool settles(const Send& send, const Classified& judged) const;
  [[nodiscard]] bool is_doing_of_twin(const Send& send, int status) const;
  void win(Send& send);
  void learn(const Send& send);
  [[nodiscard]] Send& decisive() const;
  [[nodiscard]] Outcome finish();
  [[nodiscard]] Attempt lost_attempt(Send& send, int winner) const;
  void drop(Send& send);
  void changed();

  CurrentAttempt& attempt_;
  const HedgePolicy& policy_;
  HedgeAccount& scope_;
  const Request& request_;
  Call& call_;
  const Next next_;
  const Time started_;

  detail::JoinedGroup group_;
  std::vector<std::unique_ptr<Send>> sends_;
  std::unique_ptr<Send> unsent_;  // its coroutine may still be in it
  std::vector<SendGate*> gates_;  // that the first send has passed
  std::shared_ptr<detail::Event> change_;
  HedgeDelay delay_;
  Send* winner_ = nullptr;
  int in_flight_ = 0;
  int endings_ = 0;
  int tried_ = 0;             // hedges, sent or refused
  Time last_began_ = kNever;  // a send, or the time at which a hedge was refused
  bool throttled_ = false;
};

}  // namespace httpretry::guard
