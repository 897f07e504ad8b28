#include <httpretry/log/log.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <memory>
#include <mutex>

namespace httpretry {
namespace {

// The process-wide log function. Never destroyed, because a client may log after main.
struct Target {
  std::mutex mutex;
  std::shared_ptr<const LogFunction> function = std::make_shared<LogFunction>();
};

Target& target() {
  static auto* const one = new Target;
  return *one;
}

std::shared_ptr<const LogFunction> function_of_program() {
  const std::lock_guard lock(target().mutex);
  return target().function;
}

// Returns the current local time as a log line shows it: "[2026-08-01 12:00:00.123]".
std::string time_text() {
  using namespace std::chrono;
  const auto now = system_clock::now();
  const auto seconds = system_clock::to_time_t(now);
  const auto since_epoch = duration_cast<milliseconds>(now.time_since_epoch());
  std::tm parts{};
  localtime_r(&seconds, &parts);
  std::array<char, 32> to_second{};
  std::array<char, 48> text{};
  std::strftime(to_second.data(), to_second.size(), "%Y-%m-%d %H:%M:%S", &parts);
  std::snprintf(text.data(), text.size(), "[%s.%03d]", to_second.data(),
                static_cast<int>(since_epoch.count() % 1000));
  return text.data();
}

// Writes the line at once, so that the lines of several threads are not mixed.
void to_standard_error(LogLevel level, std::string_view line) {
  const auto text =
      time_text().append(" [").append(to_string(level)).append("] ").append(line) + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace

std::string_view to_string(LogLevel level) {
  switch (level) {
    case LogLevel::Info: return "info";
    case LogLevel::Warning: return "warning";
    case LogLevel::Error: return "error";
  }
  return "unknown";
}

void log_to(LogFunction function) {
  auto fresh = std::make_shared<const LogFunction>(std::move(function));
  const std::lock_guard lock(target().mutex);
  target().function.swap(fresh);  // the old function is destroyed after the lock is released
}

void write_log(const LogFunction& function, LogLevel level, std::string_view line) {
  if (!function) return to_standard_error(level, line);
  try {
    function(level, line);
  } catch (...) {
    to_standard_error(level, line);
  }
}

void write_log(LogLevel level, std::string_view line) {
  write_log(*function_of_program(), level, line);
}

}  // namespace httpretry
