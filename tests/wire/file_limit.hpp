// How many files this process may have open, for tests of what happens where it has them all.
#pragma once

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>

namespace httpretry {

// Returns the descriptor that the next file would get.
inline std::size_t next_file() {
  const int fd = ::dup(0);
  ::close(fd);
  return static_cast<std::size_t>(fd);
}

// Lets this process have few files open, for a scope.
class FileLimit {
 public:
  explicit FileLimit(std::size_t most) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    auto lower = before_;
    lower.rlim_cur = most;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &lower) == 0);
  }
  ~FileLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace httpretry
