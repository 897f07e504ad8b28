#include "http2_server.hpp"

#include "wire.hpp"

#include <openssl/pem.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <deque>
#include <fstream>
#include <thread>

namespace httpretry {
namespace {

constexpr const char* kNghttpd = "/usr/sbin/nghttpd";

void write_pem(const std::string& path, const auto& write) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  REQUIRE(file != nullptr);
  REQUIRE(write(file) == 1);
  std::fclose(file);
}

// ALPN: the protocol that is the app data of `tls`, whatever else is offered.
int choose_protocol(SSL* tls, const unsigned char** out, unsigned char* size,
                    const unsigned char* /*in*/, unsigned int /*in_size*/, void* /*user*/) {
  const auto* name = static_cast<const char*>(SSL_get_app_data(tls));
  *out = reinterpret_cast<const unsigned char*>(name);
  *size = static_cast<unsigned char>(std::strlen(name));
  return SSL_TLSEXT_ERR_OK;
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

const std::string kConnection(4, '\0');  // its stream

void reset_at_close(int connection) {
  const linger at_once{1, 0};
  ::setsockopt(connection, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

// Not at once: with bytes that are not read, the client would lose what it has not read yet.
void hang_up(int connection) {
  std::array<char, 1024> rest{};
  ::shutdown(connection, SHUT_WR);
  while (::recv(connection, rest.data(), rest.size(), 0) > 0) continue;
}

}  // namespace

std::string frame(Frame type, int flags, const std::string& stream, const std::string& payload) {
  std::string text{'\0', '\0', static_cast<char>(payload.size()), static_cast<char>(type),
                   static_cast<char>(flags)};
  return text + stream + payload;
}

std::string headers(const std::string& stream, const std::string& fields, int flags) {
  return frame(Frame::Headers, kEndHeaders | flags, stream, fields);
}

std::string data(const std::string& stream, const std::string& bytes, int flags) {
  return frame(Frame::Data, flags, stream, bytes);
}

std::string goaway(const std::string& last_stream) {
  return frame(Frame::Goaway, 0, kConnection, last_stream + std::string(4, '\0'));
}

std::string reset(const std::string& stream, int why) {
  return frame(Frame::Reset, 0, stream, {0, 0, 0, static_cast<char>(why)});
}

std::vector<std::string> together(const std::vector<std::string>& pieces, bool at_once) {
  if (!at_once) return pieces;
  std::string all;
  for (const auto& piece : pieces) all += piece;
  return {all};
}

Nghttpd::Nghttpd(bool tls) : scheme_(tls ? "https" : "http") {
  write_file(directory_.file("hello"), "hello, two");
  write_file(directory_.file("large"), std::string(kLarge, 'x'));
  write_pem(directory_.file("key.pem"), [&](std::FILE* file) {
    return PEM_write_PrivateKey(file, SSL_CTX_get0_privatekey(&certificates_.context()), nullptr,
                                nullptr, 0, nullptr, nullptr);
  });
  write_pem(directory_.file("cert.pem"), [&](std::FILE* file) {
    return PEM_write_X509(file, SSL_CTX_get0_certificate(&certificates_.context()));
  });
  const auto command = [&](int port) {
    std::vector<std::string> words{kNghttpd, "-v", "--address=127.0.0.1", "-d",
                                   directory_.file("")};
    if (!tls) words.emplace_back("--no-tls");
    words.push_back(std::to_string(port));
    if (tls) words.push_back(directory_.file("key.pem"));
    if (tls) words.push_back(directory_.file("cert.pem"));
    return words;
  };
  process_.emplace("nghttp2-server", command, directory_.file("log"));
}

std::string Nghttpd::url(const std::string& path) const {
  return scheme_ + "://127.0.0.1:" + std::to_string(process_->port()) + path;
}

std::size_t Nghttpd::connections() const {
  std::ifstream log(directory_.file("log"));
  std::size_t count = 0;
  for (std::string line; std::getline(log, line);) {
    if (line.find("The negotiated protocol: h2") != std::string::npos) ++count;
  }
  return count;
}

FrameServer::FrameServer(Answer answer, int http1_connections)
    : answer_(std::move(answer)),
      http1_connections_(http1_connections),
      server_([this](int listener) { serve(listener); }) {}

void FrameServer::serve(int listener) {
  SSL_CTX_set_alpn_select_cb(&certificates_.context(), &choose_protocol, nullptr);
  std::vector<std::thread> talks;
  for (;;) {
    const int connection = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) break;
    const bool http1 = ++connections_ <= http1_connections_;
    talks.emplace_back([this, connection, http1] {
      SSL* tls = SSL_new(&certificates_.context());
      SSL_set_fd(tls, connection);
      SSL_set_app_data(tls, const_cast<char*>(http1 ? "http/1.1" : "h2"));  // only read
      if (SSL_accept(tls) == 1) http1 ? talk_http1(tls) : talk(tls);
      SSL_free(tls);
      ::close(connection);
    });
  }
  for (auto& thread : talks) thread.join();
}

void FrameServer::talk_http1(SSL* tls) {
  std::string text;
  std::string request;
  while (read_exactly(tls, text, 1)) {
    request += text;
    if (!request.ends_with("\r\n\r\n")) continue;
    constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    SSL_write(tls, kAnswer.data(), static_cast<int>(kAnswer.size()));
    request.clear();
  }
}

void FrameServer::talk(SSL* tls) {
  const auto send = [&](const std::string& text) {
    if (!text.empty()) SSL_write(tls, text.data(), static_cast<int>(text.size()));
  };
  std::deque<std::string> later;
  std::string text;
  if (!read_exactly(tls, text, 24)) return;  // the client's preface
  send(frame(Frame::Settings, 0, kConnection, ""));
  while (read_exactly(tls, text, 9)) {
    const std::string head = text;
    const auto byte = [&](std::size_t i) {
      return static_cast<std::size_t>(static_cast<unsigned char>(head[i]));
    };
    if (!read_exactly(tls, text, byte(0) << 16U | byte(1) << 8U | byte(2))) return;
    const auto type = static_cast<Frame>(byte(3));
    const bool acknowledges = byte(4) == 1;
    if (type == Frame::Goaway) return;
    if (type == Frame::Settings && !acknowledges) send(frame(type, 1, kConnection, ""));
    if (type == Frame::Headers) {
      const auto answer = answer_(head.substr(5), ++streams_);
      if (!answer) return reset_at_close(SSL_get_fd(tls));
      later.insert(later.end(), answer->begin(), answer->end());
    }
    const bool next = type == Frame::Headers || (type == Frame::Ping && acknowledges);
    if (!next || later.empty()) continue;
    const bool hangs_up = later.front().ends_with(kHangUp);
    send(later.front().substr(0, later.front().size() - (hangs_up ? kHangUp.size() : 0)));
    if (hangs_up) return hang_up(SSL_get_fd(tls));
    later.pop_front();
    if (!later.empty()) send(frame(Frame::Ping, 0, kConnection, "are read"));
  }
}

RefusingServer::RefusingServer(int refusals, int hangs_up_at)
    : FrameServer([=](const std::string& stream, int number) -> std::optional<Pieces> {
        if (hangs_up_at != 0 && number % hangs_up_at == 0) return std::nullopt;
        if (hangs_up_at != 0) return Pieces{};
        return Pieces{number <= refusals ? reset(stream, kRefusedStream)
                                         : headers(stream, k200, kEndStream)};
      }) {}

}  // namespace httpretry
