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
  return {true,
          status.st_dev,
          status.st_ino,
          status.st_size,
          nanoseconds(status.st_mtim),
          nanoseconds(status.st_ctim)};
}

struct Descriptor {
  ~Descriptor() {
    if (number >= 0) close(number);
  }
  int number;
};

FileText failed(std::string problem = std::strerror(errno)) { return {{}, {}, std::move(problem)}; }

}  // namespace

FileState state_of(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? from(status) : FileState();
}

FileText read_file(const std::string& path, FileKind kind) {
  // A pipe that nobody writes to would be waited for.
  const auto patience = kind == FileKind::Regular ? O_NONBLOCK : 0;
  const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | patience)};
  struct stat status {};
  if (file.number < 0 || fstat(file.number, &status) != 0) return failed();
  if (kind == FileKind::Regular && !S_ISREG(status.st_mode)) return failed("it is no regular file");
  FileText read_so_far{{}, from(status), {}};
  std::array<char, 65536> block{};
  while (read_so_far.text.size() <= kMaxJsonText) {
    const auto count = ::read(file.number, block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed();
    if (count == 0) break;
    read_so_far.text.append(block.data(), static_cast<std::size_t>(count));
  }
  return read_so_far;
}

}  // namespace httpretry::policy_file
