// LoopTransport: the transport of a loop. Its exchanges run on the loop that the call is on.
#pragma once

#include <httpretry/flow/transport.hpp>

#include <string>

namespace httpretry {

class Loop;

class LoopTransport final : public Transport {
 public:
  explicit LoopTransport(Loop& loop) : loop_(loop) {}
  Task<Outcome> send(Request request, Call& call) override;

 private:
  // For a host whose addresses libcurl does not know: looks them up first.
  Task<Outcome> resolve_and_send(Request request, Call& call);
  // `addresses`: for libcurl, where it does not know them.
  Task<Outcome> exchange(Request request, Call& call, const std::string* addresses);

  Loop& loop_;
};

}  // namespace httpretry
