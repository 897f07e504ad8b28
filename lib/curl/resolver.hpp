// Resolver: the addresses of host names, looked up apart from the loops. libcurl's own look-up
// makes a thread each time, and a loop that wants to end one has to wait for it.
#pragma once

#include <httpretry/curl/transport_options.hpp>
#include <httpretry/flow/shared.hpp>
#include <httpretry/flow/transport.hpp>

#include <memory>
#include <string>

namespace httpretry {

// Asked by all loops of a client. A name has one look-up under way at a time, however many wait for
// it, and one that nobody waits for any more is not begun. An answer is good for a minute. For some
// minutes more it is used while a new one is looked up, so that a name server's failure does no
// harm where the name is in use.
class Resolver {
 public:
  explicit Resolver(Lookup lookup);
  // Does not wait: a look-up that is under way ends by itself, and nobody hears of it.
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  struct Answer {
    Answer(Result<Addresses> found, Time until) : addresses(std::move(found)), use_until(until) {}
    Result<Addresses> addresses;
    Time use_until;  // ask again then
  };
  // The error is that of the look-up, or of a wait that was called off or took too long.
  Task<Answer> resolve(std::string host, Scheduler& scheduler, Time limit, std::stop_token stop);
  // The addresses have led nowhere: looks for others.
  void renew(const std::string& host, Time now);

 private:
  class Name;
  class Waiting;
  struct Entry;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace httpretry
