// ParallelLimit limits how many calls a run may have in flight.
#pragma once

#include <httpretry/http/time.hpp>

#include <cstddef>
#include <optional>

namespace httpretry::batch {

// Starts with the limit of the options. After a shortage of descriptors, memory or ports, it lowers
// the limit to the number of calls that have what they need. It raises the limit by one each time
// ten times that many calls have ended.
class ParallelLimit {
 public:
  ParallelLimit(std::size_t most, Duration max_shortage)
      : most_(most), max_shortage_(max_shortage), limit_(most) {}

  // Notes that a call has ended without a shortage.
  void ended(Time turn);
  // Notes that a call that began at that time has ended with a shortage.
  void lacked(Time began);
  // Returns whether a call has ended with a shortage since the last `send_fewer`.
  [[nodiscard]] bool has_new_shortage() const { return lacking_.has_value(); }
  // Lowers the limit to `others`, the number of calls that have what they need. If that is 0, and
  // no such call has ended since the shortage, only another program can free the resource. The
  // limit is then 0 for a moment. Returns false if this has lasted for `max_shortage`.
  [[nodiscard]] bool send_fewer(std::size_t others, Time turn);

  [[nodiscard]] std::size_t at(Time turn) const { return turn < again_at_ ? 0 : limit_; }
  // Returns the time from which calls may be sent again.
  [[nodiscard]] Time again_at() const { return again_at_; }

 private:
  std::size_t most_;
  Duration max_shortage_;
  std::size_t limit_;
  std::size_t ended_since_ = 0;        // the calls that ended since the limit changed
  std::optional<Time> lacking_;        // the latest beginning of a call with a shortage
  Time last_end_{};                    // the last end of a call without a shortage
  std::optional<Time> lacking_since_;  // since when no call can be sent
  Time again_at_{};
};

}  // namespace httpretry::batch
