#include "input.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <optional>
#include <system_error>

namespace httpretry::cli {
namespace {

[[noreturn]] void fail(int cause) { throw ReadError(std::generic_category().message(cause)); }

std::string read_all(int descriptor) {
  std::string bytes;
  std::array<char, 65536> buffer{};
  for (;;) {
    const auto count = ::read(descriptor, buffer.data(), buffer.size());
    if (count == 0) return bytes;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(errno);
    bytes.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

int open_file(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail(errno);
  return descriptor;
}

}  // namespace

std::string read_whole(const std::string& path) {
  if (path == "-") {
    static std::optional<std::string> standard_input;
    if (!standard_input) standard_input = read_all(STDIN_FILENO);
    return *standard_input;
  }
  const int descriptor = open_file(path);
  try {
    auto bytes = read_all(descriptor);
    ::close(descriptor);
    return bytes;
  } catch (...) {
    ::close(descriptor);
    throw;
  }
}

void demand_readable(const std::string& path) {
  struct ::stat about {};
  if (::access(path.c_str(), R_OK) != 0 || ::stat(path.c_str(), &about) != 0) fail(errno);
  if (S_ISDIR(about.st_mode)) fail(EISDIR);
}

}  // namespace httpretry::cli
