#include "send/progress_bar.hpp"

#include "cli/message.hpp"
#include "cli/text.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

namespace httpretry::cli {
namespace {

using namespace std::chrono_literals;

// A transfer that is shorter than kDelay needs no bar. More frequent updates than kInterval are not
// readable.
constexpr Duration kDelay = 500ms;
constexpr Duration kInterval = 100ms;

// Returns the width of a bar next to a text: as much as the terminal has room for, within limits.
std::size_t bar_width(const std::string& text) {
  constexpr std::size_t kUsual = 24;  // if the width of the terminal is unknown
  constexpr std::size_t kMost = 50;
  constexpr std::size_t kBrackets = 3;  // with a space
  const auto width = status_width();
  const auto used = columns_of(text) + kBrackets;
  return width == 0 ? kUsual : std::min(kMost, width - std::min(used, width));
}

// Returns the text of a progress bar: "[=====>    ]  52 %  5.2 MiB of 10.0 MiB, 1.3 MiB/s". The bar
// is left out if the total number of bytes is unknown, or if the terminal is too narrow. `speed` is
// in bytes per second.
std::string bar_text(std::uint64_t transferred, std::optional<std::uint64_t> total, double speed) {
  constexpr std::size_t kShortestBar = 4;
  const auto bytes = static_cast<double>(transferred);
  auto text = byte_text(bytes);
  if (total) text += " of " + byte_text(static_cast<double>(*total));
  text += ", " + byte_text(speed) + "/s";
  if (!total || *total == 0) return text;
  const auto share = std::min(1.0, bytes / static_cast<double>(*total));
  std::array<char, 8> percent{};  // "100 %"
  std::snprintf(percent.data(), percent.size(), "%3.0f %%", share * 100);
  text = percent.data() + ("  " + text);
  const auto width = bar_width(text);
  if (width < kShortestBar) return text;
  auto bar = std::string(static_cast<std::size_t>(share * static_cast<double>(width)), '=') + '>';
  bar.resize(width, ' ');  // removes the ">" if the bar is full
  return "[" + bar + "] " + text;
}

}  // namespace

std::string byte_text(double bytes) {
  constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; bytes >= 1000 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", bytes, kUnits[unit]);
  return text.data();
}

void ProgressBar::update(const Progress& progress) {
  const bool receives = progress.received > 0;
  const bool restarts = progress.sent == 0 && !receives;
  if (restarts || (receives && last_.received == 0)) began_ = drawn_ = Clock::now();
  const auto moved = receives ? progress.received : progress.sent;
  const auto total = receives ? progress.to_receive : progress.to_send;
  last_ = progress;
  if (moved == total) return show_status("");
  if (moved > 0) show(moved, receives ? progress.offset : 0, total);
}

void ProgressBar::show(std::uint64_t moved, std::uint64_t before,
                       std::optional<std::uint64_t> total) {
  const auto now = Clock::now();
  if (now - began_ < kDelay || now - drawn_ < kInterval) return;
  drawn_ = now;
  if (total) *total += before;
  const auto time = std::chrono::duration<double>(now - began_).count();
  show_status(bar_text(before + moved, total, static_cast<double>(moved) / time));
}

}  // namespace httpretry::cli
