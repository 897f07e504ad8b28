// Shard: one multi handle of a loop, and the transfers on it. libcurl searches a connection among
// all of a multi's, so with many transfers several multis are cheaper.
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

  // libcurl 7.88 has gone on to another address of a host, and sets no timer for it: has it run the
  // transfers that connect.
  void run_connecting() const;
  // libcurl 7.88 may receive the end of an HTTP/2 response while it runs another transfer of the
  // connection, or while it sends the request, and then not run the transfer that it is for. So
  // some time after something was received, it is made to run those that have waited since.
  void run_waiting(Time now);
  // Long enough for what is on its way, and hardly noticed.
  static constexpr Duration kWaited = std::chrono::milliseconds(20);

  Loop& loop;
  // Its transfers ask for challenges of the server. libcurl 7.88 keeps in the connection that the
  // body is to be left out of such a request, and leaves it out of others, too. So they share no
  // connection with those of other shards, nor with each other at the same time.
  const bool negotiates;
  // libcurl waits for its sockets; otherwise they are in the loop's SocketSet.
  const bool polled;
  Time deadline = kNever;  // when libcurl wants to be called without an event
  Time look_at = kNever;   // when to call it for the transfers that connect
  Time run_at = kNever;    // when to call it for those that wait for the rest of a response
  std::vector<Transfer*> active;
  std::size_t connecting = 0;  // of these: that have not sent yet
  // libcurl is done with them, but the connection may be broken: see Transfer::ask_other.
  std::vector<Transfer*> doubtful;
  // Null where there was no memory to make it anew. Last: its clean-up may still call back.
  Owned<CURLM, curl_multi_cleanup> multi;
};

}  // namespace httpretry
