// Shard: one multi handle of a loop, and the transfers on it. libcurl searches all connections of a
// multi handle, so with many transfers several handles are cheaper.
#pragma once

#include "lib/core/base/owned.hpp"

#include <httpretry/http/time.hpp>

#include <curl/curl.h>

#include <cstddef>
#include <vector>

namespace httpretry {

class Loop;
class Transfer;

struct Shard {
  Shard(Loop& owner, bool for_negotiation, bool polled_by_libcurl)
      : loop(owner), negotiates(for_negotiation), polled(polled_by_libcurl) {}

  // Has libcurl run the transfers that are connecting. libcurl 7.88 sets no timer when it proceeds
  // to another address of a host, so the loop must make it continue.
  void run_connecting() const;
  // Has libcurl run the transfers that have waited for the rest of a response. libcurl 7.88 may
  // receive the end of an HTTP/2 response while it sends the request or runs another transfer of
  // the connection, and then does not run the transfer that the data is for. So the loop calls this
  // some time after something was received.
  void run_waiting(Time now);
  // How long a transfer may wait for the rest. Longer than data that is on its way takes, and too
  // short to be noticed.
  static constexpr Duration kMaxSilence = std::chrono::milliseconds(20);

  // Pauses the uploads that make libcurl 7.88 spin: it watches an HTTP/2 socket for writing
  // even if the server gives the stream no window, and then has nothing to do each time. They
  // continue when the socket can be read, because the window comes that way, or after kMaxHold.
  void hold_uploads(Time now);
  void release_uploads();
  // A window may have come while libcurl ran another transfer of the connection.
  static constexpr Duration kMaxHold = std::chrono::milliseconds(100);

  Loop& loop;
  // The transfers on this shard get challenges from servers. libcurl 7.88 stores in the connection
  // that the body of such a request is left out, and then leaves out the bodies of other requests
  // as well. So these transfers share no connection with other shards, nor with each other at the
  // same time.
  const bool negotiates;
  // libcurl polls the sockets itself; otherwise they are in the loop's SocketSet.
  const bool polled;
  Time deadline = kNever;            // when libcurl wants to be called even without an event
  Time call_connecting_at = kNever;  // when to call run_connecting
  Time call_waiting_at = kNever;     // when to call run_waiting
  Time release_at = kNever;          // when to call release_uploads; kNever if none is held
  bool has_event = false;            // of a polled shard: a socket has an event
  std::vector<Transfer*> active;
  std::size_t connecting = 0;  // of `active`: those that have not sent yet
  // libcurl is done with these, but their connection may be broken: see Transfer::probe_connection.
  std::vector<Transfer*> unconfirmed;
  // Null if there was no memory to recreate it. Last, because its cleanup may still call back.
  Owned<CURLM, curl_multi_cleanup> multi;
};

}  // namespace httpretry
