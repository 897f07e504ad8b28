// Window: what was counted in the last seconds. It slides in tenths of its length.
#pragma once

#include <httpretry/http/time.hpp>

#include <array>
#include <cstdint>

namespace httpretry::guard {

struct Counts {
  std::uint32_t all = 0;
  std::uint32_t good = 0;
  std::uint32_t slow = 0;
  [[nodiscard]] std::uint32_t failed() const { return all > good ? all - good : 0; }
};

class Window {
 public:
  // Of the tenth that `now` is in.
  Counts& at(Time now, Duration length);
  [[nodiscard]] Counts sum(Time now, Duration length) const;
  // As it was when `at` was called last.
  [[nodiscard]] Counts sum() const { return sum_until(latest_); }
  void clear() { *this = Window(); }

 private:
  static constexpr std::int64_t kTenths = 10;
  [[nodiscard]] Counts sum_until(std::int64_t tenth) const;
  std::int64_t latest_ = 0;  // the number of the tenth that was last counted in
  std::array<Counts, static_cast<std::size_t>(kTenths)> tenths_{};
};

}  // namespace httpretry::guard
