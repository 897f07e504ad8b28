// Resolver: looks up the addresses of host names, on threads of its own. libcurl's own look-up
// starts a thread each time, and a loop that wants to end one has to wait for it.
#pragma once

#include <httpretry/chain/shared.hpp>
#include <httpretry/chain/transport.hpp>
#include <httpretry/curl/transport_options.hpp>

namespace httpretry {

// IPv4 or IPv6, without brackets.
bool is_numeric(const std::string& address);

// Shared by all loops of a client. At most one look-up runs for each name, however many calls wait
// for it; one that nobody waits for is not begun. Addresses are used for a minute, and for five
// more while a new look-up runs or fails: so a name server's failure does no harm to names in use.
class Resolver {
 public:
  // `may_block`: false calls the look-up where `resolve` is called, each time.
  explicit Resolver(Lookup lookup, bool may_block = true);
  // Does not wait: a look-up that is running ends by itself, and its result is dropped.
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  struct Resolved {
    Resolved(Result<Addresses> found, Time until) : addresses(std::move(found)), use_until(until) {}
    Result<Addresses> addresses;
    Time use_until;  // ask again then
  };
  // The error is that of the look-up, or of a wait that was stopped or took too long.
  Task<Resolved> resolve(std::string host, Scheduler& scheduler, Time limit, std::stop_token stop);
  // Nothing could be reached at the addresses: looks for others.
  void renew(const std::string& host, Time now);

 private:
  struct Name;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace httpretry
