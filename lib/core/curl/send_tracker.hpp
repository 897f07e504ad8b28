// SendTracker: counts how often libcurl sends the request of one exchange, and decides whether it
// may send again.
//
// libcurl sends again by itself, for every method: when an HTTP/2 server refuses a stream (up to
// five times), after a 417, in rounds of authentication, and, where no option keeps it from that,
// when a reused connection turns out to be dead. Only authentication is allowed here. So one
// exchange is one send, and what the server can have seen is known from this count alone, whatever
// error libcurl reports.
#pragma once

#include <httpretry/http/attempt.hpp>

namespace httpretry {

struct SendTracker {
  // Whether libcurl may send: the first time, and while it goes on by itself with rounds of
  // authentication. It asks for the challenge without the body, and sends the body also where the
  // server wants no authentication.
  [[nodiscard]] bool may_send() const {
    // A digest server that always says `stale` was sent 2 390 requests in one attempt. Five leave
    // room for a proxy's and an origin's rounds together.
    constexpr int kMaxSends = 5;
    const bool goes_on = status == 401 || status == 407 || body_left_out;
    return sends == 0 || (answered && goes_on && sends < kMaxSends);
  }
  // libcurl is about to send, on our port `port`. False: it must not.
  bool about_to_send(bool reused_connection, int port) {
    if (!may_send()) return false;
    if (sends == 0) {
      reused = reused_connection;
      local_port = port;
    }
    ++sends;
    answered = body_left_out = false;
    return true;
  }
  // The headers of a final response (no 1xx) are complete. `left_out`: they count as a success, but
  // the request went out without its body.
  void response_came(int final_status, bool left_out) {
    answered = true;
    status = final_status;
    body_left_out = left_out;
  }
  // Fills in what is known here. `died`: the connection did, before a response; `refused`: the
  // server did not process the request.
  void describe(Exchange& exchange, bool died, bool refused) const {
    exchange.wire_sends = sends;
    if (sends > 0) exchange.sent = answered && !body_left_out ? Sent::Answered : Sent::Maybe;
    exchange.reused_connection = reused;
    exchange.stale_connection = exchange.sent == Sent::Maybe && reused && died;
    exchange.refused = refused && sends == 1 && !answered;
  }

  int sends = 0;
  int local_port = 0;          // of the first send
  int status = 0;              // of the last final response
  bool reused = false;         // the first send went out on a connection that had been used before
  bool answered = false;       // a final response came since the last send
  bool body_left_out = false;  // it counts as a success, but the server has not got all of the body
};

}  // namespace httpretry
