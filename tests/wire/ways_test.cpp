// The ways to a server: proxies, sockets, addresses, versions of HTTP.
#include "files.hpp"
#include "http2_server.hpp"
#include "nginx.hpp"
#include "raw_server.hpp"
#include "tls_server.hpp"
#include "wire.hpp"

#include "tests/libcurl_version.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <thread>

using namespace httpretry;

namespace {

FaultServerOptions as_proxy(Tls tls = Tls::Off) {
  FaultServerOptions options;
  options.proxy = true;
  options.tls = tls;
  return options;
}

FaultServerOptions with_tls() {
  FaultServerOptions options;
  options.tls = Tls::Good;
  return options;
}

ClientOptions by(const std::string& proxy) {
  ClientOptions options;
  options.middlewares = {};
  options.connection.proxy.url = proxy;
  return options;
}

// Those to a port of 127.0.0.1, of all processes.
int open_connections(int port) {
  std::ostringstream remote;  // as /proc/net/tcp writes it, with the state of an open connection
  remote << "0100007F:" << std::uppercase << std::hex << std::setw(4) << std::setfill('0') << port
         << " 01 ";
  std::ifstream list("/proc/net/tcp");
  int count = 0;
  for (std::string line; std::getline(list, line);) {
    if (line.find(remote.str()) != std::string::npos) ++count;
  }
  return count;
}

// What a SOCKS5 server of RFC 1928 and 1929 heard; behind it is a web server of one answer.
class SocksServer {
 public:
  explicit SocksServer(bool wants_password)
      : wants_password_(wants_password), server_([this](int listener) { serve(listener); }) {}
  [[nodiscard]] std::string url(const std::string& scheme) const {
    return scheme + server_.url().substr(4);
  }
  // The host that it was asked for, as text; "4:" before four bytes of an address.
  std::string host;
  std::string login;

 private:
  void serve(int listener) {
    for (;;) {
      const int fd = ::accept(listener, nullptr, nullptr);
      if (fd < 0) return;
      talk(fd);
      ::close(fd);
    }
  }
  static std::string take(int fd, std::size_t size) {
    std::string text(size, '\0');
    return ::recv(fd, text.data(), size, MSG_WAITALL) == static_cast<ssize_t>(size) ? text : "";
  }
  static std::string take_counted(int fd) {
    const auto size = take(fd, 1);
    return size.empty() ? "" : take(fd, static_cast<unsigned char>(size[0]));
  }
  void talk(int fd) {
    take(fd, 1);
    const auto methods = take_counted(fd);
    const char method = wants_password_ ? '\2' : '\0';
    if (methods.find(method) == std::string::npos) return write_all(fd, "\5\xff");
    write_all(fd, std::string("\5") + method);
    if (wants_password_) {
      take(fd, 1);
      login = take_counted(fd);
      login += ":" + take_counted(fd);
      const bool good = login == "ann:secret";
      write_all(fd, std::string("\1") + (good ? '\0' : '\1'));
      if (!good) return;
    }
    const auto head = take(fd, 4);
    host = head[3] == 3 ? take_counted(fd) : "4:" + take(fd, 4);
    take(fd, 2);
    write_all(fd, std::string("\5\0\0\1\0\0\0\0\0\0", 10));
    read_until(fd, "\r\n\r\n");
    write_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nsocks");
  }

  bool wants_password_;
  RawServer server_;  // last: its thread uses the others
};

}  // namespace

TEST_CASE("a plain request goes to the proxy whole, with the proxy's password for the proxy") {
  FaultServer proxy(Scenario{{200, "from the proxy"}}, as_proxy());
  auto options = by("127.0.0.1:" + std::to_string(proxy.port()));
  options.connection.proxy.credentials.emplace(Credentials::Scheme::Basic, "ann", "secret");
  const auto outcome = Client(options).get("http://server.invalid/path?q");
  REQUIRE(outcome);
  CHECK(outcome->body == "from the proxy");
  const auto seen = proxy.seen();
  CHECK(seen[0].target == "http://server.invalid/path?q");
  CHECK(seen[0].headers.get("Proxy-Authorization") == "Basic YW5uOnNlY3JldA==");
}

TEST_CASE("through a tunnel the server sees neither the proxy nor its password") {
  for (const auto tls : {Tls::Off, Tls::Good}) {
    FaultServer server(Scenario{{200, "from the server"}}, with_tls());
    FaultServer proxy(Scenario{}, as_proxy(tls));
    auto options = by(proxy.url());
    options.connection.ca_file = server.ca_file();
    options.connection.proxy.ca_file = proxy.ca_file();
    options.connection.proxy.credentials.emplace(Credentials::Scheme::Basic, "ann", "secret");
    const auto outcome = Client(options).get(server.url());
    REQUIRE(outcome);
    CHECK(outcome->body == "from the server");
    REQUIRE(proxy.requests() == 1);
    CHECK(proxy.seen()[0].method == "CONNECT");
    CHECK(proxy.seen()[0].headers.get("Proxy-Authorization") == "Basic YW5uOnNlY3JldA==");
    CHECK_FALSE(server.seen()[0].headers.contains("Proxy-Authorization"));
  }
}

TEST_CASE("what is for the server is not told to the proxy") {
  FaultServer server(Scenario{}, with_tls());
  FaultServer proxy(Scenario{}, as_proxy());
  auto options = by(proxy.url());
  options.connection.ca_file = server.ca_file();
  auto request = Request::get(server.url()).set_header("X-Api-Key", "secret");
  request.edit_options().credentials.emplace(Credentials::Scheme::Basic, "ann", "secret");
  REQUIRE(Client(options).send(request));
  CHECK(server.seen()[0].headers.contains("X-Api-Key"));
  CHECK(server.seen()[0].headers.contains("Authorization"));
  CHECK_FALSE(proxy.seen()[0].headers.contains("X-Api-Key"));
  CHECK_FALSE(proxy.seen()[0].headers.contains("Authorization"));
}

TEST_CASE("an https proxy that is not trusted is not spoken to") {
  FaultServer server(Scenario{}, with_tls());
  FaultServer proxy(Scenario{}, as_proxy(Tls::Good));
  auto options = by(proxy.url());
  options.connection.ca_file = server.ca_file();
  const auto refused = Client(options).get(server.url());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::Tls);
  CHECK(proxy.requests() == 0);
  options.connection.proxy.verify_tls = false;
  CHECK(Client(options).get(server.url()));
}

TEST_CASE("what TLS negotiated with an https proxy is not told as the server's") {
  const TlsServer server(TLS1_2_VERSION);
  FaultServer proxy(Scenario{}, as_proxy(Tls::Good));
  auto options = by(proxy.url());
  options.connection.ca_file = server.ca_file();
  options.connection.proxy.verify_tls = false;
  std::string heard;
  auto request = Request::get(server.url());
  request.edit_options().on_connection = [&](const ConnectionInfo& connection) {
    heard = connection.tls;
  };
  REQUIRE(Client(options).send(request));
  CHECK(heard.starts_with("TLSv1.2 / "));
}

TEST_CASE("a proxy that wants a password by digest gets it") {
  FaultServer proxy(
      Scenario{{407, {{"Proxy-Authenticate", "Digest realm=\"r\", nonce=\"n\", qop=\"auth\""}}, ""},
               {200, "good"}},
      as_proxy());
  auto options = by(proxy.url());
  options.connection.proxy.credentials.emplace(Credentials::Scheme::Digest, "ann", "secret");
  const auto outcome = Client(options).get("http://server.invalid/");
  REQUIRE(outcome);
  CHECK(outcome->body == "good");
  REQUIRE(proxy.requests() == 2);
  const auto seen = proxy.seen();
  CHECK(std::string(seen[1].headers.get("Proxy-Authorization").value_or(""))
            .starts_with("Digest username=\"ann\""));
}

TEST_CASE("hosts that need no proxy are reached without, by option and by environment") {
  FaultServer server;
  FaultServer proxy(Scenario{}, as_proxy());
  auto options = by(proxy.url());
  options.connection.proxy.no_proxy = "example.com,127.0.0.1";
  REQUIRE(Client(options).get(server.url()));
  CHECK(proxy.requests() == 0);
  {
    const Environment by_environment("http_proxy", proxy.url());
    REQUIRE(Client::bare().get(server.url()));
    CHECK(proxy.requests() == 1);
    const Environment but_not("NO_PROXY", "127.0.0.0/8");
    REQUIRE(Client::bare().get(server.url()));
    CHECK(proxy.requests() == 1);
  }
  const Environment by_environment("http_proxy", proxy.url());
  REQUIRE(Client(by("")).get(server.url()));  // none is none
  CHECK(proxy.requests() == 1);
}

TEST_CASE("a proxy of the environment that is no URL of a proxy fails without a retry") {
  FaultServer server;
  for (const auto* proxy : {"http://[bad", "http://a b:80", "http://host:99999999", "foo://a:80"}) {
    const Environment by_environment("http_proxy", proxy);
    auto options = by({});
    options.connection.proxy.url.reset();
    options.middlewares = {retry(hasty())};
    const auto outcome = Client(options).get(server.url());
    REQUIRE_FALSE(outcome);
    CAPTURE(outcome.error().message);
    CHECK(outcome.error().message.find(proxy) != std::string::npos);
    CHECK(outcome.error().permanent);
    CHECK(outcome.error().history.attempts.size() == 1);
  }
  CHECK(server.requests() == 0);
}

TEST_CASE("SOCKS5 with and without a password, and who looks the name up") {
  SocksServer open(false);
  auto outcome = Client(by(open.url("socks5h"))).get("http://server.invalid/");
  REQUIRE(outcome);
  CHECK(outcome->body == "socks");
  CHECK(open.host == "server.invalid");
  REQUIRE(Client(by(open.url("socks5"))).get("http://127.0.0.1/"));
  CHECK(open.host == std::string("4:\x7f\0\0\1", 6));

  SocksServer closed(true);
  auto options = by(closed.url("socks5h"));
  options.connection.proxy.credentials.emplace(Credentials::Scheme::Basic, "ann", "secret");
  CHECK(Client(options).get("http://server.invalid/"));
  CHECK(closed.login == "ann:secret");

  options.connection.proxy.credentials->password = "wrong";
  options.middlewares = {retry(hasty())};
  outcome = Client(options).get("http://server.invalid/");
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Connect);
  CHECK(outcome.error().from_proxy);
  CHECK(outcome.error().permanent);
  CHECK(outcome.error().history.attempts.size() == 1);
  CHECK(outcome.error().message.find("wrong") == std::string::npos);
}

TEST_CASE("a SOCKS proxy that refuses is final, and one that fails is not") {
  struct Answer {
    std::string method;  // which it chooses, of version 5
    char reply;          // to the request to connect
    bool permanent;
  };
  const std::string none("\5\0", 2);
  for (const auto& row : std::vector<Answer>{{"\5\xff", 0, true},
                                             {"\5\x09", 0, true},
                                             {std::string("\4\0", 2), 0, true},
                                             {none, 1, false},
                                             {none, 2, true},
                                             {none, 3, false},
                                             {none, 4, false},
                                             {none, 5, false},
                                             {none, 6, false},
                                             {none, 7, true},
                                             {none, 8, false}}) {
    CAPTURE(row.method);
    CAPTURE(static_cast<int>(row.reply));
    RawServer proxy([&](int listener) {
      const int fd = ::accept(listener, nullptr, nullptr);
      std::array<char, 256> heard{};
      (void)::recv(fd, heard.data(), heard.size(), 0);
      write_all(fd, row.method);
      if (row.reply != 0 && ::recv(fd, heard.data(), heard.size(), 0) > 0) {
        write_all(fd, std::string("\5") + row.reply + std::string("\0\1\0\0\0\0\0\0", 8));
      }
      read_until(fd, "the end of the connection");
      ::close(fd);
    });
    const auto outcome = Client(by(proxy.url("socks5h"))).get("http://server.invalid/");
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::Connect);
    CHECK(outcome.error().from_proxy);
    CHECK(outcome.error().permanent == row.permanent);
    CHECK(outcome.error().exchange.sent == Sent::Never);
  }
}

TEST_CASE("a request over a unix socket reaches nginx") {
  const Nginx nginx("", {{"data", "over the socket"}});
  ClientOptions options;
  options.middlewares = {};
  options.connection.unix_socket = nginx.unix_socket();
  Client client(options);
  for (int i = 0; i < 2; ++i) {
    const auto outcome = client.get("http://any.invalid/data");
    REQUIRE(outcome);
    CHECK(outcome->body == "over the socket");
  }
  options.connection.unix_socket = "/nowhere/socket";
  const auto outcome = Client(options).get("http://any.invalid/data");
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Connect);
  CHECK(outcome.error().exchange.sent == Sent::Never);
}

TEST_CASE("connecting elsewhere keeps the name that is asked for") {
  FaultServer server(Scenario{}, with_tls());
  const auto port = std::to_string(server.port());
  ClientOptions options;
  options.middlewares = {};
  options.connection.ca_file = server.ca_file();
  options.connection.connect_to = {"other:1:nowhere.invalid:2", "localhost:443:127.0.0.1:" + port};
  REQUIRE(Client(options).get("https://localhost/path"));
  CHECK(server.seen()[0].headers.get("Host") == "localhost");

  options.connection.connect_to = {"wrong.invalid::127.0.0.1:" + port};
  const auto outcome = Client(options).get("https://wrong.invalid/");
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().curl_code == 60);  // the certificate is for another name
}

TEST_CASE("IPv4 or IPv6 as wanted, and the interface too") {
  FaultServerOptions six;
  six.address = "::1";
  FaultServer server(Scenario{}, six);
  FaultServer four;
  const auto at = [](const FaultServer& which) {
    return "http://localhost:" + std::to_string(which.port()) + "/";
  };
  ClientOptions options;
  options.middlewares = {};
  options.connection.ip_version = IpVersion::V6;
  CHECK(Client(options).get(at(server)));
  CHECK_FALSE(Client(options).get(four.url()));
  options.connection.ip_version = IpVersion::V4;
  CHECK(Client(options).get(at(four)));
  CHECK_FALSE(Client(options).get(at(server)));
  struct Row {
    IpVersion version;
    const char* host;
  };
  for (const auto& row : {Row{IpVersion::V6, "127.0.0.1"}, Row{IpVersion::V4, "[::1]"}}) {
    options.connection.ip_version = row.version;
    const auto excluded = Client(options).get("http://" + std::string(row.host) + ":1/");
    REQUIRE_FALSE(excluded);
    CHECK(excluded.error().code == Errc::Resolve);
    CHECK(excluded.error().permanent);
    CHECK(excluded.error().curl_code == 6);
    CHECK(excluded.error().message.ends_with(
        "the host " + std::string(row.host) +
        " is an address of the IP version that ip_version excludes"));
  }

  options.connection.local_interface = "127.0.0.9";
  CHECK(Client(options).get(four.url()));
  options.connection.local_interface = "if!nowhere";
  const auto outcome = Client(options).get(four.url());
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().curl_code == 45);
}

TEST_CASE("a connection that libcurl could not use again is closed") {
  const Nghttpd server(false);
  const bool closes = libcurl_before(0x080000);
  Client client = Client::bare();
  auto request = Request::get(server.url());
  request.edit_options().http_version = HttpVersion::Http2PriorKnowledge;
  REQUIRE(client.send(request));
  CHECK(open_connections(Url::parse(server.url())->port()) == (closes ? 0 : 1));
}

TEST_CASE("HTTP/2 without negotiation, again and again") {
  for (const bool tls : {false, true}) {
    const Nghttpd server(tls);
    ClientOptions options;
    options.middlewares = {};
    options.connection.ca_file = server.ca_file();
    Client client(options);
    auto request = Request::get(server.url());
    request.edit_options().http_version = HttpVersion::Http2PriorKnowledge;
    for (int i = 0; i < 4; ++i) {
      const auto outcome = client.send(request);
      REQUIRE(outcome);
      CHECK(outcome->http_version == "2");
      CHECK(outcome->body == "hello, two");
    }
    std::vector<std::future<Outcome>> outcomes;
    for (int i = 0; i < 10; ++i) outcomes.push_back(client.send_async(request));
    for (auto& outcome : outcomes) CHECK(outcome.get()->body == "hello, two");
  }
}

TEST_CASE("options that make no sense are refused when the client is made, without their secrets") {
  const auto refusal = [](const auto& change) -> std::string {
    ClientOptions options;
    options.middlewares = {};
    change(options.connection);
    try {
      const Client client(options);
    } catch (const std::invalid_argument& refused) {
      return refused.what();
    }
    return "";
  };
  using Options = TransportOptions;
  CHECK(refusal([](Options& o) { o.proxy.url = "ftp://u:secret@p/"; }) ==
        "TransportOptions::proxy.url: the scheme must be one of http, https, socks4, socks4a, "
        "socks5 and socks5h, not \"ftp\"");
  CHECK(refusal([](Options& o) { o.proxy.url = "http://u:secret@:99999/"; }).find("secret") ==
        std::string::npos);
  CHECK_FALSE(refusal([](Options& o) { o.proxy.url = "http://"; }).empty());
  CHECK(refusal([](Options& o) { o.lookup_may_block = false; }) ==
        "TransportOptions::lookup_may_block: false needs a lookup: system_lookup blocks");
  CHECK(refusal([](Options& o) { o.connect_timeout = Duration::min(); }) ==
        "TransportOptions::connect_timeout: it must not be negative");
  CHECK(refusal([](Options& o) { o.max_idle = -1ns; }) ==
        "TransportOptions::max_idle: it must not be negative");
  CHECK(refusal([](Options& o) { o.ca_reload = -1ns; }) ==
        "TransportOptions::ca_reload: it must not be negative");
  CHECK(refusal([](Options& o) { o.proxy.no_proxy = std::string("a\0b", 3); }) ==
        "TransportOptions::proxy.no_proxy: a NUL byte is not allowed");
  CHECK(refusal([](Options& o) { o.proxy.ca_file = std::string("a\0b", 3); }) ==
        "TransportOptions::proxy.ca_file: a NUL byte is not allowed");
  CHECK(refusal([](Options& o) { o.pinned_keys = "sha256//abc"; }) ==
        "TransportOptions::pinned_keys: \"sha256//abc\" is not sha256// and the 44 characters of a "
        "hash in base64");
  for (const char* bad : {"", "a", "a:1", "a:1:b", "a:x:b:2", "a:1:b:70000", "[::1:1:b:2",
                          "a:0:b:2", "a:1:b:0", "a:65536:b:2"}) {
    CAPTURE(bad);
    CHECK_FALSE(refusal([&](Options& o) { o.connect_to = {bad}; }).empty());
  }
  for (const char* good : {"a:1:b:2", ":::", "[::1]:1:[::2]:2", "a::b:", "a:65535:b:1"}) {
    CAPTURE(good);
    CHECK(refusal([&](Options& o) { o.connect_to = {good}; }).empty());
  }
  for (const char* bad : {"", "a", "a:1", "a:1:", "a:1:b", ":1:127.0.0.1", "a::127.0.0.1",
                          "a:1:127.0.0.1,", "a:1:127.0.0.1,b", "-a:1:127.0.0.1", "+a:1:::1",
                          "a:0:127.0.0.1", "a:1:,127.0.0.1", "a:1:[::1", "a:1:::1]"}) {
    CAPTURE(bad);
    CHECK_FALSE(refusal([&](Options& o) { o.resolve = {bad}; }).empty());
  }
  for (const char* good : {"a:1:127.0.0.1", "*:1:127.0.0.1,::1", "a:1:[::1],127.0.0.2"}) {
    CAPTURE(good);
    CHECK(refusal([&](Options& o) { o.resolve = {good}; }).empty());
  }
  CHECK(refusal([](Options& o) { o.unix_socket = std::string(108, 'x'); }) ==
        "TransportOptions::unix_socket: a path of 108 bytes; the system allows 107");
  CHECK(refusal([](Options& o) { o.unix_socket = std::string(107, 'x'); }).empty());
  CHECK_FALSE(refusal([](Options& o) { o.ca_file = std::string("a\0b", 3); }).empty());
  CHECK(refusal([](Options& o) { o.client_certificate.key_file = "k"; }) ==
        "TransportOptions::client_certificate: a private key needs the file of its certificate");
  CHECK(refusal([](Options& o) { o.client_certificate.type = "pem"; }) ==
        "TransportOptions::client_certificate.type: expected PEM, DER or P12");
  CHECK(refusal([](Options& o) { o.client_certificate.key_type = "ENG"; }) ==
        "TransportOptions::client_certificate.key_type: expected PEM, DER or P12");

  using Scheme = Credentials::Scheme;
  for (const auto max : {TlsVersion::Tls12, TlsVersion::Tls13}) {
    const auto said = refusal([&](Options& o) {
      o.min_tls = TlsVersion::Tls13;
      o.max_tls = max;
    });
    CHECK(said ==
          (max == TlsVersion::Tls12 ? "TransportOptions::max_tls: it is below min_tls" : ""));
  }
  for (const auto scheme : {Scheme::Basic, Scheme::Digest, Scheme::Ntlm, Scheme::Any}) {
    const auto said =
        refusal([&](Options& o) { o.proxy.credentials.emplace(scheme, "ann", "secret"); });
    const bool good = scheme == Scheme::Basic || scheme == Scheme::Digest;
    CHECK(said ==
          (good ? "" : "TransportOptions::proxy.credentials: the scheme must be Basic or Digest"));
  }
  CHECK(refusal([](Options& o) { o.proxy.credentials.emplace(Scheme::Basic, "a:b", "secret"); }) ==
        "TransportOptions::proxy.credentials: a name with a colon cannot be sent with the scheme "
        "Basic");
  for (const char* good : {"http://p", "https://p", "socks4://p", "socks4a://p", "socks5://p",
                           "socks5h://p", "p:80", "p", ""}) {
    CAPTURE(good);
    CHECK(refusal([&](Options& o) { o.proxy.url = good; }).empty());
  }
  const std::string pin = "sha256//" + std::string(41, 'A') + "+/=";
  const std::string almost = "sha256//" + std::string(42, 'A');
  for (const auto& good : {pin, pin + ";" + pin, std::string("key.pem")}) {
    CAPTURE(good);
    CHECK(refusal([&](Options& o) { o.pinned_keys = good; }).empty());
  }
  for (const auto& bad : {almost + "=", almost + "==", almost + "-=", almost + "AA",
                          almost + "AA=", pin + ";key.pem", pin + ";;" + pin}) {
    CAPTURE(bad);
    CHECK_FALSE(refusal([&](Options& o) { o.pinned_keys = bad; }).empty());
  }
}
