// The doors of a client, as types: what is true of one must be true of all.
#pragma once

#include "wire.hpp"

#include <httpretry/testing/testing.hpp>

#include <future>
#include <thread>

namespace httpretry::doors {

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

}  // namespace httpretry::doors

TYPE_TO_STRING(httpretry::doors::Blocking);
TYPE_TO_STRING(httpretry::doors::BlockingOnLoop);
TYPE_TO_STRING(httpretry::doors::Future);
TYPE_TO_STRING(httpretry::doors::Callback);
TYPE_TO_STRING(httpretry::doors::Awaited);

#define ALL_DOORS                                                                         \
  httpretry::doors::Blocking, httpretry::doors::BlockingOnLoop, httpretry::doors::Future, \
      httpretry::doors::Callback, httpretry::doors::Awaited
