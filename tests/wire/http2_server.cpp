#include "http2_server.hpp"

#include "wire.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <thread>

namespace httpretry {
namespace {

constexpr const char* kNghttpd = "/usr/sbin/nghttpd";

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto address = loopback(0);
  socklen_t size = sizeof address;
  REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  ::close(fd);
  return ntohs(address.sin_port);
}

bool accepts(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto address = loopback(port);
  const bool connected =
      ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return connected;
}

void write_pem(const std::string& path, const auto& write) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  REQUIRE(file != nullptr);
  REQUIRE(write(file) == 1);
  std::fclose(file);
}

// ALPN: h2, whatever else is offered.
int choose_h2(SSL* /*tls*/, const unsigned char** out, unsigned char* size,
              const unsigned char* /*in*/, unsigned int /*in_size*/, void* /*user*/) {
  static const unsigned char name[] = {'h', '2'};
  *out = name;
  *size = 2;
  return SSL_TLSEXT_ERR_OK;
}

// RFC 9113 §4.1.
std::string frame(unsigned char type, unsigned char flags, const std::string& stream,
                  const std::string& payload) {
  std::string text{'\0', '\0', static_cast<char>(payload.size()), static_cast<char>(type),
                   static_cast<char>(flags)};
  return text + stream + payload;
}

bool read_exactly(SSL* tls, std::string& into, std::size_t size) {
  into.resize(size);
  std::size_t filled = 0;
  while (filled < size) {
    const int count = SSL_read(tls, into.data() + filled, static_cast<int>(size - filled));
    if (count <= 0) return false;
    filled += static_cast<std::size_t>(count);
  }
  return true;
}

}  // namespace

Nghttpd::Nghttpd() {
  REQUIRE_MESSAGE(::access(kNghttpd, X_OK) == 0,
                  "nghttpd (package nghttp2-server) is not installed");
  std::string pattern = (std::filesystem::temp_directory_path() / "httpretry-XXXXXX").string();
  REQUIRE(::mkdtemp(pattern.data()) != nullptr);
  directory_ = pattern;
  std::ofstream(directory_ + "/hello") << "hello, two";
  write_pem(directory_ + "/key.pem", [&](std::FILE* file) {
    return PEM_write_PrivateKey(file, SSL_CTX_get0_privatekey(&certificates_.context()), nullptr,
                                nullptr, 0, nullptr, nullptr);
  });
  write_pem(directory_ + "/cert.pem", [&](std::FILE* file) {
    return PEM_write_X509(file, SSL_CTX_get0_certificate(&certificates_.context()));
  });
  // Another process may take the port between our look and nghttpd's.
  bool started = false;
  for (int tries = 0; tries < 5 && !started; ++tries) started = start_on(free_port());
  REQUIRE_MESSAGE(started, "nghttpd does not start");
}

bool Nghttpd::start_on(int port) {
  port_ = port;
  const auto number = std::to_string(port);
  const auto key = directory_ + "/key.pem";
  const auto cert = directory_ + "/cert.pem";
  const auto log = directory_ + "/log";
  std::array<const char*, 9> args{
      kNghttpd,       "-v",        "--address=127.0.0.1", "-d",   directory_.c_str(),
      number.c_str(), key.c_str(), cert.c_str(),          nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  const int failed = ::posix_spawn(&pid_, kNghttpd, &actions, nullptr,
                                   const_cast<char* const*>(args.data()), environ);
  posix_spawn_file_actions_destroy(&actions);
  REQUIRE(failed == 0);
  for (;;) {
    if (accepts(port)) return true;
    if (::waitpid(pid_, nullptr, WNOHANG) == pid_) {
      pid_ = -1;
      return false;
    }
    std::this_thread::yield();
  }
}

Nghttpd::~Nghttpd() {
  if (pid_ > 0) {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }
  std::error_code ignored;  // a folder that stays behind in /tmp is no failure of the test
  std::filesystem::remove_all(directory_, ignored);
}

std::string Nghttpd::url() const { return "https://127.0.0.1:" + std::to_string(port_) + "/hello"; }

std::size_t Nghttpd::connections() const {
  std::ifstream log(directory_ + "/log");
  std::size_t count = 0;
  for (std::string line; std::getline(log, line);) {
    if (line.find("The negotiated protocol: h2") != std::string::npos) ++count;
  }
  return count;
}

RefusingServer::RefusingServer(int refusals)
    : refusals_(refusals), server_([this](int listener) { serve(listener); }) {}

void RefusingServer::serve(int listener) {
  SSL_CTX_set_alpn_select_cb(&certificates_.context(), &choose_h2, nullptr);
  std::vector<std::thread> talks;
  for (;;) {
    const int connection = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) break;
    talks.emplace_back([this, connection] {
      SSL* tls = SSL_new(&certificates_.context());
      SSL_set_fd(tls, connection);
      if (SSL_accept(tls) == 1) talk(tls);
      SSL_free(tls);
      ::close(connection);
    });
  }
  for (auto& thread : talks) thread.join();
}

void RefusingServer::talk(SSL* tls) {
  constexpr unsigned char kHeaders = 1;
  constexpr unsigned char kReset = 3;
  constexpr unsigned char kSettings = 4;
  const std::string connection(4, '\0');
  const auto send = [&](const std::string& text) {
    SSL_write(tls, text.data(), static_cast<int>(text.size()));
  };
  std::string text;
  if (!read_exactly(tls, text, 24)) return;  // the client's preface
  send(frame(kSettings, 0, connection, ""));
  while (read_exactly(tls, text, 9)) {
    const std::string head = text;
    const auto byte = [&](std::size_t i) {
      return static_cast<std::size_t>(static_cast<unsigned char>(head[i]));
    };
    if (!read_exactly(tls, text, byte(0) << 16U | byte(1) << 8U | byte(2))) return;
    const auto stream = head.substr(5);
    if (byte(3) == kSettings && byte(4) == 0) send(frame(kSettings, 1, connection, ""));
    if (byte(3) != kHeaders) continue;
    if (++streams_ <= refusals_) {
      send(frame(kReset, 0, stream, std::string("\0\0\0\x07", 4)));  // REFUSED_STREAM
    } else {
      send(frame(kHeaders, 0x5, stream, "\x88"));  // :status 200, and the end of the stream
    }
  }
}

}  // namespace httpretry
