#include "lib/policy/text.hpp"

#include "lib/json/problems.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace httpretry::policy_file {
namespace {

std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

FileState from(const struct stat& status) {
  FileState state;
  state.there = true;
  state.device = status.st_dev;
  state.inode = status.st_ino;
  state.size = status.st_size;
  state.modified = nanoseconds(status.st_mtim);
  state.changed = nanoseconds(status.st_ctim);
  return state;
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

FileText failed() {
  FileText file;
  file.problem = std::strerror(errno);
  return file;
}

}  // namespace

FileState state_of(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? from(status) : FileState();
}

FileText read_file(const std::string& path, FileKind kind) {
  // A pipe that nobody writes to would be waited for.
  const auto patience = kind == FileKind::Regular ? O_NONBLOCK : 0;
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | patience));
  struct stat status {};
  if (file.number() < 0 || fstat(file.number(), &status) != 0) return failed();
  FileText read_so_far;
  if (kind == FileKind::Regular && !S_ISREG(status.st_mode)) {
    read_so_far.problem = "it is no regular file";
    return read_so_far;
  }
  read_so_far.state = from(status);
  std::array<char, 65536> block{};
  while (read_so_far.text.size() <= kMaxJsonText) {
    const auto count = ::read(file.number(), block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed();
    if (count == 0) break;
    read_so_far.text.append(block.data(), static_cast<std::size_t>(count));
  }
  return read_so_far;
}

}  // namespace httpretry::policy_file
