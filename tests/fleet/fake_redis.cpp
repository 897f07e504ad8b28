#include "fake_redis.hpp"

#include "lib/core/base/text.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>

using namespace httpretry;

namespace {

// Takes one command off the front of `text`: "*2\r\n$3\r\nGET\r\n$1\r\na\r\n". None: not complete.
std::optional<FakeRedis::Words> take_command(std::string& text) {
  std::string_view rest = text;
  const auto take_number = [&rest]() -> std::size_t {
    if (rest.find('\n') == std::string_view::npos) {
      rest = {};
      return 0;
    }
    auto line = take_until(rest, '\n');
    line.remove_prefix(1);
    line.remove_suffix(1);
    return to_number<std::size_t>(line).value_or(0);
  };
  FakeRedis::Words words(take_number());
  for (auto& word : words) {
    const auto size = take_number();
    if (rest.size() < size + 2) return std::nullopt;
    word = rest.substr(0, size);
    rest.remove_prefix(size + 2);
  }
  if (words.empty()) return std::nullopt;
  text = std::string(rest);
  return words;
}

}  // namespace

FakeRedis::FakeRedis(Respond respond)
    : respond_(std::move(respond)), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener_.get(), generic, length) != 0 || ::listen(listener_.get(), 16) != 0 ||
      ::getsockname(listener_.get(), generic, &length) != 0) {
    throw std::runtime_error("no fake server");
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { run(); });
}

FakeRedis::~FakeRedis() {
  stop_ = true;
  wake_.signal();
  thread_.join();
}

fleet::Address FakeRedis::address(const std::string& query) const {
  return fleet::parse_address("redis://127.0.0.1:" + std::to_string(port_) + "/0" + query).value();
}

int FakeRedis::connections() const {
  const std::lock_guard lock(mutex_);
  return connections_;
}

int FakeRedis::commands(const std::string& prefix) const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(std::count_if(commands_.begin(), commands_.end(), [&](const auto& words) {
    return key_of(words).starts_with(prefix);
  }));
}

bool FakeRedis::has_unread(int connection) const {
  char byte = 0;
  const auto& client = *std::next(clients_.begin(), connection);
  return ::recv(client.socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

std::string FakeRedis::bulk(const std::string& text) {
  return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}

std::string FakeRedis::list(const std::vector<std::int64_t>& integers) {
  auto text = "*" + std::to_string(integers.size()) + "\r\n";
  for (const auto integer : integers) text += ":" + std::to_string(integer) + "\r\n";
  return text;
}

std::string FakeRedis::usual(const Words& words) {
  if (words[0] == "PING") return "+PONG\r\n";
  if (words[0] == "SCRIPT") return bulk("0123456789012345678901234567890123456789");
  if (words[0] == "INFO") return bulk("redis_version:7.0.0\r\naof_enabled:1\r\n");
  return "$-1\r\n";
}

std::string FakeRedis::key_of(const Words& words) {
  return words[0].starts_with("EVAL") && words.size() > 3 ? words[3] : std::string();
}

void FakeRedis::run() {
  while (!stop_) {
    std::vector<pollfd> polled = {{wake_.fd(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const auto& client : clients_) polled.push_back({client.socket.get(), POLLIN, 0});
    ::poll(polled.data(), polled.size(), -1);
    std::size_t index = 2;
    std::erase_if(clients_,
                  [&](Client& client) { return polled[index++].revents != 0 && !serve(client); });
    if (polled[1].revents == 0) continue;
    clients_.push_back({Descriptor(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC))});
    const std::lock_guard lock(mutex_);
    ++connections_;
  }
}

bool FakeRedis::serve(Client& client) {
  std::array<char, 65536> buffer{};
  const auto count = ::recv(client.socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (count <= 0) return false;
  client.received.append(buffer.data(), static_cast<std::size_t>(count));
  while (auto words = take_command(client.received)) {
    if (resets_) {
      const linger at_once{1, 0};
      ::setsockopt(client.socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
      return false;
    }
    {
      const std::lock_guard lock(mutex_);
      commands_.push_back(*words);
    }
    const auto bytes = respond_(*words);
    if (::send(client.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) return false;
  }
  return true;
}
