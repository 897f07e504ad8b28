#include "cli/output.hpp"

#include <httpretry/flow/sink.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <optional>
#include <system_error>

namespace httpretry::cli {
namespace {

[[noreturn]] void fail(const std::string& name, int cause) {
  throw WriteError("cannot write to " + name + ": " + std::generic_category().message(cause));
}

// A pipe that nobody reads yet is waited for.
int open_device(const std::string& path, int give_up) {
  for (;;) {
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (descriptor >= 0) return descriptor;
    if (errno != ENXIO || !is_stream(path)) fail(path, errno);
    struct ::pollfd wait {
      give_up, POLLIN, 0
    };
    if (::poll(&wait, 1, 50) > 0) fail(path, EINTR);
  }
}

// Of standard output, /dev/stdout and its like. To open them again would be another place in the
// same file.
std::optional<int> own_descriptor(const std::string& path) {
  if (path == "-" || path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    int number = 0;
    const auto end = path.data() + path.size();
    const auto [stop, code] = std::from_chars(path.data() + folder.size(), end, number);
    if (code == std::errc() && stop == end && number >= 0) return number;
  }
  return std::nullopt;
}

// As the body of an answer goes into a file: aside, and into its place when it is whole.
Result<void> write_file(const std::string& path, std::string_view bytes) {
  auto file = save_to(path)->open(Request::get(""));
  if (!file) return std::move(file).error();
  if (auto begun = (*file)->begin(Response(200), 0); !begun) return begun;
  if (auto written = (*file)->write(bytes); !written) return std::move(written).error();
  return (*file)->finish();
}

}  // namespace

void write_all(int descriptor, std::string_view bytes, int give_up, const std::string& name) {
  struct ::stat about {};
  const bool regular = ::fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode);
  constexpr std::size_t kShort = 256U << 10U;
  while (!bytes.empty()) {
    // A pipe that poll() calls writable takes this much without blocking.
    const auto piece = regular ? bytes : bytes.substr(0, PIPE_BUF);
    std::array<struct ::pollfd, 2> wait{{{descriptor, POLLOUT, 0}, {give_up, POLLIN, 0}}};
    if (!regular && ::poll(wait.data(), wait.size(), -1) > 0 && (wait[1].revents & POLLIN) != 0) {
      if (wait[0].revents == 0 || bytes.size() > kShort) fail(name, EINTR);
    }
    const auto count = ::write(descriptor, piece.data(), piece.size());
    if (count < 0 && errno != EINTR && errno != EAGAIN) fail(name, errno);
    if (count > 0) bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

Direct::Direct(const std::string& path, int give_up)
    : name_(path == "-" ? "standard output" : path), give_up_(give_up) {
  const auto there = own_descriptor(path);
  own_ = !there;
  descriptor_ = there ? *there : open_device(path, give_up);
}

Direct::~Direct() {
  if (own_) ::close(descriptor_);
}

bool is_stream(const std::string& path) {
  struct ::stat about {};
  return own_descriptor(path) || (::stat(path.c_str(), &about) == 0 && S_ISFIFO(about.st_mode));
}

void write_to(const std::string& path, std::string_view bytes, int give_up) {
  struct ::stat about {};
  const bool file = ::stat(path.c_str(), &about) != 0 || S_ISREG(about.st_mode);
  if (!file || own_descriptor(path)) return Direct(path, give_up).write(bytes);
  if (const auto written = write_file(path, bytes); !written) {
    throw WriteError(written.error().message);
  }
}

}  // namespace httpretry::cli
