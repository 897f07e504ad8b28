#pragma once

#include <httpretry/export.hpp>

#include <httpretry/chain/call.hpp>

namespace httpretry {

// Transport is the end of every chain: it carries out exchanges, and never retries. A client uses
// libcurl unless ClientOptions::transport is set. One object serves all calls of its client.
class HTTPRETRY_API Transport {
 public:
  virtual ~Transport();
  // Sends the request once and returns the outcome, whose `exchange` reports what was sent. Gives
  // up at call.deadline() with Errc::Timeout, and with Errc::Canceled when call.stop() is
  // requested. Must not throw. A transport need not support sinks, because the client passes the
  // contents of `body` to them.
  virtual Task<Outcome> send(Request request, Call& call) = 0;
};

}  // namespace httpretry
