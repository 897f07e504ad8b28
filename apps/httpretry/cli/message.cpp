#include "cli/message.hpp"

#include <httpretry/client/report.hpp>
#include <httpretry/log/log.hpp>

#include <sys/ioctl.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <utility>

namespace httpretry::cli {
namespace {

std::mutex mutex;
std::string status;      // the latest status line
std::size_t drawn = 0;   // columns of the status line on the terminal; 0: none is shown
std::size_t pauses = 0;  // how many StatusPause exist
bool as_json = false;

void write(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stderr); }

// Returns what removes the status line from the terminal. If the terminal has become so narrow that
// the line takes several rows, this goes up to the first of them.
std::string erase() {
  const auto columns = std::exchange(drawn, 0);
  if (columns == 0) return {};
  const auto width = status_width() + 1;
  const auto rows_above = width > 1 ? (columns - 1) / width : 0;
  if (rows_above == 0) return "\r\x1b[K";
  return "\x1b[" + std::to_string(rows_above) + "A\r\x1b[J";
}

// Returns the beginning of a text in UTF-8 that fits, with "…" at its end if it is cut off.
std::string fitted(const std::string& line) {
  const auto width = status_width();
  if (width == 0 || columns_of(line) <= width) return line;
  auto text = line;
  while (columns_of(text) >= width) text.pop_back();
  return text + "…";
}

// Shows `status` in place of what is on the terminal.
void draw() {
  const auto line = fitted(status);
  write(erase() + line);
  drawn = columns_of(line);
}

std::string json_line(const std::string& message) {
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
  write(erase() + (as_json ? json_line(line) : line) + '\n');
  if (pauses == 0) status.clear();
}

void print_json(const std::string& line) {
  const std::lock_guard lock(mutex);
  write(line + '\n');
}

void show_status(const std::string& line) {
  const std::lock_guard lock(mutex);
  if (as_json) return;
  status = line;
  if (pauses == 0) draw();
}

std::size_t status_width() {
  ::winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return known ? size.ws_col - 1U : 0;  // in the last column, the cursor could wrap
}

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;  // not a continuation byte
  }));
}

StatusPause::StatusPause() {
  const std::lock_guard lock(mutex);
  if (pauses++ == 0) write(erase());
}

StatusPause::~StatusPause() {
  const std::lock_guard lock(mutex);
  if (--pauses == 0) draw();
}

}  // namespace httpretry::cli
