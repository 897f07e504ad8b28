// The parts of a Call that only the library sees.
#pragma once

#include "lib/core/base/either_stop.hpp"
#include "lib/core/chain/current_attempt.hpp"
#include "lib/core/chain/racing_send.hpp"

#include <httpretry/chain/call.hpp>
#include <httpretry/chain/transport.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace httpretry {

class SharedState;

// The things that the calls of a client share. All except `random` and `observers` may be nullptr.
struct CallsInCommon {
  const std::stop_token* client_end = nullptr;  // requested when the client ends
  const std::function<double()>* random = nullptr;
  const std::vector<std::shared_ptr<Observer>>* observers = nullptr;
  const PolicySource* policies = nullptr;
  std::shared_ptr<SharedState> shared_state{};  // ClientOptions::shared_state
  // The transport may let a request wait, so it calls add_attempt_headers itself.
  bool transport_adds_headers = false;
};

// The state of a call, shared by all its branches. It lives in the frame of the coroutine that runs
// the call.
struct Call::State {
  std::uint64_t id = 0;
  Scheduler* scheduler = nullptr;
  Transport* transport = nullptr;
  const CallsInCommon* common = nullptr;
  // The stop token below is not requested when the client ends, so the end is watched as well.
  bool watches_end = false;
  int exchanges = 0;  // begun by the transport, in all branches
  std::optional<Url> first_url;
  Context context;
  Time started{};
  std::stop_token stop;  // from the call's options
  History history;

  // Joins the stop tokens of the call and the client. Made only when Call::stop is first called:
  // the library's own waits do not need it, because they end with their loop.
  std::unique_ptr<EitherStop> either_stop;

  static State& of(const Call& call) { return *call.state_; }
  // nullptr if the client shares no state.
  static const std::shared_ptr<SharedState>& shared_state_of(const Call& call) {
    return of(call).common->shared_state;
  }

  // The stop token without the end of the client, for waits that the end of the loop cancels
  // anyway.
  static const std::stop_token& own_stop(const Call& call) { return call.stop_; }

  // Returns a branch for the attempt with that number. The deadlines of the branch and of its own
  // branches limit the exchange. A wait for admission (ClientOptions::max_in_flight) postpones
  // them, but not past the deadline of `call`.
  static Call attempt(const Call& call, int number, Time deadline, CurrentAttempt& current);
  static CurrentAttempt* current_attempt(const Call& call) { return call.current_; }
  // The function that is notified of the final headers of this branch's response, on the call's
  // loop. May be nullptr. Must not throw.
  static const HeadersWatch* watch(const Call& call) { return call.watch_; }
  static void set_watch(Call& call, const HeadersWatch* watch) { call.watch_ = watch; }
  // Returns a branch for one of several racing sends.
  static Call racing(const Call& call, RacingSend& send, int number, Time deadline,
                     std::stop_token stop);
  static RacingSend* racing(const Call& call) { return call.racing_; }
  // The time until which an exchange may wait for admission.
  static Time admission_deadline(const Call& call) { return call.limit_; }
  // Completes the history of a call that has ended with this outcome: adds its only attempt if
  // there is no middleware `retry`, and the reason for the end if nothing has set it.
  static void complete_history(const Call& call, const Outcome& outcome);
  // Returns the branch for an exchange that has waited for admission.
  static Call admitted_after(const Call& call, Duration waited) {
    Call branch(call);
    branch.deadline_ = std::min(call.limit_, later(call.deadline_, waited));
    return branch;
  }
};

}  // namespace httpretry
