#include "output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <system_error>

namespace httpretry::cli {
namespace {

[[noreturn]] void fail(const std::string& name, int cause) {
  throw WriteError("cannot write to " + name + ": " + std::generic_category().message(cause));
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return number_; }
  int close() {
    const int number = number_;
    number_ = -1;
    return ::close(number);
  }

 private:
  int number_;
};

// Goes with this object, unless it took its target's place.
class Aside {
 public:
  explicit Aside(const std::string& target) : path_(target + ".XXXXXX") {
    descriptor_ = ::mkostemp(path_.data(), O_CLOEXEC);
    if (descriptor_ < 0) fail(target, errno);
  }
  ~Aside() {
    if (!renamed_) ::unlink(path_.c_str());
  }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
  [[nodiscard]] int descriptor() const { return descriptor_; }
  void become(const std::string& target) {
    if (::rename(path_.c_str(), target.c_str()) != 0) fail(target, errno);
    renamed_ = true;
  }

 private:
  std::string path_;
  int descriptor_;
  bool renamed_ = false;
};

::mode_t mask_at_start() {
  const auto mask = ::umask(0);
  ::umask(mask);
  return mask;
}
// Asked for before there are threads: they would make files without it meanwhile.
const ::mode_t kMask = mask_at_start();

// A file as open() would have made it, or with the permissions of the one that it replaces.
::mode_t mode_for(const struct ::stat* old) {
  return old != nullptr ? old->st_mode & 07777U : 0666U & ~kMask;
}

// What a link leads to is replaced, not the link, also where nothing is there yet.
std::string behind_links(std::string path) {
  std::error_code failed;
  // The system follows no more of them either.
  for (int links = 0; links < 40 && std::filesystem::is_symlink(path, failed); ++links) {
    const auto target = std::filesystem::read_symlink(path, failed);
    if (failed) break;
    path = (std::filesystem::path(path).parent_path() / target).string();
  }
  return path;
}

// A pipe that nobody reads yet is waited for.
int open_device(const std::string& path, int give_up) {
  for (;;) {
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (descriptor >= 0) return descriptor;
    if (errno != ENXIO || !is_pipe(path)) fail(path, errno);
    struct ::pollfd wait {
      give_up, POLLIN, 0
    };
    if (::poll(&wait, 1, 50) > 0) fail(path, EINTR);
  }
}

void write_aside(const std::string& target, std::string_view bytes, ::mode_t mode, int give_up,
                 const std::string& name) {
  Aside aside(target);
  Descriptor file(aside.descriptor());
  if (::fchmod(file.get(), mode) != 0) fail(name, errno);
  write_all(file.get(), bytes, give_up, name);
  // Some file systems tell only here that the disk is full.
  if (file.close() != 0) fail(name, errno);
  aside.become(target);
}

}  // namespace

void write_all(int descriptor, std::string_view bytes, int give_up, const std::string& name) {
  struct ::stat about {};
  const bool regular = ::fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode);
  while (!bytes.empty()) {
    // A pipe that poll() calls writable takes this much without blocking.
    const auto piece = regular ? bytes : bytes.substr(0, PIPE_BUF);
    std::array<struct ::pollfd, 2> wait{{{descriptor, POLLOUT, 0}, {give_up, POLLIN, 0}}};
    if (!regular && ::poll(wait.data(), wait.size(), -1) > 0 && (wait[1].revents & POLLIN) != 0) {
      fail(name, EINTR);
    }
    const auto count = ::write(descriptor, piece.data(), piece.size());
    if (count < 0 && errno != EINTR && errno != EAGAIN) fail(name, errno);
    if (count > 0) bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

bool is_pipe(const std::string& path) {
  struct ::stat about {};
  return ::stat(path.c_str(), &about) == 0 && S_ISFIFO(about.st_mode);
}

void write_to(const std::string& path, std::string_view bytes, int give_up) {
  if (path == "-") return write_all(STDOUT_FILENO, bytes, give_up, "standard output");
  struct ::stat about {};
  const bool exists = ::stat(path.c_str(), &about) == 0;
  // Renaming would get past a file that we may not write to.
  if (exists && ::access(path.c_str(), W_OK) != 0) fail(path, errno);
  if (!exists || S_ISREG(about.st_mode)) {
    return write_aside(behind_links(path), bytes, mode_for(exists ? &about : nullptr), give_up,
                       path);
  }
  const Descriptor device(open_device(path, give_up));
  write_all(device.get(), bytes, give_up, path);
}

}  // namespace httpretry::cli
