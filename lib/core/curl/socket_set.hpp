// SocketSet: libcurl's sockets of a loop, and a descriptor that wakes the loop from other threads.
#pragma once

#include "poller.hpp"

#include "lib/core/base/descriptor.hpp"

#include <curl/curl.h>

#include <array>
#include <span>
#include <unordered_map>
#include <vector>

namespace httpretry {

struct Shard;

class SocketSet {
 public:
  // Throws std::system_error where the process may open no more descriptors.
  SocketSet();

  // From any thread: ends a wait.
  void wake() noexcept { wake_.signal(); }

  // Readable while something has happened that no wait has reported. -1 without
  // Poller::kHasDescriptor.
  [[nodiscard]] int descriptor() const { return poller_.descriptor(); }

  // What has happened, until the next wait.
  [[nodiscard]] std::span<const Poller::Event> wait(int timeout_ms);
  // Returns whose socket has the event; nullptr where it has been closed, or is not wanted any
  // more, since the kernel wrote the event. The event of `wake` is over then.
  Shard* owner_of(int fd);

  // What libcurl's callbacks ask for. Nothing throws.
  // `what`: CURL_POLL_IN and so on. False: the system has no memory for it.
  bool want(int fd, Shard& shard, int what) noexcept;
  // -errno if the process lacks something for it.
  int open(const curl_sockaddr& address) noexcept;
  int close(curl_socket_t fd) noexcept;
  // Whether something can be read from the socket with this local port, even if it is only the end
  // of the connection. Port 0: from any Unix socket that libcurl does not watch, because nothing
  // tells them apart. The socket may be another one, so true only means that a new connection is
  // the better choice. Throws std::bad_alloc.
  [[nodiscard]] bool has_unread(int local_port);
  // Whether the server has ended the connection with this local port. Throws std::bad_alloc.
  [[nodiscard]] bool has_ended(int local_port);
  // The socket with this local port; -1 where it was not opened by `open`. Throws std::bad_alloc.
  [[nodiscard]] int find(int local_port);
  // A response has shown that the connection with this local port speaks HTTP/1. Returns its
  // socket, or -1 where it is not known: connections to several servers may have the same port.
  // Throws std::bad_alloc.
  int set_http1(int local_port);
  // Whether that is known of the connection with this local port.
  [[nodiscard]] bool is_http1(int local_port) const;

  int close_error = 0;  // what went wrong (errno) before the last `close`, since it was last 0
  bool lost = false;    // a socket was closed, or could not be opened

 private:
  // The poller watches it even when libcurl does not want its events: most are wanted again for
  // the next exchange, which saves two system calls each time.
  struct Socket {
    Shard* shard = nullptr;
    int watched = 0;  // CURL_POLL_IN and so on, as the poller knows
    int wanted = 0;
    bool ours = false;  // opened by `open`, so that `close` is called
    bool http1 = false;
    int port = 0;  // of our end, if known
  };
  [[nodiscard]] bool make_room(int fd) noexcept;
  Socket& at(int fd) { return sockets_[static_cast<std::size_t>(fd)]; }
  void forget(int fd, Socket& socket) noexcept;
  [[nodiscard]] bool any_with(int local_port, bool (*is)(int fd));

  static constexpr char kFailure[] = "cannot make a loop";

  Poller poller_{kFailure};
  EventFd wake_{kFailure};
  std::vector<Socket> sockets_;  // by descriptor
  // Descriptors by the port of our end. Several may have the same, to different servers.
  std::unordered_multimap<int, int> ports_;
  // More than come at once in practice; what is left over comes with the next wait.
  std::array<Poller::Event, 256> events_{};
};

}  // namespace httpretry
