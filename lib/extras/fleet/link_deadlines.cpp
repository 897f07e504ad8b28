// The part of Link that waits for events, and that checks whether a connection or a reply is
// overdue.
#include "link.hpp"

#include <poll.h>

#include <algorithm>
#include <array>

namespace httpretry::fleet {
namespace {

// A connection without any reply for this many reply timeouts, and at least a second, is dead.
constexpr int kDeadAfterTimeouts = 20;

std::string milliseconds_text(Duration limit) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(limit).count();
  return std::to_string(ms) + " ms";
}

}  // namespace

// Changes the state of the link after events or a timeout. The connection may have been
// established, may have ended or may take too long; the first commands on it may have failed; or a
// reply may be overdue.
void Link::check_deadlines(Time now) {
  if (state_ == State::Down) return;  // serve() reconnects when it is time
  if (!connection_.is_open()) return go_down(connection_.error(), now);
  // The wait before the next attempt to connect doubles with each failure. A connection that has
  // lasted resets it. One that is lost earlier counts as a failure, too, because a server may reply
  // to the greeting and then misbehave.
  const bool has_lasted = now - began_ >= options_.longest_wait;
  if (state_ == State::Up && has_lasted) wait_ = options_.first_wait;
  if (state_ == State::Connecting && connection_.is_connected()) greet();
  if (moving_ && state_ == State::Up) {
    // A MOVED reply has named the node of the cluster that has the keys: follow_moved() has set
    // host_ and port_. Closing the connection reports the commands without a reply as lost.
    // moving_ stays set while the link connects, but the state is then not Up.
    connection_.close("the keys are at another node");
    sent_.clear();
    return connect(now);
  }
  // A reply handler has found a reason to close the connection, such as a wrong password.
  if (!problem_.empty()) return go_down(std::exchange(problem_, {}), now);
  if (state_ == State::Connecting || state_ == State::Greeting) {
    if (now - began_ < options_.connect_timeout) return;
    return go_down("no connection within " + milliseconds_text(options_.connect_timeout), now);
  }
  if (!sent_.empty()) check_overdue_replies(sent_.front()->sent, now);
}

// Checks how long the server has not replied. `oldest_sent` is when the oldest command without a
// reply was sent. After `reply_timeout`, the link becomes Late: it keeps the connection, but
// reports commands as lost at once until a PING shows that the server replies in time again. If no
// reply at all arrives for much longer, closes the connection, and connects again later.
void Link::check_overdue_replies(Time oldest_sent, Time now) {
  if (state_ == State::Up && now - oldest_sent >= options_.reply_timeout) {
    const auto why = "no response within " + milliseconds_text(options_.reply_timeout);
    state_ = State::Late;
    next_try_ = now;  // serve() sends the PING as soon as sent_ is empty
    set_is_up(/*is_up=*/false, why);
    // The commands stay in sent_, because their replies may still arrive. Each one's `done` is
    // empty afterwards, so no command is reported twice.
    report_lost(sent_, why);
  }
  // The connection may be dead without an error. Only a new one can show that.
  const auto patience =
      std::max<Duration>(kDeadAfterTimeouts * options_.reply_timeout, std::chrono::seconds(1));
  const auto silent_since = std::max(oldest_sent, last_reply_);
  if (state_ == State::Late && now - silent_since >= patience) {
    go_down("no response within " + milliseconds_text(patience), now);
  }
}

// Returns when check_deadlines() or serve() has something to do even if no event occurs: kNever if
// only an event can give them something to do, or a time in the past if they have something to do
// at once.
Time Link::next_deadline() const {
  switch (state_) {
    case State::Down: return next_try_;
    case State::Connecting:
    case State::Greeting: return later(began_, options_.connect_timeout);
    case State::Up:
      if (!resend_.empty()) return {};
      return sent_.empty() ? kNever : later(sent_.front()->sent, options_.reply_timeout);
    case State::Late: return sent_.empty() ? next_try_ : kNever;
  }
  return kNever;
}

// Blocks until the connection has events, post() or the destructor wakes this thread, or the time
// is `when`. Passes the events on to the connection, which calls the reply handlers.
void Link::poll_until(Time when) {
  {
    const std::lock_guard lock(mutex_);
    // Time{} is in the past: poll() below returns at once, with the events that there are.
    if (!posted_.empty() || stop_) when = Time{};
    sleeping_ = true;  // post() signals wake_ only if this is set; take_posted() resets it
  }
  // Without a connection, its descriptor is -1, which poll() ignores.
  std::array<pollfd, 2> polled{};
  polled[0] = {.fd = wake_.fd(), .events = POLLIN, .revents = 0};
  polled[1] = {.fd = connection_.descriptor(), .events = connection_.wanted_events(), .revents = 0};
  // At most an hour, because a wait until kNever does not fit into poll()'s milliseconds.
  const auto left = std::clamp<Duration>(when - now_is(), {}, std::chrono::hours(1));
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  ::poll(polled.data(), polled.size(), static_cast<int>(ms));
  if (polled[0].revents != 0) wake_.clear();
  if (polled[1].revents != 0) connection_.on_events(polled[1].revents);
}

}  // namespace httpretry::fleet
