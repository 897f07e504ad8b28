// Resolver: looks up the addresses of host names on its own threads. libcurl's own look-up starts a
// thread each time, and a loop that ends it early must wait for that thread.
#pragma once

#include <httpretry/chain/shared.hpp>
#include <httpretry/chain/transport.hpp>
#include <httpretry/curl/transport_options.hpp>

namespace httpretry {

// Returns whether the text is an IPv4 address, or an IPv6 address without brackets.
bool is_numeric(const std::string& address);

// All loops of a client share one. It runs at most one look-up per name, however many calls wait
// for it, and does not start one that no call waits for. Addresses are used for one minute, and for
// five more while a new look-up runs or fails, so that a failing name server does not affect names
// in use.
class Resolver {
 public:
  // If `may_block` is false, each `resolve` calls the look-up directly, on the caller's thread.
  explicit Resolver(Lookup lookup, bool may_block = true);
  // Does not wait: a running look-up ends by itself, and its result is dropped.
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  struct Resolved {
    Resolved(Result<Addresses> found, Time until) : addresses(std::move(found)), use_until(until) {}
    Result<Addresses> addresses;
    Time use_until;  // call `resolve` again then
  };
  // Waits no longer than `until`. Returns the error of the look-up, or of a wait that was stopped
  // or took too long.
  Task<Resolved> resolve(std::string host, Scheduler& scheduler, Time until, std::stop_token stop);
  // Looks the name up again, because none of its addresses could be reached.
  void renew(const std::string& host, Time now);

 private:
  struct NameLookup;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace httpretry
