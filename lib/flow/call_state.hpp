// What only the library knows of a Call.
#pragma once

#include "delivery.hpp"
#include "either_stop.hpp"

#include <httpretry/flow/call.hpp>
#include <httpretry/flow/transport.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace httpretry {

// Lives in the frame of the coroutine that carries the call.
struct Call::State {
  std::uint64_t id = 0;
  Scheduler* scheduler = nullptr;
  Transport* transport = nullptr;
  const std::function<double()>* random = nullptr;
  const std::vector<std::shared_ptr<Observer>>* observers = nullptr;
  const PolicySource* policies = nullptr;
  std::optional<Url> first_url;
  Context context;
  int exchanges = 0;  // begun by the transport, of all branches
  Time started{};
  std::stop_token stop;                         // of the call's options
  const std::stop_token* client_end = nullptr;  // nullptr: `stop` is requested then, too
  // Of both. Made when somebody asks for it: our own waits end with their loop, without it.
  std::unique_ptr<EitherStop> either_stop;
  std::unique_ptr<Delivery> delivery;  // of the body to the request's sink
  History history;
  // What the middleware retry has sent last, if that was to a URL which a pending response had
  // named. Middlewares above it know only the request that began the operation.
  std::optional<Request> poll;
  static std::optional<Request> take_poll(const Call& call) {
    return std::exchange(of(call).poll, std::nullopt);
  }

  static State& of(const Call& call) { return *call.state_; }

  // The stop without the end of the client, for a wait that the end of its loop cancels anyway.
  static const std::stop_token& own_stop(const Call& call) { return call.stop_; }

  // A branch for the attempt of that number. `limits` of its policy must outlive it: they are not
  // put into a request with options of its own, which would cost each attempt an allocation of 400
  // bytes. Its deadline, and those of its own branches, are for the exchange: a wait for admission
  // (ClientOptions::max_in_flight) moves them back, but not past the deadline of `call`.
  static Call attempt(const Call& call, int number, Time deadline, const ExchangeLimits& limits);
  // An exchange may wait for admission until then. The branch for it when it has waited.
  static Time admission_deadline(const Call& call) { return call.limit_; }
  static Call admitted_after(const Call& call, Duration waited);
};

}  // namespace httpretry
