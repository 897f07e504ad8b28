// What only the library knows of a Call.
#pragma once

#include "lib/core/base/either_stop.hpp"
#include "lib/core/chain/current_attempt.hpp"
#include "lib/core/chain/racing_send.hpp"

#include <httpretry/chain/call.hpp>
#include <httpretry/chain/transport.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace httpretry {

class SharedState;

// What the calls of a client have in common; all but `random` and `observers` may be nullptr.
struct CallsInCommon {
  const std::stop_token* client_end = nullptr;  // requested when the client ends
  const std::function<double()>* random = nullptr;
  const std::vector<std::shared_ptr<Observer>>* observers = nullptr;
  const PolicySource* policies = nullptr;
  std::shared_ptr<SharedState> shared_state{};  // ClientOptions::shared_state
};

// Lives in the frame of the coroutine that carries the call.
struct Call::State {
  std::uint64_t id = 0;
  Scheduler* scheduler = nullptr;
  Transport* transport = nullptr;
  const CallsInCommon* common = nullptr;
  bool watches_end = false;  // `stop` is not requested when the client ends
  int exchanges = 0;         // begun by the transport, of all branches
  std::optional<Url> first_url;
  Context context;
  Time started{};
  std::stop_token stop;  // of the call's options
  History history;

  // Joins the stop of the call and that of the client. Made for the first caller of Call::stop: our
  // own waits end with their loop, without it.
  std::unique_ptr<EitherStop> either_stop;

  static State& of(const Call& call) { return *call.state_; }
  // nullptr where the client shares nothing.
  static const std::shared_ptr<SharedState>& shared_state_of(const Call& call) {
    return of(call).common->shared_state;
  }

  // The stop without the end of the client, for a wait that the end of its loop cancels anyway.
  static const std::stop_token& own_stop(const Call& call) { return call.stop_; }

  // A branch for the attempt of that number. Its deadline, and those of its own branches, are for
  // the exchange: a wait for admission (ClientOptions::max_in_flight) moves them back, but not past
  // the deadline of `call`.
  static Call attempt(const Call& call, int number, Time deadline, CurrentAttempt& current);
  static CurrentAttempt* current_attempt(const Call& call) { return call.current_; }
  // Is told of the final headers of this branch's response, on the loop of the call. nullptr where
  // nobody wants to know. Must not throw.
  static const HeadersWatch* watch(const Call& call) { return call.watch_; }
  static void set_watch(Call& call, const HeadersWatch* watch) { call.watch_ = watch; }
  // A branch for one of several sends.
  static Call racing(const Call& call, RacingSend& send, int number, Time deadline,
                     std::stop_token stop);
  static RacingSend* racing(const Call& call) { return call.racing_; }
  // An exchange may wait for admission until then. The branch for it when it has waited.
  static Time admission_deadline(const Call& call) { return call.limit_; }
  static HTTPRETRY_API Call admitted_after(const Call& call, Duration waited);
};

}  // namespace httpretry
