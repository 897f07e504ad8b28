// Window: what was counted in the last seconds. It slides in tenths of its length.
//
// A process has a window for each host, so nearly all of them are small: 16 bits for each count, in
// place. Counts that need more, and tenths of several lengths, are kept in memory of their own.
#pragma once

#include <httpretry/export.hpp>
#include <httpretry/http/time.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace httpretry::guard {

struct Counts {
  std::uint32_t all = 0;
  std::uint32_t good = 0;
  std::uint32_t slow = 0;
  [[nodiscard]] std::uint32_t failed() const { return all > good ? all - good : 0; }
  HTTPRETRY_API Counts& operator+=(const Counts& other);
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
  static constexpr int kTenths = 10;
  struct SmallCounts {
    std::uint16_t all = 0;
    std::uint16_t good = 0;
    std::uint16_t slow = 0;
    [[nodiscard]] bool has_room(const Counts& more) const;
    SmallCounts& operator+=(const Counts& more);
    explicit operator Counts() const { return {all, good, slow}; }
  };
  struct Tenth {
    Time end;
    Counts counts;
  };
  using Large = std::vector<Tenth>;  // in their order; never empty

  [[nodiscard]] bool is_over(Time end, Time now) const;
  void begin_tenth(Time now);
  void make_large();
  void drop_over(Time now);

  Duration length_of_tenth_{};
  Counts sum_;
  // The newest first. All are of one length, and follow each other.
  std::array<SmallCounts, kTenths> tenths_{};
  Time end_ = Time::min();        // of the newest; min(): nothing was counted
  std::unique_ptr<Large> large_;  // instead of these
};

}  // namespace httpretry::guard
