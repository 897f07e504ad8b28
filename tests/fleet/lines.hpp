// Lines: the log lines of the library, for as long as it lives.
#pragma once

#include <httpretry/log/log.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

class Lines {
 public:
  Lines() {
    httpretry::log_to([this](httpretry::LogLevel, std::string_view line) {
      const std::lock_guard lock(mutex_);
      lines_.emplace_back(line);
      changed_.notify_all();
    });
  }
  ~Lines() { httpretry::log_to({}); }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  // False: not within 10 s.
  bool wait_for(std::string_view part, int count = 1) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10),
                             [&] { return count_of(part) >= count; });
  }
  int count(std::string_view part) {
    const std::lock_guard lock(mutex_);
    return count_of(part);
  }

 private:
  int count_of(std::string_view part) const {
    return static_cast<int>(std::count_if(lines_.begin(), lines_.end(), [&](const auto& line) {
      return line.find(part) != std::string::npos;
    }));
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};
