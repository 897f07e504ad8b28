// ProgressBar: the progress of a long transfer, on one line of a terminal.
#pragma once

#include <httpretry/http/body.hpp>

#include <chrono>
#include <cstdint>
#include <optional>

namespace httpretry::cli {

class ProgressBar {
 public:
  // `had`: bytes of an earlier transfer; `total`: the size in the end, if known.
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

// The same body, which updates a bar while it is read. It must be replayable.
Body with_bar(const Body& body);

}  // namespace httpretry::cli
