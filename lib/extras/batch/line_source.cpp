#include "line_source.hpp"

#include "file_lock.hpp"
#include "lib/core/json/detail/json.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace httpretry::batch {
namespace {

constexpr std::size_t kBlock = 256 * 1024;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

LineSource::LineSource(std::string path)
    : name_(std::move(path)), descriptor_(STDIN_FILENO), buffer_(kBlock, '\0') {
  if (name_ == "-") {
    name_ = "standard input";
    return;
  }
  opened_ = Descriptor(::open(name_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!opened_.open()) throw file_error("read " + name_);
  descriptor_ = opened_.get();
}

// Reads blocks until the buffer has a line break behind `begin_`. The last line may have none.
std::optional<std::string_view> LineSource::next() {
  // No byte between `begin_` and `search_from` is a line break.
  for (std::size_t search_from = begin_;;) {
    const auto* const line_break = static_cast<const char*>(
        std::memchr(buffer_.data() + search_from, '\n', end_ - search_from));
    const bool is_last_line = line_break == nullptr && at_end_ && begin_ < end_;
    if (line_break != nullptr || is_last_line) {
      const auto line_end =
          is_last_line ? end_ : static_cast<std::size_t>(line_break - buffer_.data());
      std::string_view line(buffer_.data() + begin_, line_end - begin_);
      begin_ = std::min(line_end + 1, end_);  // the last line may have no line break to skip
      if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
      if (++number_ == 1 && line.starts_with(kByteOrderMark)) {
        line.remove_prefix(kByteOrderMark.size());
      }
      return line;
    }
    if (at_end_) return std::nullopt;
    const auto searched_bytes = end_ - begin_;
    at_end_ = !fill();  // moves `begin_`
    search_from = begin_ + searched_bytes;
  }
}

// Moves the unread bytes to the front of the buffer and reads more behind them. Returns false at
// the end of the input. Throws StoreError if a line is too long or the input cannot be read.
bool LineSource::fill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= std::exchange(begin_, 0);
  if (end_ == buffer_.size()) {
    if (end_ > kMaxJsonText) {
      throw StoreError(name_ + ":" + std::to_string(number_ + 1) + ": the line is longer than " +
                       std::to_string(kMaxJsonText / (1024 * 1024)) + " MiB");
    }
    buffer_.resize(buffer_.size() * 2);
  }
  for (;;) {
    const auto count = ::read(descriptor_, buffer_.data() + end_, buffer_.size() - end_);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw file_error("read " + name_);
    end_ += static_cast<std::size_t>(count);
    return count > 0;
  }
}

}  // namespace httpretry::batch
