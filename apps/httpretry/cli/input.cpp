#include "cli/input.hpp"

#include "lib/core/base/descriptor.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

namespace httpretry::cli {
namespace {

[[noreturn]] void fail(int cause) { throw ReadError(std::generic_category().message(cause)); }

// Waits for bytes and reads them into `into`. Returns their number, which is 0 at the end. Throws
// WaitEnded when `cancel` becomes readable; poll ignores a descriptor of -1.
std::size_t read_some(int descriptor, char* into, std::size_t size, int cancel) {
  for (;;) {
    std::array<::pollfd, 2> waits{{{descriptor, POLLIN, 0}, {cancel, POLLIN, 0}}};
    if (::poll(waits.data(), waits.size(), /*timeout=*/-1) > 0 && waits[1].revents != 0) {
      throw WaitEnded(std::generic_category().message(EINTR));
    }
    const auto count = ::read(descriptor, into, size);
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno != EINTR && errno != EAGAIN) fail(errno);
  }
}

// Reads to the end, but at most one buffer beyond `most` bytes, so that the caller notices the
// excess.
std::string read_all(int descriptor, std::size_t most, int cancel) {
  std::string bytes;
  std::array<char, 65536> buffer{};
  while (bytes.size() <= most) {
    const auto count = read_some(descriptor, buffer.data(), buffer.size(), cancel);
    if (count == 0) break;
    bytes.append(buffer.data(), count);
  }
  return bytes;
}

std::string limited(std::string bytes, std::size_t most) {
  if (bytes.size() <= most) return bytes;
  throw ReadError("it has more than " + std::to_string(most >> 20U) + " MiB");
}

// Opens a file without blocking: the wait for the writer of a pipe happens in read_some, where it
// can be canceled.
Descriptor open_file(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file.is_open()) fail(errno);
  return file;
}

// The content of standard input, kept for later reads.
std::optional<std::string> standard_input;

// Returns a body that consists of `begun`, which was read from a pipe already, and the rest of the
// pipe, which is read while the request is sent. The body can be sent only once. A read throws
// WaitEnded when the descriptor `cancel` becomes readable, and ReadError if it fails.
Body streamed_body(std::string begun, Descriptor pipe, int cancel) {
  // Shared, because the function that reads the body must be copyable.
  auto position = std::make_shared<std::size_t>(0);  // in `bytes`
  auto bytes = std::make_shared<std::string>(std::move(begun));
  auto rest = std::make_shared<Descriptor>(std::move(pipe));
  // Copies the next bytes of the body to `into`, and returns their number; 0 is the end.
  return Body::once([position, bytes, rest, cancel](std::span<char> into) {
    if (*position == bytes->size()) return read_some(rest->get(), into.data(), into.size(), cancel);
    const auto count = bytes->copy(into.data(), into.size(), *position);
    *position += count;
    return count;
  });
}

// Returns the body of an upload from a pipe, or from standard input if `path` is "-", without its
// first `offset` bytes. Reads up to kMaxPipeBuffer bytes here, so that a retry can send them again.
// The rest of a longer body is read while it is sent, so that body can be sent only once. Standard
// input that fits into the buffer is kept and can be the body of several requests. Throws
// ReadError, and its subclass WaitEnded when the descriptor `cancel` becomes readable.
Body piped_body(const std::string& path, int cancel, std::uint64_t offset) {
  static bool consumed = false;  // whether standard input was read, even if it was too long to keep
  const auto skip_offset = [offset](const std::string& bytes) {
    check_offset(offset, bytes.size());
    return Body(bytes.substr(offset));
  };
  const bool is_stdin = path == "-";
  if (is_stdin && standard_input) return skip_offset(*standard_input);  // kept by an earlier read
  if (is_stdin && consumed) {
    throw ReadError("it is longer than " + std::to_string(kMaxPipeBuffer >> 20U) +
                    " MiB, so it cannot be read twice");
  }
  consumed = consumed || is_stdin;
  // A copy of the descriptor, because the body closes it.
  auto pipe = is_stdin ? Descriptor(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)) : open_file(path);
  if (!pipe.is_open()) fail(errno);
  auto bytes = read_all(pipe.get(), kMaxPipeBuffer, cancel);
  // For a longer body, read_all returns a little more than its limit.
  if (bytes.size() > kMaxPipeBuffer) {
    if (offset > 0) throw ReadError("it is too long for -C, which needs to know its size");
    return streamed_body(std::move(bytes), std::move(pipe), cancel);
  }
  if (is_stdin) standard_input = bytes;
  return skip_offset(bytes);
}

}  // namespace

void check_offset(std::uint64_t offset, std::uint64_t size, const std::string& prefix) {
  if (offset == 0 || offset < size) return;
  throw ReadError(prefix + "it has " + std::to_string(size) + " bytes, but -C skips " +
                  std::to_string(offset));
}

std::string read_whole(const std::string& path, std::size_t most, int cancel) {
  if (path == "-") {
    if (!standard_input) standard_input = limited(read_all(STDIN_FILENO, most, cancel), most);
    return limited(*standard_input, most);
  }
  const auto file = open_file(path);
  return limited(read_all(file.get(), most, cancel), most);
}

std::uint64_t size_of(const Body& body) {
  if (!body.present()) return 0;
  if (const auto* bytes = body.bytes()) return bytes->size();
  const auto reader = body.open();
  return reader ? (*reader)->size().value_or(0) : 0;
}

// Returns the body of an upload without its first `offset` bytes. A regular file is read for each
// attempt; a pipe or a device is read here. Throws ReadError, which names the file.
Body upload_body(const std::string& path, int cancel, std::uint64_t offset) {
  try {
    if (path == "-") return piped_body(path, cancel, offset);
    struct ::stat info {};
    if (::access(path.c_str(), R_OK) != 0 || ::stat(path.c_str(), &info) != 0) fail(errno);
    if (S_ISDIR(info.st_mode)) fail(EISDIR);
    if (!S_ISREG(info.st_mode)) return piped_body(path, cancel, offset);
    check_offset(offset, static_cast<std::uint64_t>(info.st_size));
    return Body::file(path, offset);
  } catch (const ReadError& error) {
    throw ReadError("cannot read " + path + ": " + error.what());
  }
}

}  // namespace httpretry::cli
