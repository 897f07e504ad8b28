// Window: what was counted in the last seconds. It slides in tenths of its length.
//
// A process has a window for each host, so nearly all of them are small: 16 bits for each count, in
// place. Counts that need more, and tenths of an earlier length, are kept in a list.
#pragma once

#include <httpretry/export.hpp>
#include <httpretry/http/time.hpp>

#include <array>
#include <cstdint>
#include <vector>

namespace httpretry::guard {

struct Counts {
  std::uint32_t all = 0;
  std::uint32_t good = 0;
  std::uint32_t slow = 0;
  [[nodiscard]] std::uint32_t failed() const { return all > good ? all - good : 0; }
  HTTPRETRY_API Counts& operator+=(const Counts& other);
};

class Window {
 public:
  void add(const Counts& more, Time now, Duration length);
  // By the length that was given last.
  [[nodiscard]] Counts sum(Time now) const;
  void clear() { *this = Window(); }

 private:
  static constexpr int kTenths = 10;
  struct SmallCounts {
    std::uint16_t all = 0;
    std::uint16_t good = 0;
    std::uint16_t slow = 0;
  };
  struct Tenth {
    Time end;
    Counts counts;
  };

  [[nodiscard]] bool is_over(Time end, Time now) const;
  void begin_tenth(Time now);
  void list_all();

  Duration length_of_tenth_{};
  // The newest first. All are of one length, and follow each other.
  std::array<SmallCounts, kTenths> tenths_{};
  Time end_{};                 // of the newest; the epoch: nothing was counted in them
  std::vector<Tenth> listed_;  // those that cannot be there; the last has the latest end
};

}  // namespace httpretry::guard
