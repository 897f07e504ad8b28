// The clock of a blocking retry_call in tests.
#pragma once

#include <httpretry/middleware/retry_call.hpp>

#include <algorithm>

namespace httpretry {

// Its time passes only in waits.
class VirtualClock final : public BlockingClock {
 public:
  [[nodiscard]] Time now() const override { return now_; }
  [[nodiscard]] WallTime wall_now() const override { return WallTime(now_.time_since_epoch()); }
  bool wait_until(Time when, const std::stop_token& stop) const override {
    if (stop.stop_requested()) return false;
    now_ = std::max(now_, when);
    return true;
  }

 private:
  mutable Time now_{};
};

}  // namespace httpretry
