#include "dns_server.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <resolv.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace httpretry {
namespace {

constexpr std::size_t kHeader = 12;

std::string name_in(const std::string& message) {
  std::string name;
  for (std::size_t at = kHeader; at < message.size() && message[at] != 0;) {
    const auto size = static_cast<std::size_t>(message[at]);
    if (!name.empty()) name += '.';
    name += message.substr(at + 1, size);
    at += size + 1;
  }
  return name;
}

// The question as it was asked, and behind it what is said.
std::string answer_to(const std::string& question, const DnsServer::Reply& reply) {
  using Says = DnsServer::Says;
  if (reply.says == Says::Garbage) return question.substr(0, 2) + std::string(40, '\x7F');
  const auto end = question.find('\0', kHeader) + 5;  // the name, its type and class
  auto text = question.substr(0, end);
  const bool four = text[end - 3] == 1;  // type A
  const bool has_address = four && (reply.says == Says::Address || reply.says == Says::OtherName);
  text[2] = '\x81';
  text[3] = reply.says == Says::NoSuchName ? '\x83' : reply.says == Says::Failure ? '\x82' : '\x80';
  text[7] = has_address ? 1 : 0;
  text[9] = text[11] = 0;
  if (reply.says == Says::OtherName) text[kHeader + 1] ^= 1;  // a response to what nobody asked
  if (!has_address) return text;
  text += std::string("\xC0\x0C\x00\x01\x00\x01\x00\x00\x00\x3C\x00\x04", 12);
  in_addr address{};
  ::inet_pton(AF_INET, reply.address.c_str(), &address);
  return text.append(reinterpret_cast<const char*>(&address), 4);
}

}  // namespace

DnsServer::DnsServer(std::function<Reply(const std::string&)> reply)
    : reply_(std::move(reply)), socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(::bind(socket_, reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
}

// An empty message, which is no question, ends it.
DnsServer::~DnsServer() {
  sockaddr_in self{};
  self.sin_family = AF_INET;
  self.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  self.sin_port = htons(static_cast<std::uint16_t>(port_));
  ::sendto(socket_, "", 0, 0, reinterpret_cast<sockaddr*>(&self), sizeof self);
  thread_.join();
  ::close(socket_);
}

void DnsServer::serve() {
  for (;;) {
    std::array<char, 1500> bytes{};
    sockaddr_in from{};
    socklen_t size = sizeof from;
    const auto count = ::recvfrom(socket_, bytes.data(), bytes.size(), 0,
                                  reinterpret_cast<sockaddr*>(&from), &size);
    if (count <= static_cast<ssize_t>(kHeader)) return;
    ++questions_;
    const std::string question(bytes.data(), static_cast<std::size_t>(count));
    const auto reply = reply_(name_in(question));
    if (reply.says == Says::Nothing) continue;
    const auto text = answer_to(question, reply);
    ::sendto(socket_, text.data(), text.size(), 0, reinterpret_cast<sockaddr*>(&from), size);
  }
}

// glibc keeps the state of its resolver for each thread, and uses it as a program has changed it.
Lookup DnsServer::lookup() const {
  return [port = port_](const std::string& host) {
    static thread_local const bool ready = ::res_init() == 0;
    if (!ready) return Result<Addresses>(Error(Errc::Internal, "res_init failed"));
    _res.nscount = 1;
    _res.nsaddr_list[0].sin_family = AF_INET;
    _res.nsaddr_list[0].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    _res.nsaddr_list[0].sin_port = htons(static_cast<std::uint16_t>(port));
    _res.retrans = 1;
    _res.retry = 1;
    return system_lookup(host);
  };
}

}  // namespace httpretry
