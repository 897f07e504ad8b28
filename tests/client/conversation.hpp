// A client in virtual time, for the tests of the chain.
#pragma once

#include <httpretry/client/client.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>
#include <httpretry/testing/testing.hpp>

#include <memory>
#include <vector>

namespace httpretry {

struct Conversation {
  std::shared_ptr<ManualScheduler> clock = std::make_shared<ManualScheduler>();
  std::shared_ptr<ScriptedTransport> network = std::make_shared<ScriptedTransport>();
  std::shared_ptr<RecordingObserver> heard = std::make_shared<RecordingObserver>();

  Client client(std::vector<MiddlewarePtr> chain, double random = 0.5) const {
    ClientOptions options;
    options.middlewares = std::move(chain);
    options.scheduler = clock;
    options.transport = network;
    options.observers = {heard};
    options.random = fixed_random(random);
    return Client(options);
  }
  [[nodiscard]] std::size_t sends() const { return network->requests().size(); }
  [[nodiscard]] Request sent(std::size_t index) const { return network->requests()[index].request; }
};

inline Error error_of(Errc code) { return Error(code, "scripted"); }

inline Response redirect_to(int status, std::string_view location) {
  Response response(status);
  response.headers.add("Location", location);
  return response;
}

}  // namespace httpretry
