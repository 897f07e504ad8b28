// Descriptor: owns a file descriptor. EventFd: a flag that threads can wait for with poll.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

namespace httpretry::faults {

[[noreturn]] inline void throw_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool open() const { return fd_ >= 0; }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

// Readable from `signal` to `clear`.
class EventFd {
 public:
  EventFd() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!fd_.open()) throw_errno("eventfd");
  }
  [[nodiscard]] int fd() const { return fd_.get(); }
  void signal() { [[maybe_unused]] const int ignored = ::eventfd_write(fd_.get(), 1); }
  void clear() {
    eventfd_t count = 0;
    [[maybe_unused]] const int ignored = ::eventfd_read(fd_.get(), &count);
  }

 private:
  Descriptor fd_;
};

}  // namespace httpretry::faults
