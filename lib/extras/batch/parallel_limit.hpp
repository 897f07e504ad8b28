// ParallelLimit: how many calls a run may have on the wire at once.
#pragma once

#include <httpretry/http/time.hpp>

#include <cstddef>
#include <optional>

namespace httpretry::batch {

// Starts with the limit of the options. After a shortage of descriptors, memory or ports it allows
// no more calls than have what they need, and then one more each time all of them have ended ten
// times.
class ParallelLimit {
 public:
  ParallelLimit(std::size_t most, Duration max_shortage)
      : most_(most), max_shortage_(max_shortage), limit_(most) {}

  // Notes that a call that lacked nothing has ended.
  void ended(Time turn);
  // Notes that a call that began at that time lacked something.
  void lacked(Time began);
  // Returns whether a call has lacked something since the last `send_fewer`.
  [[nodiscard]] bool lacks() const { return lacking_.has_value(); }
  // Lowers the limit to `others`, the number of calls that have what they need. If there are none,
  // and none has ended since the shortage, only another program can free what is lacking: then
  // nothing is sent for a moment. Returns false if that has lasted for `max_shortage`.
  [[nodiscard]] bool send_fewer(std::size_t others, Time turn);

  [[nodiscard]] std::size_t at(Time turn) const { return turn < again_at_ ? 0 : limit_; }
  // Returns the time from which calls may be sent again.
  [[nodiscard]] Time again_at() const { return again_at_; }

 private:
  std::size_t most_;
  Duration max_shortage_;
  std::size_t limit_;
  std::size_t ended_since_ = 0;        // calls, since the limit changed
  std::optional<Time> lacking_;        // when the last call began that lacked something
  Time last_end_{};                    // of a call that lacked nothing
  std::optional<Time> lacking_since_;  // that nothing could be sent
  Time again_at_{};
};

}  // namespace httpretry::batch
