// Transport: the end of every chain. It carries out one exchange, never a retry.
#pragma once

#include <httpretry/flow/call.hpp>

namespace httpretry {

class HTTPRETRY_API Transport {
 public:
  virtual ~Transport();
  // Sends the request once and answers with what came back. Gives up at call.deadline() with
  // Errc::Timeout and, when call.stop() is requested, with Errc::Canceled. Must not throw; what was
  // sent is told in the outcome's `exchange`.
  virtual Task<Outcome> send(Request request, Call& call) = 0;
};

}  // namespace httpretry
