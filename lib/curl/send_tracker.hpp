// SendTracker: counts how often libcurl sends the request of one exchange, and decides whether it
// may send again.
//
// libcurl sends again by itself, for every method: when a reused connection turns out to be dead,
// when an HTTP/2 server refuses a stream (up to five times), after a 417, and in rounds of
// authentication. Only the last is allowed here. So one exchange is one send, and what the server
// can have seen is known from this count alone, whatever error libcurl reports.
#pragma once

#include <httpretry/http/attempt.hpp>

namespace httpretry {

class SendTracker {
 public:
  // libcurl is about to send, on our port `local_port`. False: it must not.
  bool about_to_send(bool reused_connection, int local_port) {
    if (sends_ == 0) {
      reused_ = reused_connection;
      local_port_ = local_port;
    } else if (!answered_ || !asks_for_another_send(status_) || sends_ == kMaxSends) {
      stopped_ = true;
      return false;
    }
    ++sends_;
    answered_ = false;
    return true;
  }
  // Another exchange sends on the connection that was made for this one.
  void connection_shared() { shared_ = true; }
  // The headers of a final response (no 1xx) are complete.
  void response_came(int status) {
    answered_ = true;
    status_ = status;
  }

  [[nodiscard]] int sends() const { return sends_; }
  [[nodiscard]] int local_port() const { return local_port_; }  // of the first send
  // The first send went out on a connection that had been used before.
  [[nodiscard]] bool reused() const { return reused_; }
  // A final response came since the last send.
  [[nodiscard]] bool answered() const { return answered_; }
  [[nodiscard]] Sent sent() const {
    if (sends_ == 0) return Sent::Never;
    return answered_ ? Sent::Answered : Sent::Maybe;
  }

  // A further send was not allowed, and libcurl wanted it because the server had refused the
  // stream: on a new connection that no other exchange used there is no other reason.
  [[nodiscard]] bool stream_refused() const { return stopped_ && !reused_ && !shared_; }

  // Fills in what is known here. `died`: libcurl reported that the connection was dead.
  void describe(Exchange& exchange, bool died) const {
    exchange.wire_sends = sends_;
    exchange.sent = sent();
    exchange.reused_connection = sends_ > 0 && reused_;
    exchange.stale_connection = exchange.sent == Sent::Maybe && reused_ && (stopped_ || died);
    exchange.refused = stream_refused() && sends_ == 1 && !answered_;
  }

 private:
  // After these libcurl goes on by itself, with a round of authentication.
  static bool asks_for_another_send(int status) { return status == 401 || status == 407; }
  // A digest server that always says `stale` was sent 2 390 requests in one attempt. Five leave
  // room for a proxy's and an origin's rounds together.
  static constexpr int kMaxSends = 5;

  int sends_ = 0;
  int local_port_ = 0;
  int status_ = 0;  // of the last final response
  bool reused_ = false;
  bool shared_ = false;
  bool answered_ = false;
  bool stopped_ = false;
};

}  // namespace httpretry
