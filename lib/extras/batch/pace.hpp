// Pace measures how fast jobs end and how long their calls take, for the progress of a run.
#pragma once

#include <httpretry/http/time.hpp>

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

namespace httpretry::batch {

class Pace {
 public:
  explicit Pace(Time began) : marks_{{began, 0}} {}
  // Notes that a job has ended whose call took this long.
  void ended(Time now, Duration took);
  [[nodiscard]] std::uint64_t count() const { return count_; }
  // Returns the rate over the last ten seconds.
  [[nodiscard]] double per_second(Time now) const;
  // Returns the median duration of the last calls. Empty: none has ended.
  [[nodiscard]] std::optional<Duration> median() const;

 private:
  std::uint64_t count_ = 0;
  std::deque<std::pair<Time, std::uint64_t>> marks_;  // times with counts, a second or more apart
  std::vector<Duration> last_;                        // a ring buffer
  std::size_t next_ = 0;                              // index in last_
};

}  // namespace httpretry::batch
