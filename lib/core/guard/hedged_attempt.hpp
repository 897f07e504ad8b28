// HedgedAttempt: the sends of one attempt. The first send goes out at once. Hedges follow while no
// send has a response. The outcome of the attempt depends on the classes of the outcomes:
//
//   success, pending, permanent   the first such outcome wins, and the other sends are canceled
//   transient, throttle,          such an outcome does not win while another send is in flight. If
//   transport                     no outcome wins, the one with the longest server delay counts,
//                                 or the last one if there is no server delay
//
// Everything runs on the loop of the call.
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
  // All arguments must outlive this object.
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
  // Events of a send.
  void on_began(Send& send);
  void on_ended(Send& send, Outcome outcome);
  RacingSend::Use on_headers(Send& send, const Response& head);
  bool uses(Send& send, const Response& begun);

  // The next hedge.
  [[nodiscard]] Time next_hedge() const;
  void try_hedge();
  [[nodiscard]] std::optional<HedgeRefused> refusal();
  [[nodiscard]] std::optional<HedgeRefused> lasting_refusal() const;
  [[nodiscard]] bool is_too_late() const;
  void refuse(HedgeRefused reason);

  [[nodiscard]] bool settles(const Send& send, const Classified& judged) const;
  [[nodiscard]] bool is_conflict_with_other_send(const Send& send, int status) const;
  void win(Send& send);
  void note_throttle(const Send& send);
  void add_sample(const Send& send);
  [[nodiscard]] Send& decisive() const;
  [[nodiscard]] Outcome finish();
  [[nodiscard]] Attempt make_lost_attempt(const Send& send, int decisive_number) const;
  void drop_unsent_hedge();
  void notify_change();

  CurrentAttempt& attempt_;
  const HedgePolicy& policy_;
  HedgeAccount& scope_;
  const Request& request_;
  Call& call_;
  const Next next_;
  const Time started_;

  std::vector<std::unique_ptr<Send>> sends_;
  std::unique_ptr<Send> unsent_;  // dropped, but kept because its coroutine may still run
  std::vector<SendGate*> gates_;  // the gates that the first send has passed
  std::shared_ptr<httpretry::detail::Event> change_;
  HedgeDelay delay_;
  Send* winner_ = nullptr;
  int in_flight_ = 0;
  int endings_ = 0;
  int hedges_tried_ = 0;      // hedges that were sent or refused
  Time last_began_ = kNever;  // when the last send began or the last hedge was refused
  bool throttled_ = false;
  // Last, and so destroyed first: if no memory was left for a hedge, this destroys the sends in
  // flight, which use the other members.
  httpretry::detail::JoinedGroup group_;
};

}  // namespace httpretry::guard
