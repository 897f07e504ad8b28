// The server of the measurements: one thread, one epoll set, one answer. A process of its own, so
// that what it spends is counted by nobody. Writes its port to its standard output and ends with
// its parent.
//
//   /          200 with 106 bytes of JSON
//   /busy      503, always
//   /flaky     503 and 200 in turns, on each connection
//   /hold/N    200, to N requests at once when the last of them has come
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr std::string_view kBody =
    R"({"id":"7f3c9a52-1d0e-4b8a-9c61-0f2f6d5f1e77","name":"a small object","count":42,"tags":["a","b","c","d"]})";
static_assert(kBody.size() >= 100 && kBody.size() <= 110);

std::string answer(std::string_view status_line) {
  return "HTTP/1.1 " + std::string(status_line) +
         "\r\nServer: bench\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
         "Content-Type: application/json\r\nContent-Length: " +
         std::to_string(kBody.size()) + "\r\nConnection: keep-alive\r\n\r\n" + std::string(kBody);
}

struct Connection {
  std::string received;
  bool failed_last = false;
};

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::exit(1);
}

int listen_on_loopback() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(fd, generic, size) != 0) give_up("bind");
  if (::listen(fd, 8192) != 0) give_up("listen");
  if (::getsockname(fd, generic, &size) != 0) give_up("getsockname");
  std::printf("%d\n", ntohs(address.sin_port));
  std::fflush(stdout);
  return fd;
}

class Server {
 public:
  void run() {
    watch(listener_);
    std::array<epoll_event, 512> events{};
    for (;;) {
      const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), -1);
      for (int i = 0; i < count; ++i) {
        const int fd = events[static_cast<std::size_t>(i)].data.fd;
        if (fd == listener_) {
          accept_one();
        } else {
          serve(fd);
        }
      }
    }
  }

 private:
  void watch(int fd) const {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) give_up("epoll_ctl");
  }

  void accept_one() {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) give_up("accept");
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connections_.size() <= static_cast<std::size_t>(fd))
      connections_.resize(static_cast<std::size_t>(fd) + 1);
    connections_[static_cast<std::size_t>(fd)] = Connection{};
    watch(fd);
  }

  void serve(int fd) {
    auto& connection = connections_[static_cast<std::size_t>(fd)];
    std::array<char, 16384> bytes;  // NOLINT: recv fills it
    const auto size = ::recv(fd, bytes.data(), bytes.size(), 0);
    if (size <= 0) {
      ::close(fd);
      return;
    }
    connection.received.append(bytes.data(), static_cast<std::size_t>(size));
    if (!connection.received.ends_with("\r\n\r\n")) return;
    if (const auto count = held_count(connection.received); count > 0) {
      connection.received.clear();
      held_.push_back(fd);
      if (held_.size() < count) return;
      for (const int one : held_) say(one, fine_);
      return held_.clear();
    }
    const auto& text = reply_to(connection);
    connection.received.clear();
    say(fd, text);
  }

  static void say(int fd, const std::string& text) {
    if (::send(fd, text.data(), text.size(), MSG_NOSIGNAL) < 0) ::close(fd);
  }

  // The N of /hold/N; 0 for another path.
  static std::size_t held_count(const std::string& request) {
    const auto at = request.find(" /hold/");
    return at == std::string::npos ? 0 : std::strtoul(request.c_str() + at + 7, nullptr, 10);
  }

  const std::string& reply_to(Connection& connection) const {
    const std::string_view request(connection.received);
    const auto path = request.substr(request.find(' ') + 1);
    if (path.starts_with("/busy")) return busy_;
    if (!path.starts_with("/flaky")) return fine_;
    connection.failed_last = !connection.failed_last;
    return connection.failed_last ? busy_ : fine_;
  }

  int listener_ = listen_on_loopback();
  int epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  std::vector<Connection> connections_;
  std::vector<int> held_;
  std::string fine_ = answer("200 OK");
  std::string busy_ = answer("503 Service Unavailable");
};

}  // namespace

int main() {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  Server().run();
}
