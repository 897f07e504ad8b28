#include "cli/message.hpp"

#include <cstdio>
#include <mutex>
#include <utility>

namespace httpretry::cli {
namespace {

// Moves to the beginning of the line and clears it.
constexpr const char* kErase = "\r\x1b[K";
std::mutex mutex;
bool status_shown = false;

void write(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stderr); }

}  // namespace

void print_message(const std::string& line) {
  const std::lock_guard lock(mutex);
  write((std::exchange(status_shown, false) ? kErase : "") + line + '\n');
}

void show_status(const std::string& line) {
  const std::lock_guard lock(mutex);
  const bool replaces = std::exchange(status_shown, !line.empty());
  if (replaces || !line.empty()) write((replaces ? kErase : "") + line);
}

}  // namespace httpretry::cli
