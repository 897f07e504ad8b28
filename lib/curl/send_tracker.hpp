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

class SendTracker {
 public:
  // The first time, and while rounds of authentication go on.
  [[nodiscard]] bool may_send() const {
    return sends_ == 0 || (answered_ && asks_for_another_send() && sends_ < kMaxSends);
  }
  // libcurl is about to send, on our port `local_port`. False: it must not.
  bool about_to_send(bool reused_connection, int local_port) {
    if (!may_send()) return false;
    if (sends_ == 0) {
      reused_ = reused_connection;
      local_port_ = local_port;
    }
    ++sends_;
    answered_ = body_left_out_ = false;
    return true;
  }
  // The headers of a final response (no 1xx) are complete. `body_left_out`: they count as a
  // success, but the request went out without its body.
  void response_came(int status, bool body_left_out) {
    answered_ = true;
    status_ = status;
    body_left_out_ = body_left_out;
  }
  // The server has not got all of the body, although the last response counts as a success.
  void leave_body_out() { body_left_out_ = true; }
  [[nodiscard]] bool body_left_out() const { return body_left_out_; }

  [[nodiscard]] int sends() const { return sends_; }
  [[nodiscard]] int local_port() const { return local_port_; }  // of the first send
  // The first send went out on a connection that had been used before.
  [[nodiscard]] bool reused() const { return reused_; }
  // A final response came since the last send.
  [[nodiscard]] bool answered() const { return answered_; }
  [[nodiscard]] Sent sent() const {
    if (sends_ == 0) return Sent::Never;
    return answered_ && !body_left_out_ ? Sent::Answered : Sent::Maybe;
  }

  // Fills in what is known here. `died`: the connection did, before a response; `refused`: the
  // server did not process the request.
  void describe(Exchange& exchange, bool died, bool refused) const {
    exchange.wire_sends = sends_;
    exchange.sent = sent();
    exchange.reused_connection = sends_ > 0 && reused_;
    exchange.stale_connection = exchange.sent == Sent::Maybe && reused_ && died;
    exchange.refused = refused && sends_ == 1 && !answered_;
  }

 private:
  // libcurl goes on by itself with a round of authentication. It asks for the challenge without the
  // body, and sends the body also where the server wants no authentication.
  [[nodiscard]] bool asks_for_another_send() const {
    return status_ == 401 || status_ == 407 || body_left_out_;
  }
  // A digest server that always says `stale` was sent 2 390 requests in one attempt. Five leave
  // room for a proxy's and an origin's rounds together.
  static constexpr int kMaxSends = 5;

  int sends_ = 0;
  int local_port_ = 0;
  int status_ = 0;  // of the last final response
  bool reused_ = false;
  bool answered_ = false;
  bool body_left_out_ = false;
};

}  // namespace httpretry
