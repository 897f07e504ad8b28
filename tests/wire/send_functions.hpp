// The send functions of a client, as types: what is true of one must be true of all.
#pragma once

#include "wire.hpp"

#include <httpretry/testing/testing.hpp>

#include <future>
#include <thread>

namespace httpretry::send_functions {

struct Blocking {
  static constexpr auto kBlocking = httpretry::Blocking::OwnThread;
  static Outcome send(Client& client, Request request, CallOptions options) {
    return client.send(std::move(request), std::move(options));
  }
};

struct BlockingOnLoop {
  static constexpr auto kBlocking = httpretry::Blocking::SharedLoop;
  static Outcome send(Client& client, Request request, CallOptions options) {
    return client.send(std::move(request), std::move(options));
  }
};

struct Future {
  static constexpr auto kBlocking = httpretry::Blocking::OwnThread;
  static Outcome send(Client& client, Request request, CallOptions options) {
    return client.send_async(std::move(request), std::move(options)).get();
  }
};

struct Callback {
  static constexpr auto kBlocking = httpretry::Blocking::OwnThread;
  static Outcome send(Client& client, Request request, CallOptions options) {
    std::promise<Outcome> promise;
    auto outcome = promise.get_future();
    client.send_then(
        std::move(request),
        [told = std::move(promise)](Outcome heard) mutable { told.set_value(std::move(heard)); },
        std::move(options));
    return outcome.get();
  }
};

struct Awaited {
  static constexpr auto kBlocking = httpretry::Blocking::OwnThread;
  static Outcome send(Client& client, Request request, CallOptions options) {
    return sync_wait(client.co_send(std::move(request), std::move(options)));
  }
};

}  // namespace httpretry::send_functions

TYPE_TO_STRING(httpretry::send_functions::Blocking);
TYPE_TO_STRING(httpretry::send_functions::BlockingOnLoop);
TYPE_TO_STRING(httpretry::send_functions::Future);
TYPE_TO_STRING(httpretry::send_functions::Callback);
TYPE_TO_STRING(httpretry::send_functions::Awaited);

#define ALL_SEND_FUNCTIONS                                                        \
  httpretry::send_functions::Blocking, httpretry::send_functions::BlockingOnLoop, \
      httpretry::send_functions::Future, httpretry::send_functions::Callback,     \
      httpretry::send_functions::Awaited
