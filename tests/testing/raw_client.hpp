// RawClient: a blocking TCP connection to the loopback interface that sends given bytes and records
// how the connection ended. It does not use the library.
#pragma once

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace raw {

// How a connection ended; Open: it did not end within ten seconds.
enum class End { Fin, Rst, Open };

class RawClient {
 public:
  explicit RawClient(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval limit{10, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~RawClient() { close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  [[nodiscard]] bool connected() const { return connected_; }
  [[nodiscard]] int fd() const { return fd_; }

  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      // An RST is reported only once, to the next call.
      if (sent <= 0) {
        reset_ = errno == ECONNRESET;
        return;
      }
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  // Reads until `enough(received)` or the end of the connection. Returns what was received.
  template <typename Enough>
  std::string read_until(Enough enough) {
    std::string all = std::exchange(rest_, {});
    char bytes[64 * 1024];
    while (!enough(all)) {
      const auto count = ::recv(fd_, bytes, sizeof(bytes), 0);
      if (count <= 0) {
        const bool rst = reset_ || (count < 0 && errno == ECONNRESET);
        end_ = rst ? End::Rst : count == 0 ? End::Fin : End::Open;
        break;
      }
      all.append(bytes, static_cast<std::size_t>(count));
    }
    return all;
  }
  std::string read_to_end() {
    return read_until([](const std::string&) { return false; });
  }
  // Reads one response.
  std::string read_response(bool has_body = true) {
    auto all = read_until([&](const std::string& text) {
      return text.find("\r\n\r\n") != std::string::npos && text.size() >= size(text, has_body);
    });
    if (all.size() > size(all, has_body)) {
      rest_ = all.substr(size(all, has_body));
      all.resize(size(all, has_body));
    }
    return all;
  }
  // How the connection ended, after a read has reached the end.
  [[nodiscard]] End end() const { return end_; }

  std::string ask(std::string_view request) {
    send(request);
    return read_response(!request.starts_with("HEAD"));
  }

  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  static std::size_t size(const std::string& text, bool has_body) {
    const auto head = text.find("\r\n\r\n");
    if (head == std::string::npos) return text.size();
    const auto length = text.find("Content-Length: ");
    const bool some = has_body && length < head;
    return head + 4 + (some ? std::stoul(text.substr(length + 16)) : 0);
  }

  int fd_;
  bool connected_ = false;
  bool reset_ = false;
  End end_ = End::Open;
  std::string rest_;
};

inline std::string get(std::string_view path = "/") {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n";
}

inline int status_of(const std::string& response) {
  return response.starts_with("HTTP/1.1 ") ? std::stoi(response.substr(9)) : 0;
}

inline bool head_ended(const std::string& text) { return text.ends_with("\r\n\r\n"); }

inline std::string body_of(const std::string& response) {
  const auto end = response.find("\r\n\r\n");
  return end == std::string::npos ? std::string() : response.substr(end + 4);
}

}  // namespace raw
