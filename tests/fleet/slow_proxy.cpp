#include "slow_proxy.hpp"

#include "lib/extras/fleet/link.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>
#include <vector>

using namespace httpretry;
using fleet::now_is;

namespace {

sockaddr_in address_of(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

Descriptor new_socket() { return Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

}  // namespace

SlowProxy::SlowProxy(int target) : target_(target), listener_(new_socket()) {
  auto address = address_of(0);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener_.get(), generic, length) != 0 || ::listen(listener_.get(), 16) != 0 ||
      ::getsockname(listener_.get(), generic, &length) != 0) {
    throw std::runtime_error("no proxy");
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { run(); });
}

SlowProxy::~SlowProxy() {
  stop_ = true;
  wake_.signal();
  thread_.join();
}

void SlowProxy::run() {
  while (!stop_) {
    std::vector<pollfd> polled = {{wake_.fd(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    auto next = now_is() + std::chrono::seconds(1);
    for (const auto& pair : pairs_) {
      polled.push_back({pair.client.get(), POLLIN, 0});
      polled.push_back({pair.server.get(), POLLIN, 0});
      if (!pair.pieces.empty()) next = std::min(next, pair.pieces.front().due);
    }
    const auto left = std::max<Duration>(next - now_is(), {});
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    ::poll(polled.data(), polled.size(), static_cast<int>(ms));
    std::size_t index = 2;
    for (auto& pair : pairs_) {
      if (polled[index++].revents != 0) read_from(pair, pair.client.get(), pair.server.get());
      if (polled[index++].revents != 0) read_from(pair, pair.server.get(), pair.client.get());
      pass_on(pair, now_is());
    }
    std::erase_if(pairs_, [](const Pair& pair) { return pair.over; });
    if (polled[1].revents != 0) accept();
  }
}

void SlowProxy::accept() {
  Pair pair{Descriptor(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)), new_socket()};
  const auto address = address_of(target_);
  const bool connected = ::connect(pair.server.get(), reinterpret_cast<const sockaddr*>(&address),
                                   sizeof address) == 0;
  if (pair.client.is_open() && connected) pairs_.push_back(std::move(pair));
}

void SlowProxy::read_from(Pair& pair, int from, int to) {
  std::array<char, 65536> buffer{};
  const auto count = ::recv(from, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (count < 0) return;
  pair.pieces.push_back(
      {now_is() + delay_.load(), to, std::string(buffer.data(), static_cast<std::size_t>(count))});
  if (count == 0) pair.over = true;
}

void SlowProxy::pass_on(Pair& pair, Time now) {
  while (!pair.pieces.empty() && pair.pieces.front().due <= now) {
    const auto& piece = pair.pieces.front();
    if (::send(piece.to, piece.bytes.data(), piece.bytes.size(), MSG_NOSIGNAL) < 0) {
      pair.over = true;
    }
    pair.pieces.pop_front();
  }
}
