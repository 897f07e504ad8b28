#include "send_tracker.hpp"

namespace httpretry {
namespace {

// After these libcurl goes on by itself: an authentication round, or a body that was not expected.
bool asks_for_another_send(int status) { return status == 401 || status == 407 || status == 417; }

// A digest server that always says `stale` was sent 2 390 requests in one attempt. Five leave room
// for a proxy's and an origin's rounds together.
constexpr int kMaxSends = 5;

}  // namespace

bool SendTracker::about_to_send(bool reused_connection, int local_port) {
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

void SendTracker::response_came(int status) {
  answered_ = true;
  status_ = status;
}

Sent SendTracker::sent() const {
  if (sends_ == 0) return Sent::Never;
  return answered_ ? Sent::Answered : Sent::Maybe;
}

void SendTracker::describe(Exchange& exchange, bool died) const {
  exchange.wire_sends = sends_;
  exchange.sent = sent();
  exchange.reused_connection = sends_ > 0 && reused_;
  exchange.stale_connection = exchange.sent == Sent::Maybe && reused_ && (stopped_ || died);
  exchange.refused = stream_refused() && sends_ == 1 && !answered_;
}

}  // namespace httpretry
