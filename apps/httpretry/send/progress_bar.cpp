#include "send/progress_bar.hpp"

#include "cli/message.hpp"
#include "cli/text.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

namespace httpretry::cli {
namespace {

using namespace std::chrono_literals;

// A shorter transfer needs no bar; more updates than this are not readable.
constexpr Duration kDelay = 500ms;
constexpr Duration kInterval = 100ms;

std::string amount(double bytes) {
  constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; bytes >= 1000 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", bytes, kUnits[unit]);
  return text.data();
}

// "[=====>    ]  52 %  5.2 MiB of 10.0 MiB, 1.3 MiB/s"
std::string bar_text(std::uint64_t had, std::optional<std::uint64_t> total, double speed) {
  std::string text;
  if (total && *total > 0) {
    constexpr std::size_t kWidth = 24;
    const auto share = std::min(1.0, static_cast<double>(had) / static_cast<double>(*total));
    const auto full = static_cast<std::size_t>(share * kWidth);
    std::array<char, 8> percent{};
    std::snprintf(percent.data(), percent.size(), "%3.0f %%", share * 100);
    text = "[" + std::string(full, '=') + (full < kWidth ? ">" : "") +
           std::string(full < kWidth ? kWidth - full - 1 : 0, ' ') + "] " + percent.data() + "  ";
  }
  text += amount(static_cast<double>(had));
  if (total) text += " of " + amount(static_cast<double>(*total));
  return text + ", " + amount(speed) + "/s";
}

class BarReader final : public BodyReader {
 public:
  explicit BarReader(std::unique_ptr<BodyReader> reader)
      : reader_(std::move(reader)), left_(reader_->size()) {
    bar_.begin(0, left_);
  }

  Result<std::size_t> read(std::span<char> into) override {
    auto count = reader_->read(into);
    if (!count) return count;
    bar_.add(*count);
    if (left_) *left_ -= *count;
    if (*count == 0 || left_ == 0U) ProgressBar::end();
    return count;
  }
  [[nodiscard]] std::optional<std::uint64_t> size() const override { return reader_->size(); }

 private:
  std::unique_ptr<BodyReader> reader_;
  std::optional<std::uint64_t> left_;
  ProgressBar bar_;
};

}  // namespace

void ProgressBar::begin(std::uint64_t had, std::optional<std::uint64_t> total) {
  had_ = had;
  added_ = 0;
  total_ = total;
  began_ = drawn_ = Clock::now();
}

void ProgressBar::add(std::uint64_t bytes) {
  added_ += bytes;
  const auto now = Clock::now();
  if (now - began_ < kDelay || now - drawn_ < kInterval) return;
  drawn_ = now;
  const auto time = std::chrono::duration<double>(now - began_).count();
  show_status(bar_text(had_ + added_, total_, static_cast<double>(added_) / time));
}

void ProgressBar::end() { show_status(""); }

Body with_bar(const Body& body) {
  return Body::reopened([body]() -> Result<std::unique_ptr<BodyReader>> {
    auto reader = body.open();
    if (!reader) return std::move(reader).error();
    return std::unique_ptr<BodyReader>(std::make_unique<BarReader>(*std::move(reader)));
  });
}

}  // namespace httpretry::cli
