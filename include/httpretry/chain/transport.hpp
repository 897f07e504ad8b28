// Transport: the end of every chain. It carries out one exchange, never a retry.
#pragma once

#include <httpretry/chain/call.hpp>

namespace httpretry {

class HTTPRETRY_API Transport {
 public:
  virtual ~Transport();
  // Sends the request once and returns the outcome, whose `exchange` tells what was sent. Gives up
  // at call.deadline() with Errc::Timeout, and with Errc::Canceled when call.stop() is requested.
  // Must not throw. It need not know of sinks: the client gives them what is in `body`.
  virtual Task<Outcome> send(Request request, Call& call) = 0;
};

}  // namespace httpretry
