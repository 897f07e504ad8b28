// Bar: how far a long transfer is, on a terminal, over and over on one line.
#pragma once

#include <httpretry/http/body.hpp>

#include <chrono>
#include <cstdint>
#include <optional>

namespace httpretry::cli {

class Bar {
 public:
  // What was there before, and how much it will be in the end.
  void begin(std::uint64_t had, std::optional<std::uint64_t> total);
  void add(std::uint64_t bytes);
  static void end();

 private:
  using Clock = std::chrono::steady_clock;
  std::uint64_t had_ = 0;
  std::uint64_t added_ = 0;
  std::optional<std::uint64_t> total_;
  Clock::time_point began_;
  Clock::time_point drawn_;
};

// The same body, which shows how much of it is on its way. It must be one that can be read again.
Body with_bar(const Body& body);

}  // namespace httpretry::cli
