#include "cli/output.hpp"

#include "lib/core/base/text.hpp"

#include <httpretry/body/sink.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <optional>
#include <system_error>

namespace httpretry::cli {
namespace {

// Opens `path` for writing. While a pipe has no reader, open() fails with ENXIO, so it is tried
// again every 50 ms: a blocking open() could not be canceled. `limit` ends the wait for a reader
// or, if it is null, `cancel` does. Throws WriteError.
int open_device(const std::string& path, int cancel, const WaitLimit* limit) {
  if (limit != nullptr) cancel = limit->descriptor();
  constexpr int kRetryAfterMs = 50;
  for (;;) {
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (descriptor >= 0) return descriptor;
    const int failure = errno;
    const bool lacks_reader = failure == ENXIO && is_stream(path);  // a socket has ENXIO, too
    if (!lacks_reader) throw_write_error(path, failure);
    ::pollfd wait{cancel, POLLIN, 0};
    if (::poll(&wait, 1, kRetryAfterMs) <= 0) continue;
    if (limit == nullptr || !limit->has_expired()) throw_write_error(path, EINTR);  // a signal
    throw WriteError("cannot write to " + path + ": no reader within the time limit of -m");
  }
}

// Returns the open descriptor that `path` names, such as 1 for /dev/stdout. Opening the path again
// would start at another file offset.
std::optional<int> open_descriptor(const std::string& path) {
  if (path == "-" || path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    const auto number = to_number<int>(std::string_view(path).substr(folder.size()));
    if (number >= 0) return number;
  }
  return std::nullopt;
}

// Writes the file like a response body: under another name, and renamed when it is complete.
Result<void> write_file(const std::string& path, std::string_view bytes, Readers readers) {
  FileOptions options;
  options.owner_only = readers == Readers::Owner;
  auto file = save_to(path, options)->open(Request::get(""));
  if (!file) return std::move(file).error();
  if (auto begun = (*file)->begin(Response(200), 0); !begun) return begun;
  if (auto written = (*file)->write(bytes); !written) return std::move(written).error();
  return (*file)->finish();
}

// Opens the same pipe again, so that writes do not block. Setting O_NONBLOCK on `descriptor` would
// also affect the processes that share its open file. Returns -1 if `descriptor` is not a pipe or
// cannot be opened again.
int open_again(int descriptor) {
  struct ::stat about {};
  if (::fstat(descriptor, &about) != 0 || !S_ISFIFO(about.st_mode)) return -1;
  const auto path = "/proc/self/fd/" + std::to_string(descriptor);
  return ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
}

}  // namespace

void throw_write_error(const std::string& name, int cause) {
  throw WriteError("cannot write to " + name + ": " + std::generic_category().message(cause));
}

void write_all(int descriptor, std::string_view bytes, int cancel, const std::string& name) {
  Stream(descriptor, cancel, name).write(bytes);
}

void write_stdout(std::string_view bytes, int cancel) {
  write_all(STDOUT_FILENO, bytes, cancel, "standard output");
}

Stream::Stream(const std::string& path, int cancel, const WaitLimit* opening)
    : name_(path == "-" ? "standard output" : path), cancel_(cancel) {
  const auto existing = open_descriptor(path);
  opened_ = Descriptor(existing ? open_again(*existing) : open_device(path, cancel, opening));
  descriptor_ = opened_.is_open() ? opened_.get() : *existing;
  waits_ = waits_of(descriptor_);
}

Stream::Stream(int descriptor, int cancel, std::string name)
    : name_(std::move(name)),
      cancel_(cancel),
      descriptor_(descriptor),
      waits_(waits_of(descriptor)) {}

Stream::Waits Stream::waits_of(int descriptor) {
  struct ::stat about {};
  if (::fstat(descriptor, &about) != 0) return Waits::InPieces;
  if (S_ISREG(about.st_mode)) return Waits::Never;
  if (S_ISCHR(about.st_mode) && ::isatty(descriptor) == 0) return Waits::Never;
  const bool blocks = (::fcntl(descriptor, F_GETFL) & O_NONBLOCK) == 0;
  return blocks ? Waits::InPieces : Waits::ByPoll;
}

void Stream::write(std::string_view bytes) const {
  bool must_wait = waits_ == Waits::InPieces;
  while (!bytes.empty()) {
    if (must_wait) wait_for_reader(bytes.size());
    // A writable pipe takes PIPE_BUF bytes without blocking.
    const auto piece = waits_ == Waits::InPieces ? bytes.substr(0, PIPE_BUF) : bytes;
    const auto count = ::write(descriptor_, piece.data(), piece.size());
    if (count < 0 && errno == EAGAIN) must_wait = true;  // the pipe is full
    if (count < 0 && errno != EINTR && errno != EAGAIN) throw_write_error(name_, errno);
    if (count > 0) bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

void Stream::wait_for_reader(std::size_t left) const {
  constexpr std::size_t kShort = 256U << 10U;  // still written after a signal if a reader is ready
  std::array<::pollfd, 2> wait{{{descriptor_, POLLOUT, 0}, {cancel_, POLLIN, 0}}};
  if (::poll(wait.data(), wait.size(), -1) <= 0 || (wait[1].revents & POLLIN) == 0) return;
  if (wait[0].revents == 0 || left > kShort) throw_write_error(name_, EINTR);
}

bool is_stream(const std::string& path) {
  struct ::stat about {};
  return open_descriptor(path) || (::stat(path.c_str(), &about) == 0 && S_ISFIFO(about.st_mode));
}

void write_to(const std::string& path, std::string_view bytes, const WaitLimit* limit,
              Readers readers) {
  struct ::stat about {};
  const bool new_or_regular = ::stat(path.c_str(), &about) != 0 || S_ISREG(about.st_mode);
  if (!new_or_regular || open_descriptor(path)) {
    const int cancel = limit != nullptr ? limit->signals().descriptor() : -1;
    return Stream(path, cancel, limit).write(bytes);
  }
  if (const auto written = write_file(path, bytes, readers); !written) {
    throw WriteError(written.error().message);
  }
}

void redirect_messages(const std::string& file) {
  std::fflush(stderr);
  if (file == "-") {
    ::dup2(STDOUT_FILENO, STDERR_FILENO);
    return;
  }
  const Descriptor opened(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!opened.is_open()) throw_write_error(file, errno);
  ::dup2(opened.get(), STDERR_FILENO);
}

}  // namespace httpretry::cli
