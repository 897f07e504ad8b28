#include <lib/testing/tunnel.hpp>

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <utility>

namespace httpretry::faults {
namespace {

// A numeric address of the loopback interface; empty for any other host. Names are not looked up:
// a proxy for tests must not ask the world.
std::string loopback_address(std::string_view host) {
  if (host == "localhost") return "127.0.0.1";
  if (host == "[::1]") return "::1";
  return host.starts_with("127.") ? std::string(host) : std::string();
}

// One direction. Bytes are read only when those before are gone: that is all the flow control.
class Direction {
 public:
  Direction(Channel& from, Channel& to, std::string first)
      : from_(from), to_(to), pending_(std::move(first)) {}

  // Moves what can be moved at once. False: the connection is lost.
  [[nodiscard]] bool pump();
  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] bool wants_read() const { return !ended_ && pending_.empty(); }
  [[nodiscard]] bool wants_write() const { return !pending_.empty(); }

 private:
  Channel& from_;
  Channel& to_;
  std::string pending_;
  bool ended_ = false;
};

bool Direction::pump() {
  std::array<char, 16 * 1024> bytes{};
  while (!ended_) {
    while (!pending_.empty()) {
      const auto written = to_.try_write(pending_);
      if (written.io == Io::Again) return true;
      if (written.io != Io::Moved) return false;
      pending_.erase(0, written.bytes);
    }
    const auto read = from_.try_read(bytes);
    if (read.io == Io::Again) return true;
    if (read.io == Io::Lost) return false;
    pending_.assign(bytes.data(), read.bytes);
    ended_ = read.io == Io::End;
  }
  return true;
}

short events(const Direction& outward, const Direction& inward) {
  const int events = (outward.wants_read() ? POLLIN : 0) | (inward.wants_write() ? POLLOUT : 0);
  return static_cast<short>(events);
}

// Negative: poll does not look at it. A side that awaits nothing would still report its hang-up.
int polled(const Channel& channel, short awaited) { return awaited == 0 ? -1 : channel.fd(); }

}  // namespace

std::unique_ptr<Channel> connect_loopback(std::string_view authority, int stop_fd, int& status) {
  const auto colon = authority.rfind(':');
  const auto host = loopback_address(authority.substr(0, colon));
  status = 403;
  if (host.empty() || colon == std::string_view::npos) return nullptr;

  const std::string port(authority.substr(colon + 1));
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return nullptr;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> address(found, &::freeaddrinfo);

  // Blocking, because on the loopback interface it is decided at once.
  Descriptor socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  status = 502;
  if (!socket.open() || ::connect(socket.get(), address->ai_addr, address->ai_addrlen) != 0) {
    return nullptr;
  }
  return std::make_unique<Channel>(std::move(socket), stop_fd);
}

void relay(Channel& client, Channel& origin, std::string first) {
  Direction there(client, origin, std::move(first));
  Direction back(origin, client, {});
  bool there_closed = false;
  bool back_closed = false;
  for (;;) {
    if (!there.pump() || !back.pump()) {
      client.reset();
      origin.reset();
      return;
    }
    if (there.ended() && !std::exchange(there_closed, true)) origin.end_writing();
    if (back.ended() && !std::exchange(back_closed, true)) client.end_writing();
    if (there_closed && back_closed) return;

    const auto at_client = events(there, back);
    const auto at_origin = events(back, there);
    std::array<pollfd, 3> waited{{{polled(client, at_client), at_client, 0},
                                  {polled(origin, at_origin), at_origin, 0},
                                  {client.stop_fd(), POLLIN, 0}}};
    if (::poll(waited.data(), waited.size(), -1) < 0 && errno != EINTR) return;
    if (waited[2].revents != 0) return;
  }
}

}  // namespace httpretry::faults
