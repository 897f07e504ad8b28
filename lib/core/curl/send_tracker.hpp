// SendTracker: counts how often libcurl sends the request of one exchange, and decides whether it
// may send again.
//
// libcurl resends by itself, whatever the method: after a refused HTTP/2 stream (up to five times),
// after a 417, in rounds of authentication, and after a reused connection turns out to be dead,
// unless an option prevents it. Only authentication is allowed here. So one exchange is one send,
// and this count alone tells what the server may have seen, whatever error libcurl reports.
#pragma once

#include <httpretry/http/attempt.hpp>

namespace httpretry {

struct SendTracker {
  // Returns whether libcurl may send: the first time, and again during authentication. libcurl gets
  // a challenge by a request without the body, and sends the body afterwards even if the server
  // wants no authentication.
  [[nodiscard]] bool may_send() const {
    // A digest server that always answers `stale` was sent 2 390 requests in one attempt. Five
    // sends are enough for the rounds of a proxy and an origin together.
    constexpr int kMaxSends = 5;
    const bool goes_on = status == 401 || status == 407 || body_left_out;
    return sends == 0 || (answered && goes_on && sends < kMaxSends);
  }
  // Called before each send. Counts it, or returns false if libcurl must not send. The arguments
  // are noted for the first send only; `port` is our local port.
  bool count_if_allowed(bool reused_connection, int port) {
    if (!may_send()) return false;
    if (sends == 0) {
      reused = reused_connection;
      local_port = port;
    }
    ++sends;
    answered = body_left_out = false;
    return true;
  }
  // Called when the headers of a final response (not 1xx) are complete. `left_out`: the response
  // counts as a success, but the request went out without its body.
  void response_came(int final_status, bool left_out) {
    answered = true;
    status = final_status;
    body_left_out = left_out;
  }
  // Fills in what is known here. `died`: the connection died before a response; `refused`: the
  // server did not process the request.
  void describe(Exchange& exchange, bool died, bool refused) const {
    exchange.wire_sends = sends;
    if (sends > 0) exchange.sent = answered && !body_left_out ? Sent::Answered : Sent::Maybe;
    exchange.reused_connection = reused;
    exchange.stale_connection = exchange.sent == Sent::Maybe && reused && died;
    exchange.refused = refused && sends == 1 && !answered;
  }

  int sends = 0;
  int local_port = 0;     // of the first send
  int status = 0;         // of the last final response
  bool reused = false;    // the first send used a connection that had been used before
  bool answered = false;  // a final response has arrived since the last send
  // The response counts as a success, but the server does not have the whole body.
  bool body_left_out = false;
};

}  // namespace httpretry
