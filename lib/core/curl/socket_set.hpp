// SocketSet: libcurl's sockets in a loop, and a descriptor by which other threads wake the loop.
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
  // Throws std::system_error if the process may open no more descriptors.
  SocketSet();

  // Ends a wait. May be called from any thread.
  void wake() noexcept { wake_.signal(); }

  // Readable while there is an event that no wait has reported. -1 without Poller::kHasDescriptor.
  [[nodiscard]] int descriptor() const { return poller_.descriptor(); }

  // Returns the events. They are valid until the next wait.
  [[nodiscard]] std::span<const Poller::Event> wait(int timeout_ms);
  // Returns the shard whose socket has the event. Returns nullptr if, since the kernel wrote the
  // event, the socket was closed or its events are no longer wanted. Consumes the event of `wake`.
  Shard* owner_of(int fd);

  // The requests of libcurl's callbacks, which do not throw. `what` is CURL_POLL_IN and so on.
  // Returns false if the system has no memory to watch the socket.
  bool want(int fd, Shard& shard, int what) noexcept;
  // Returns the socket, or -errno if the process lacks something for it.
  int open(const curl_sockaddr& address) noexcept;
  int close(curl_socket_t fd) noexcept;
  // Returns whether the socket with this local port has something to read, even if it is only the
  // end of the connection. Port 0 stands for any Unix socket that libcurl does not watch, because
  // nothing tells these apart. The answer may be about a different socket, so true only means that
  // a new connection is the better choice. Throws std::bad_alloc.
  [[nodiscard]] bool has_unread(int local_port);
  // Returns whether the server has ended the connection with this local port. Throws
  // std::bad_alloc.
  [[nodiscard]] bool has_ended(int local_port);
  // Returns the socket with this local port, or -1 if `open` did not open it. Throws
  // std::bad_alloc.
  [[nodiscard]] int find(int local_port);
  // Notes that the connection with this local port speaks HTTP/1, as a response has shown. Returns
  // its socket, or -1 if it is unknown because connections to several servers have the same local
  // port. Throws std::bad_alloc.
  int set_http1(int local_port);
  // Returns whether `set_http1` was called for the connection with this local port.
  [[nodiscard]] bool is_http1(int local_port) const;

  int close_error = 0;  // errno before the last `close`, perhaps an old value
  bool lost = false;    // a socket was closed, or could not be opened

 private:
  // The poller watches a socket even while libcurl does not want its events. Most sockets are
  // wanted again for the next exchange, and this saves two system calls each time.
  struct Socket {
    Shard* shard = nullptr;
    int watched = 0;  // CURL_POLL_IN and so on, as registered with the poller
    int wanted = 0;
    bool ours = false;  // opened by `open`, so libcurl calls `close`
    bool http1 = false;
    int port = 0;  // of our end, if known
  };
  [[nodiscard]] bool make_room(int fd) noexcept;
  Socket& at(int fd) { return sockets_[static_cast<std::size_t>(fd)]; }
  void forget(int fd, Socket& socket) noexcept;
  [[nodiscard]] bool any_with(int local_port, bool (*predicate)(int fd));

  static constexpr char kFailure[] = "cannot make a loop";

  Poller poller_{kFailure};
  EventFd wake_{kFailure};
  std::vector<Socket> sockets_;  // by descriptor
  // Descriptors by local port. Several connections to different servers may have the same one.
  std::unordered_multimap<int, int> ports_;
  // More events than occur at once in practice; the next wait reports the rest.
  std::array<Poller::Event, 256> events_{};
};

}  // namespace httpretry
