#include "cli/input.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

namespace httpretry::cli {
namespace {

constexpr auto kAll = std::numeric_limits<std::size_t>::max();

[[noreturn]] void fail(int cause) { throw ReadError(std::generic_category().message(cause)); }

std::size_t read_some(int descriptor, char* into, std::size_t size, int give_up) {
  for (;;) {
    std::array<struct ::pollfd, 2> wait{{{descriptor, POLLIN, 0}, {give_up, POLLIN, 0}}};
    if (::poll(wait.data(), wait.size(), -1) > 0 && wait[1].revents != 0) fail(EINTR);
    const auto count = ::read(descriptor, into, size);
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno != EINTR && errno != EAGAIN) fail(errno);
  }
}

// Up to the end, or `most` bytes and a little more.
std::string read_all(int descriptor, std::size_t most, int give_up) {
  std::string bytes;
  std::array<char, 65536> buffer{};
  while (bytes.size() <= most) {
    const auto count = read_some(descriptor, buffer.data(), buffer.size(), give_up);
    if (count == 0) break;
    bytes.append(buffer.data(), count);
  }
  return bytes;
}

// Does not wait for one who writes to a pipe; to read from it does.
int open_file(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) fail(errno);
  return descriptor;
}

// Standard input gives the same bytes however often it is asked; but not more than this was read.
std::optional<std::string> standard_input;

// What was read of a pipe, and then the rest of it.
Body the_rest(std::string begun, int descriptor, int give_up) {
  auto given = std::make_shared<std::size_t>(0);
  auto bytes = std::make_shared<std::string>(std::move(begun));
  return Body::once([given, bytes, descriptor, give_up](std::span<char> into) {
    if (*given == bytes->size()) return read_some(descriptor, into.data(), into.size(), give_up);
    const auto count = bytes->copy(into.data(), into.size(), *given);
    *given += count;
    return count;
  });
}

void check_offset(std::uint64_t offset, std::uint64_t size) {
  if (offset == 0 || offset < size) return;
  throw ReadError("it has " + std::to_string(size) + " bytes, of which -C leaves " +
                  std::to_string(offset) + " out");
}

Body piped_body(const std::string& path, int give_up, std::uint64_t offset) {
  static bool spent = false;
  const auto behind_offset = [offset](const std::string& bytes) {
    check_offset(offset, bytes.size());
    return Body(bytes.substr(offset));
  };
  if (path == "-" && standard_input) return behind_offset(*standard_input);
  if (path == "-" && std::exchange(spent, true)) {
    throw ReadError("it is longer than " + std::to_string(kKeptOfPipe >> 20U) +
                    " MiB, and is needed twice");
  }
  const int descriptor = path == "-" ? STDIN_FILENO : open_file(path);
  auto bytes = read_all(descriptor, kKeptOfPipe, give_up);
  // Left open: the rest comes from there while the request is sent.
  if (bytes.size() > kKeptOfPipe) {
    if (offset > 0)
      throw ReadError("it is too long to leave out its beginning: its size is not known");
    return the_rest(std::move(bytes), descriptor, give_up);
  }
  if (path == "-") {
    standard_input = bytes;
  } else {
    ::close(descriptor);
  }
  return behind_offset(bytes);
}

}  // namespace

std::string read_whole(const std::string& path, int give_up) {
  if (path == "-") {
    if (!standard_input) standard_input = read_all(STDIN_FILENO, kAll, give_up);
    return *standard_input;
  }
  const int descriptor = open_file(path);
  try {
    auto bytes = read_all(descriptor, kAll, give_up);
    ::close(descriptor);
    return bytes;
  } catch (...) {
    ::close(descriptor);
    throw;
  }
}

std::uint64_t size_of(const Body& body) {
  if (!body.present()) return 0;
  if (const auto* bytes = body.bytes()) return bytes->size();
  const auto reader = body.open();
  return reader ? (*reader)->size().value_or(0) : 0;
}

Body upload_body(const std::string& path, int give_up, std::uint64_t offset) {
  try {
    struct ::stat about {};
    if (path != "-") {
      if (::access(path.c_str(), R_OK) != 0 || ::stat(path.c_str(), &about) != 0) fail(errno);
      if (S_ISDIR(about.st_mode)) fail(EISDIR);
      if (S_ISREG(about.st_mode)) {
        check_offset(offset, static_cast<std::uint64_t>(about.st_size));
        return Body::file(path, offset);
      }
    }
    return piped_body(path, give_up, offset);
  } catch (const ReadError& error) {
    throw ReadError("cannot read " + path + ": " + error.what());
  }
}

}  // namespace httpretry::cli
