#include <lib/testing/tunnel.hpp>

#include <lib/testing/sockets.hpp>

#include <poll.h>

#include <array>

namespace httpretry::faults {
namespace {

// The numeric address of a loopback host; empty for any other host. Names are not looked up,
// because a test proxy must not reach the network.
std::string loopback_address(std::string_view host) {
  if (host == "localhost") return "127.0.0.1";
  if (host == "[::1]") return "::1";
  return host.starts_with("127.") ? std::string(host) : std::string();
}

// One direction of a tunnel. Reads only when everything read before was written, so that a slow
// receiver slows down the sender.
struct Direction {
  Channel& from;
  Channel& to;
  std::string pending = {};
  bool ended = false;
  bool closed = false;

  // Forwards as much as it can without blocking. False if a connection is broken.
  [[nodiscard]] bool pump() {
    std::array<char, 16 * 1024> bytes{};
    while (!ended) {
      while (!pending.empty()) {
        const auto written = to.try_write(pending);
        if (written.io == Io::WouldBlock) return true;
        if (written.io != Io::Done) return false;
        pending.erase(0, written.bytes);
      }
      const auto read = from.try_read(bytes);
      if (read.io == Io::WouldBlock) return true;
      if (read.io == Io::Broken) return false;
      pending.assign(bytes.data(), read.bytes);
      ended = read.io == Io::End;
    }
    if (!std::exchange(closed, true)) to.end_writing();
    return true;
  }
  [[nodiscard]] bool wants_read() const { return !ended && pending.empty(); }
  [[nodiscard]] bool wants_write() const { return !pending.empty(); }
};

short events(const Direction& outward, const Direction& inward) {
  const int events = (outward.wants_read() ? POLLIN : 0) | (inward.wants_write() ? POLLOUT : 0);
  return static_cast<short>(events);
}

// Negative if there is nothing to wait for, so that poll ignores it: it would report a hang-up even
// without events.
int polled(const Channel& channel, short awaited) { return awaited == 0 ? -1 : channel.fd(); }

}  // namespace

std::unique_ptr<Channel> connect_loopback(std::string_view authority, int stop_fd, int& status) {
  const auto colon = authority.rfind(':');
  const auto host = loopback_address(authority.substr(0, colon));
  status = 403;
  if (host.empty() || colon == std::string_view::npos) return nullptr;
  auto socket = connect_to(host, std::string(authority.substr(colon + 1)));
  if (socket) status = 502;
  if (!socket || !socket->open()) return nullptr;
  return std::make_unique<Channel>(*std::move(socket), stop_fd);
}

void relay(Channel& client, Channel& origin, std::string first) {
  Direction outward{client, origin, std::move(first)};
  Direction inward{origin, client};
  for (;;) {
    if (!outward.pump() || !inward.pump()) {
      client.reset();
      origin.reset();
      return;
    }
    if (outward.ended && inward.ended) return;

    const auto at_client = events(outward, inward);
    const auto at_origin = events(inward, outward);
    std::array<pollfd, 3> waited{{{polled(client, at_client), at_client, 0},
                                  {polled(origin, at_origin), at_origin, 0},
                                  {client.stop_fd(), POLLIN, 0}}};
    if (::poll(waited.data(), waited.size(), -1) < 0 && errno != EINTR) return;
    if (waited[2].revents != 0) return;
  }
}

}  // namespace httpretry::faults
