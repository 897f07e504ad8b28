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

std::optional<std::string_view> LineSource::next() {
  for (std::size_t searched = begin_;;) {
    const auto* const found =
        static_cast<const char*>(std::memchr(buffer_.data() + searched, '\n', end_ - searched));
    if (found != nullptr || (at_end_ && begin_ < end_)) {
      const auto line_end =
          found != nullptr ? static_cast<std::size_t>(found - buffer_.data()) : end_;
      std::string_view line(buffer_.data() + begin_, line_end - begin_);
      begin_ = std::min(line_end + 1, end_);
      if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
      if (++number_ == 1 && line.starts_with(kByteOrderMark)) {
        line.remove_prefix(kByteOrderMark.size());
      }
      return line;
    }
    if (at_end_) return std::nullopt;
    const auto had = end_ - begin_;
    at_end_ = !fill();
    searched = begin_ + had;
  }
}

// Reads more bytes behind those of the buffer. Returns false at the end of the input.
bool LineSource::fill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= std::exchange(begin_, 0);
  if (end_ == buffer_.size()) {
    if (end_ > kMaxJsonText) {
      throw StoreError(name_ + ":" + std::to_string(number_ + 1) + ": the line is longer than " +
                       std::to_string(kMaxJsonText >> 20U) + " MiB");
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
