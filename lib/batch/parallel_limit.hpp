// ParallelLimit: how many calls a run may have on the wire at once.
#pragma once

#include <httpretry/http/time.hpp>

#include <cstddef>
#include <optional>

namespace httpretry::batch {

// The limit is the one of the options. After a shortage of descriptors, memory or ports it is what
// the calls in flight have, and it grows by one whenever that many calls have ended several times.
class ParallelLimit {
 public:
  ParallelLimit(std::size_t most, Duration max_shortage)
      : most_(most), max_shortage_(max_shortage), limit_(most) {}

  // Notes that a call has ended that lacked nothing.
  void ended(Time turn);
  // Notes that a call lacked something that began then.
  void lacked(Time began);
  // Returns whether `send_fewer` is to be called, because a call lacked something.
  [[nodiscard]] bool lacks() const { return lacking_.has_value(); }
  // Lowers the limit to what `others`, the calls in flight, have. Where there are none, and none
  // has ended since the shortage, only another program can free what is lacking: then nothing is
  // sent for a moment. Returns false when it has been so for `max_shortage`.
  [[nodiscard]] bool send_fewer(std::size_t others, Time turn);

  [[nodiscard]] std::size_t at(Time turn) const { return turn < again_at_ ? 0 : limit_; }
  // Returns when something may be sent again.
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
