// Window: what was counted in the last seconds. It slides in tenths of its length, and keeps only
// those in which something was counted.
#pragma once

#include <httpretry/http/time.hpp>

#include <cstdint>
#include <vector>

namespace httpretry::guard {

struct Counts {
  std::uint32_t all = 0;
  std::uint32_t good = 0;
  std::uint32_t slow = 0;
  [[nodiscard]] std::uint32_t failed() const { return all > good ? all - good : 0; }
  Counts& operator+=(const Counts& other);
  Counts& operator-=(const Counts& other);
};

class Window {
 public:
  void add(const Counts& more, Time now, Duration length);
  // By the length that was given last.
  [[nodiscard]] Counts sum(Time now) const;
  // As it was when something was added last.
  [[nodiscard]] const Counts& sum() const { return sum_; }
  void clear() { *this = Window(); }

 private:
  struct Tenth {
    Time end;
    Counts counts;
  };
  [[nodiscard]] bool is_over(const Tenth& one, Time now) const;

  Duration length_of_tenth_{};
  std::vector<Tenth> tenths_;  // at most ten, in their order
  Counts sum_;                 // of them
};

}  // namespace httpretry::guard
