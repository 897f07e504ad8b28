#include <httpretry/testing/testing.hpp>
#include <tests/testing/raw_client.hpp>

#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

using namespace httpretry;
using namespace raw;
using namespace std::chrono_literals;

namespace {

FaultServerOptions with_tls(Tls kind) {
  FaultServerOptions options;
  options.tls = kind;
  return options;
}

// A verifying TLS client over a RawClient.
class TlsClient {
 public:
  explicit TlsClient(const FaultServer& server, const char* host = "localhost")
      : raw_(server.port()), context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free) {
    SSL_CTX_load_verify_locations(context_.get(), server.ca_file().c_str(), nullptr);
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    tls_.reset(SSL_new(context_.get()));
    SSL_set1_host(tls_.get(), host);
    SSL_set_fd(tls_.get(), raw_.fd());
    connected_ = SSL_connect(tls_.get()) == 1;
  }

  [[nodiscard]] bool connected() const { return connected_; }
  [[nodiscard]] long verdict() const { return SSL_get_verify_result(tls_.get()); }
  RawClient& raw() { return raw_; }

  void send(const std::string& bytes) {
    SSL_write(tls_.get(), bytes.data(), static_cast<int>(bytes.size()));
  }
  // Up to `size` bytes, or to the end.
  std::string read(std::size_t size) {
    std::string all(size, '\0');
    std::size_t got = 0;
    std::size_t count = 0;
    while (got < size && SSL_read_ex(tls_.get(), &all[got], size - got, &count) == 1) got += count;
    if (got < size) ended_well_ = SSL_get_error(tls_.get(), 0) == SSL_ERROR_ZERO_RETURN;
    all.resize(got);
    return all;
  }
  // Whether the connection ended with a close_notify.
  [[nodiscard]] bool ended_well() const { return ended_well_; }

 private:
  RawClient raw_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> tls_{nullptr, SSL_free};
  bool connected_ = false;
  bool ended_well_ = false;
};

const std::string kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

}  // namespace

TEST_CASE("the good certificate is valid for the name and for the address") {
  FaultServer server({{200, "ok"}}, with_tls(Tls::Good));
  CHECK(server.url("/") == "https://127.0.0.1:" + std::to_string(server.port()) + "/");
  for (const auto* host : {"localhost", "127.0.0.1"}) {
    TlsClient client(server, host);
    REQUIRE(client.connected());
    client.send(get("/a"));
    CHECK(client.read(kOk.size()) == kOk);
    client.send(get("/b"));
    CHECK(client.read(kOk.size()) == kOk);
  }
  CHECK(server.connections() == 2);
  CHECK(server.requests() == 4);
}

TEST_CASE("each bad certificate is rejected for its own reason, and no request arrives") {
  const std::pair<Tls, long> cases[] = {
      {Tls::Expired, X509_V_ERR_CERT_HAS_EXPIRED},
      {Tls::WrongHost, X509_V_ERR_HOSTNAME_MISMATCH},
      {Tls::SelfSigned, X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT},
  };
  for (const auto& [kind, verdict] : cases) {
    const auto which = static_cast<int>(kind);
    CAPTURE(which);
    FaultServer server({200}, with_tls(kind));
    TlsClient client(server);
    CHECK_FALSE(client.connected());
    CHECK(client.verdict() == verdict);
    CHECK(server.requests() == 0);
  }
}

TEST_CASE("the authority's file exists as long as the server, also over a restart") {
  std::filesystem::path file;
  {
    FaultServer server({{200, "ok"}}, with_tls(Tls::Good));
    file = server.ca_file();
    CHECK(std::filesystem::exists(file));
    const auto mode = std::filesystem::status(file.parent_path()).permissions();
    CHECK(mode == std::filesystem::perms::owner_all);
    server.restart();
    CHECK(server.ca_file() == file);
    CHECK(TlsClient(server).connected());
  }
  CHECK_FALSE(std::filesystem::exists(file.parent_path()));
}

TEST_CASE("tls resets the connection in the handshake, and the next connection works") {
  FaultServer server({Fault::TlsReset, {200, "ok"}}, with_tls(Tls::Good));

  TlsClient first(server);
  CHECK_FALSE(first.connected());
  TlsClient second(server);
  REQUIRE(second.connected());
  second.send(get());
  CHECK(second.read(kOk.size()) == kOk);
  CHECK(server.requests() == 1);
}

TEST_CASE("a reset handshake ends with an RST, not with a FIN") {
  FaultServer server({Fault::TlsReset}, with_tls(Tls::Good));
  RawClient client(server.port());
  client.send("\x16\x03\x01");
  CHECK(client.read_to_end().empty());
  CHECK(client.end() == End::Rst);
}

TEST_CASE("tls_stall accepts and sends nothing until the server stops") {
  FaultServer server({Fault::TlsStall}, with_tls(Tls::Good));
  RawClient client(server.port());
  client.send("\x16\x03\x01");
  ::shutdown(client.fd(), SHUT_WR);
  CHECK(client.read_to_end().empty());

  RawClient stuck(server.port());
  stuck.send("\x16\x03\x01");
  server.stop();  // blocks forever if it waits for the client
}

TEST_CASE("the connection of a client without TLS is closed") {
  FaultServer server({200}, with_tls(Tls::Good));
  RawClient client(server.port());
  client.send(get());
  CHECK(client.read_to_end().find("HTTP/") == std::string::npos);
  CHECK(client.end() != End::Open);
  CHECK(server.requests() == 0);
}

TEST_CASE("over TLS a FIN follows a close_notify, and an RST does not") {
  const std::pair<Fault, bool> cases[] = {{Fault::Close, true},       {Fault::Truncate, true},
                                          {Fault::BadChunk, true},    {Fault::Garbage, true},
                                          {Fault::Reset, false},      {Fault::ResetEarly, false},
                                          {Fault::ResetDuring, false}};
  for (const auto& [fault, well] : cases) {
    const auto which = to_string(fault);
    CAPTURE(which);
    // The first response makes ResetEarly happen after the handshake, not instead of it.
    FaultServer server({{200, "ok"}, fault}, with_tls(Tls::Good));
    TlsClient client(server);
    REQUIRE(client.connected());
    client.send(get());
    CHECK(client.read(kOk.size()) == kOk);
    client.send(get());
    client.read(1 << 20);
    CHECK(client.ended_well() == well);
  }
}

TEST_CASE("large responses and requests arrive complete over TLS") {
  Step step(Fault::Huge);
  step.size = 3'000'000;
  step.headers.add("Connection", "close");
  FaultServer server({step}, with_tls(Tls::Good));
  TlsClient client(server);
  REQUIRE(client.connected());
  client.send("POST / HTTP/1.1\r\nContent-Length: 2000000\r\n\r\n" + std::string(2'000'000, 'x'));

  const auto all = client.read(4'000'000);
  CHECK(all.size() > step.size);
  CHECK(all.ends_with("\r\n0\r\n\r\n"));
  CHECK(client.ended_well());
  CHECK(server.seen()[0].body_size == 2'000'000);
}

TEST_CASE("stop ends a TLS connection that hangs, and one in the middle of its handshake") {
  FaultServer server({{200, "ok"}, Fault::Hang}, with_tls(Tls::Good));
  TlsClient idle(server);
  TlsClient hanging(server);
  idle.send(get());
  CHECK(idle.read(kOk.size()) == kOk);
  hanging.send(get());
  REQUIRE(server.wait_for_requests(2, 10s));
  RawClient half(server.port());
  half.send("\x16\x03\x01");

  server.stop();  // blocks forever if it waits for one of them
  for (auto* client : {&idle, &hanging}) CHECK(client->read(1).empty());
  half.read_to_end();
  CHECK(half.end() != End::Open);
}
