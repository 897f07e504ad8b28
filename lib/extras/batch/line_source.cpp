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
  if (!opened_.is_open()) throw file_error("read " + name_);
  descriptor_ = opened_.get();
}

// Returns the next line of the input without its line end, which is "\n" or "\r\n", or nullopt at
// the end of the input. The line points into the buffer and is valid until the next call. The
// unread bytes of the buffer are those from `begin_` to `end_`; if they have no line break, reads
// more.
std::optional<std::string_view> LineSource::next() {
  const auto find_line_break = [this](std::size_t from) {
    return std::string_view(buffer_.data(), end_).find('\n', from);
  };
  auto line_end = find_line_break(begin_);
  while (line_end == std::string_view::npos && !at_end_) {
    const auto searched_bytes = end_ - begin_;
    at_end_ = !fill();  // changes `begin_`, because it moves the unread bytes
    line_end = find_line_break(begin_ + searched_bytes);
  }
  if (line_end == std::string_view::npos) {
    if (begin_ == end_) return std::nullopt;
    line_end = end_;  // the last line has no line break
  }
  std::string_view line(buffer_.data() + begin_, line_end - begin_);
  begin_ = std::min(line_end + 1, end_);  // behind the line break, if there is one
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  ++number_;
  // An editor may have written a byte order mark at the beginning of the file. If files were
  // joined, each of them may have one.
  if (line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  return line;
}

// Reads more of the input into the buffer. To make room, moves the unread bytes (`begin_` to
// `end_`) to its front, and doubles it if they fill it, because then a line is longer than the
// buffer. Returns false at the end of the input. Throws StoreError if a line is longer than
// kMaxJsonText, or if the input cannot be read.
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
    if (count < 0 && errno == EINTR) continue;  // a signal interrupted it
    if (count < 0) throw file_error("read " + name_);
    end_ += static_cast<std::size_t>(count);
    return count > 0;
  }
}

}  // namespace httpretry::batch
