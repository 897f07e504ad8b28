// SendTracker: counts how often libcurl sends the request of one exchange, and decides whether it
// may send again.
//
// libcurl sends again by itself, for every method: when a reused connection turns out to be dead,
// when an HTTP/2 server refuses a stream (up to five times), after a 417, and in rounds of
// authentication. Only the last two are allowed here. So one exchange is one send, and what the
// server can have seen is known from this count alone, whatever error libcurl reports.
#pragma once

#include <httpretry/http/attempt.hpp>

namespace httpretry {

class SendTracker {
 public:
  // libcurl is about to send, on our port `local_port`. False: it must not.
  bool about_to_send(bool reused_connection, int local_port);
  // Another exchange sends on the connection that was made for this one.
  void connection_shared() { shared_ = true; }
  // The headers of a final response (no 1xx) are complete.
  void response_came(int status);

  [[nodiscard]] int sends() const { return sends_; }
  [[nodiscard]] int local_port() const { return local_port_; }  // of the first send
  // The first send went out on a connection that had been used before.
  [[nodiscard]] bool reused() const { return reused_; }
  // A final response came since the last send.
  [[nodiscard]] bool answered() const { return answered_; }
  [[nodiscard]] Sent sent() const;

  // A further send was not allowed; what libcurl wanted it for. On a new connection that no other
  // exchange used it sends again for one reason only.
  [[nodiscard]] bool resend_stopped() const { return stopped_; }
  [[nodiscard]] bool stream_refused() const { return stopped_ && !reused_ && !shared_; }

  // Fills in what is known here. `died`: libcurl reported that the connection was dead.
  void describe(Exchange& exchange, bool died) const;

 private:
  int sends_ = 0;
  int local_port_ = 0;
  int status_ = 0;  // of the last final response
  bool reused_ = false;
  bool shared_ = false;
  bool answered_ = false;
  bool stopped_ = false;
};

}  // namespace httpretry
