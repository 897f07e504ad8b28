// Pace: how fast jobs end, and how long their calls take. For people.
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
  void ended(Time now, Duration took);
  [[nodiscard]] std::uint64_t count() const { return count_; }
  // Over the last ten seconds.
  [[nodiscard]] double per_second(Time now) const;
  // Of the last calls.
  [[nodiscard]] std::optional<Duration> median() const;

 private:
  std::uint64_t count_ = 0;
  std::deque<std::pair<Time, std::uint64_t>> marks_;  // a second or more apart
  std::vector<Duration> last_;
  std::size_t next_ = 0;
};

}  // namespace httpretry::batch
