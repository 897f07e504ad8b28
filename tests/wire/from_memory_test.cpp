// Certificates and keys as text in memory, and options of libcurl that have no name of ours.
#include "files.hpp"
#include "tls_server.hpp"
#include "wire.hpp"

#include <curl/curl.h>

using namespace httpretry;

namespace {

ClientOptions once() {
  ClientOptions options;
  options.middlewares = {};
  return options;
}

void check_untrusted(const Outcome& outcome) {
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Tls);
  CHECK(outcome.error().curl_code == 60);
  CHECK(outcome.error().exchange.sent == Sent::Never);
}

// What the constructor of a client says of these options; empty where it takes them.
std::string refusal(const std::function<void(TransportOptions&)>& change) {
  auto options = once();
  change(options.connection);
  try {
    const Client client(options);
  } catch (const std::invalid_argument& refused) {
    return refused.what();
  }
  return "";
}

std::string refusal_of(const std::string& name, std::variant<long, std::string> value) {
  return refusal([&](TransportOptions& options) { options.curl_options = {{name, value}}; });
}

}  // namespace

TEST_CASE("a server is trusted by a certificate from memory, on each new connection") {
  const TlsServer server;  // closes each connection
  auto options = once();
  options.connection.ca_pem = read_file(server.ca_file());
  Client client(options);
  for (int i = 0; i < 3; ++i) {
    const auto outcome = client.get(server.url());
    REQUIRE(outcome);
    CHECK(outcome->body == "nobody");
  }
}

// libcurl would trust the directory as well.
TEST_CASE("a certificate from memory replaces those of the file and of the hashed directory") {
  const TemporaryDirectory directory;
  const TlsServer server;
  make_client_certificate(directory.file(""), "another authority", "p");
  make_hashed_directory(server.ca_file(), directory.file(""));
  auto options = once();
  options.connection.ca_path = directory.file("");
  CHECK(Client(options).get(server.url()));  // it is a certificate that the directory has

  options.connection.ca_file = server.ca_file();
  options.connection.ca_pem = read_file(directory.file("cert.pem"));
  check_untrusted(Client(options).get(server.url()));
}

TEST_CASE("an https proxy is trusted by a certificate from memory") {
  FaultServerOptions as_proxy;
  as_proxy.proxy = true;
  as_proxy.tls = Tls::Good;
  FaultServer proxy(Scenario{}, as_proxy);
  const TemporaryDirectory directory;
  make_client_certificate(directory.file(""), "another authority", "p");
  const TlsServer server;
  auto options = once();
  options.connection.ca_pem = read_file(server.ca_file());
  options.connection.proxy.url = proxy.url();
  options.connection.proxy.ca_pem = read_file(proxy.ca_file());
  CHECK(Client(options).get(server.url()));
  options.connection.proxy.ca_pem = read_file(directory.file("cert.pem"));
  options.connection.proxy.ca_file = proxy.ca_file();
  check_untrusted(Client(options).get(server.url()));
}

TEST_CASE("a client certificate and its key come from memory, and are shown to one origin only") {
  const TemporaryDirectory directory;
  make_client_certificate(directory.file(""), "ann", "opensesame");
  const TlsServer stranger;
  const TlsServer server(TLS1_3_VERSION, stranger.url());
  auto options = once();
  options.middlewares = {redirect()};
  options.connection.verify_tls = false;  // two authorities of one name
  auto& certificate = options.connection.client_certificate;
  certificate.pem = read_file(directory.file("cert.pem"));
  certificate.key_pem = read_file(directory.file("key.pem"));
  certificate.key_password = "opensesame";
  Client client(options);
  for (int i = 0; i < 2; ++i) {
    CHECK(client.get(server.url())->body == "nobody");
    CHECK(client.get(stranger.url())->body == "ann");
  }

  certificate.pem += certificate.key_pem;  // one text has both
  certificate.key_pem.clear();
  CHECK(Client(options).get(stranger.url())->body == "ann");

  certificate.key_password = "wrong";
  const auto outcome = Client(options).get(stranger.url());
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().curl_code == 58);
}

TEST_CASE("what cannot be a certificate or a key is refused, and is not repeated in the message") {
  const std::string pem = "-----BEGIN CERTIFICATE-----\nsecret\n-----END CERTIFICATE-----\n";
  const std::string key = "-----BEGIN PRIVATE KEY-----\nsecret\n-----END PRIVATE KEY-----\n";
  using Options = TransportOptions;
  struct Row {
    std::string says;
    std::function<void(Options&)> change;
  };
  const Row rows[] = {
      {"ca_pem: there is no CERTIFICATE in it; expected the text of a PEM file, not its name",
       [](Options& o) { o.ca_pem = "/etc/secret.pem"; }},
      {"proxy.ca_pem: there is no CERTIFICATE in it", [&](Options& o) { o.proxy.ca_pem = key; }},
      {"ca_pem: a NUL byte is not allowed", [&](Options& o) { o.ca_pem = pem + '\0'; }},
      {"client_certificate.pem: there is no CERTIFICATE in it",
       [&](Options& o) { o.client_certificate.pem = key; }},
      {"client_certificate.pem: there is no PRIVATE KEY in it",
       [&](Options& o) { o.client_certificate.pem = pem; }},
      {"client_certificate: a key_pem needs the pem of its certificate",
       [&](Options& o) { o.client_certificate.key_pem = key; }},
      {"client_certificate: set file and key_file, or pem and key_pem, but not both",
       [&](Options& o) {
         o.client_certificate.file = "a.pem";
         o.client_certificate.pem = pem + key;
       }},
  };
  for (const auto& row : rows) {
    CAPTURE(row.says);
    const auto message = refusal(row.change);
    CHECK(message.starts_with("TransportOptions::" + row.says));
    CHECK(message.find("secret") == std::string::npos);
  }
  CHECK(refusal([&](Options& o) { o.client_certificate.pem = pem + key; }).empty());
}

TEST_CASE("a certificate from memory that cannot be read ends the call, permanently") {
  const TlsServer server;
  auto options = once();
  options.connection.ca_pem = "-----BEGIN CERTIFICATE-----\n?\n-----END CERTIFICATE-----\n";
  const auto outcome = Client(options).get(server.url());
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Tls);
  CHECK(outcome.error().permanent);
  CHECK(outcome.error().curl_code == 77);
}

TEST_CASE("an option of libcurl without a name of ours is in force on every handle") {
  const TlsServer server;
  auto options = once();
  options.connection.ca_file = server.ca_file();
  options.connection.min_tls = TlsVersion::Tls13;
  options.connection.curl_options = {{"TCP_NODELAY", 0},
                                     {"CURLOPT_TLS13_CIPHERS", "TLS_AES_128_CCM_8_SHA256"}};
  const auto refused = Client(options).get(server.url());  // the server has no such cipher
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::Tls);
  options.connection.curl_options.pop_back();
  options.connection.curl_options.emplace_back("MAX_RECV_SPEED_LARGE", 1L << 40U);
  Client client(options);
  for (int i = 0; i < 3; ++i) CHECK(client.get(server.url()));
}

TEST_CASE("an option of libcurl that cannot be set is refused, with what to do instead") {
  struct Row {
    const char* name;
    std::variant<long, std::string> value;
    std::string why;
  };
  const Row rows[] = {
      {"CAINFO", "a.pem", "use TransportOptions::ca_file, ca_pem, ca_path and ca_reload"},
      {"CURLOPT_TIMEOUT_MS", 1, "use the time limits of a policy or a request, listed in time.hpp"},
      {"ENCODING", "gzip", "use RequestOptions::compressed"},  // an old name
      {"verbose", 1, "the library relies on its value"},
      {"FOLLOWLOCATION", 1,
       "use the middleware redirect(), which keeps secrets from other origins"},
      {"SSL_CTX_FUNCTION", 1, "it takes a pointer; only numbers and strings can be set"},
      {"PROXYHEADER", "a: b", "use TransportOptions::proxy.headers"},
      {"TCP_NODELAY", "no", "it takes a number, not a string"},
      {"SSL_CIPHER_LIST", 1, "it takes a string, not a number"},
      {"SSL_CIPHER_LIST", std::string("a\0b", 3), "a NUL byte is not allowed"},
      {"LOCALPORT", -1, "libcurl refuses it: A libcurl function was given a bad argument"},
  };
  for (const auto& row : rows) {
    CAPTURE(std::string(row.name));
    CHECK(refusal_of(row.name, row.value) ==
          "TransportOptions::curl_options: " + std::string(row.name) + ": " + row.why);
  }
  const auto unknown = refusal_of("TCP_NODELY", 1);
  CHECK(unknown.find("TCP_NODELY: libcurl ") != std::string::npos);
  CHECK(unknown.find(" has no such option; expected a name such as TCP_NODELAY") !=
        std::string::npos);
}

TEST_CASE("what the library relies on without setting it is refused") {
  for (const char* number : {"TIMEOUT",
                             "FOLLOWLOCATION",
                             "UNRESTRICTED_AUTH",
                             "FAILONERROR",
                             "HEADER",
                             "HTTP09_ALLOWED",
                             "IGNORE_CONTENT_LENGTH",
                             "CRLF",
                             "KEEP_SENDING_ON_ERROR",
                             "SUPPRESS_CONNECT_HEADERS",
                             "HEADEROPT",
                             "HSTS_CTRL",
                             "ALTSVC_CTRL",
                             "QUICK_EXIT",
                             "MAXFILESIZE_LARGE",
                             "RESUME_FROM_LARGE",
                             "CONNECT_ONLY",
                             "HTTP_CONTENT_DECODING",
                             "HTTP_TRANSFER_DECODING",
                             "PORT",
                             "PROXYTYPE"}) {
    CAPTURE(std::string(number));
    CHECK_FALSE(refusal_of(number, 1).empty());
  }
  for (const char* text :
       {"HSTS", "ALTSVC", "DOH_URL", "RANGE", "REFERER", "ACCEPT_ENCODING", "COOKIEJAR", "USERPWD",
        "PRE_PROXY", "PROXYUSERPWD", "REDIR_PROTOCOLS_STR", "REQUEST_TARGET", "XOAUTH2_BEARER",
        "ABSTRACT_UNIX_SOCKET", "DEFAULT_PROTOCOL"}) {
    CAPTURE(std::string(text));
    CHECK_FALSE(refusal_of(text, "x").empty());
  }
}

// Whoever sets another option in lib/core/curl must refuse it here.
TEST_CASE("all that the library sets on a handle is refused") {
  // Nothing relies on these.
  const std::string free = " TCP_KEEPALIVE TCP_KEEPIDLE TCP_KEEPINTVL BUFFERSIZE ";
  std::size_t count = 0;
  for (const auto& file : std::filesystem::directory_iterator(SOURCE_DIR "/lib/core/curl")) {
    const auto text = read_file(file.path());
    constexpr std::string_view kPrefix = "CURLOPT_";
    for (auto at = text.find(kPrefix); at != text.npos; at = text.find(kPrefix, at)) {
      at += kPrefix.size();
      const auto end = text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", at);
      const auto name = text.substr(at, end - at);
      CAPTURE(name);
      const auto* option = curl_easy_option_by_name(name.c_str());
      if (option == nullptr || free.find(" " + name + " ") != free.npos) continue;
      ++count;
      const auto as_number = refusal_of(name, 0);
      CHECK_FALSE(as_number.empty());
      CHECK(as_number.find("it takes a string") == as_number.npos);
      CHECK_FALSE(refusal_of(name, "x").empty());
    }
  }
  CHECK(count > 80);
}
