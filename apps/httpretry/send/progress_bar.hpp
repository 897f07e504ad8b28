// ProgressBar shows the progress of a long transfer on one line of a terminal.
#pragma once

#include <httpretry/http/request.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace httpretry::cli {

// Returns a number of bytes for people: "5.2 MiB".
std::string byte_text(double bytes);

class ProgressBar {
 public:
  // Shows the upload and then the download of one request. RequestOptions::on_progress calls this.
  void update(const Progress& progress);

 private:
  using Clock = std::chrono::steady_clock;
  void show(std::uint64_t moved, std::uint64_t before, std::optional<std::uint64_t> total);

  Progress last_;
  Clock::time_point began_;  // of the upload or the download
  Clock::time_point drawn_;
};

}  // namespace httpretry::cli
