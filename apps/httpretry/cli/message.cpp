#include "cli/message.hpp"

#include <httpretry/client/report.hpp>
#include <httpretry/log/log.hpp>

#include <chrono>
#include <cstdio>
#include <mutex>
#include <utility>

namespace httpretry::cli {
namespace {

// Moves to the beginning of the line and clears it.
constexpr const char* kErase = "\r\x1b[K";
std::mutex mutex;
bool status_shown = false;
bool as_json = false;

void write(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stderr); }

std::string json_of(const std::string& message) {
  const auto now = std::chrono::time_point_cast<WallTime::duration>(WallTime::clock::now());
  return R"({"time":)" + quote_json(rfc3339(now)) + R"(,"event":"message","message":)" +
         quote_json(message) + "}";
}

}  // namespace

void use_json_messages() {
  const std::lock_guard lock(mutex);
  as_json = true;
  log_to([](LogLevel /*level*/, std::string_view line) { print_message(std::string(line)); });
}

void print_message(const std::string& line) {
  const std::lock_guard lock(mutex);
  write((std::exchange(status_shown, false) ? kErase : "") + (as_json ? json_of(line) : line) +
        '\n');
}

void print_json(const std::string& line) {
  const std::lock_guard lock(mutex);
  write(line + '\n');
}

void show_status(const std::string& line) {
  const std::lock_guard lock(mutex);
  if (as_json) return;
  const bool replaces = std::exchange(status_shown, !line.empty());
  if (replaces || !line.empty()) write((replaces ? kErase : "") + line);
}

}  // namespace httpretry::cli
