// Descriptor: owns a file descriptor. EventFd: a flag that threads can wait for with poll.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace httpretry {

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

// The descriptor is readable from `signal` until `clear`.
class EventFd {
 public:
  // Throws std::system_error, with the text `failure`, if the process may open no more descriptors.
  explicit EventFd(const char* failure) : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!fd_.is_open()) throw std::system_error(errno, std::generic_category(), failure);
  }
  [[nodiscard]] int fd() const { return fd_.get(); }
  void signal() noexcept { ::eventfd_write(fd_.get(), 1); }
  void clear() noexcept {
    eventfd_t count = 0;
    ::eventfd_read(fd_.get(), &count);
  }

 private:
  Descriptor fd_;
};

}  // namespace httpretry
