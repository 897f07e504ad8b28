// No loop, and no thread of a user, waits for the other end of a pipe that is named in place of a
// file.
#include "files.hpp"
#include "sinks.hpp"

#include <httpretry/curl/cookies.hpp>

#include <sys/stat.h>

#include <functional>
#include <vector>

using namespace httpretry;

namespace {

struct Pipe {
  Pipe() { REQUIRE(::mkfifo(path.c_str(), 0600) == 0); }
  const TemporaryDirectory directory;
  const std::string path = directory.file("pipe");
};

void check_refused(const Outcome& outcome, const std::string& path, int curl_code) {
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::InvalidRequest);
  CHECK(outcome.error().curl_code == curl_code);
  CHECK(outcome.error().message.find(path + ": it is ") != std::string::npos);
  CHECK(outcome.error().exchange.sent == Sent::Never);
}

}  // namespace

TEST_CASE("a response is not saved to a pipe") {
  const Pipe pipe;
  FaultServer server;
  FileOptions keep;
  keep.keep_partial = true;
  for (const auto& options : {FileOptions(), keep}) {
    check_refused(get_into(server, save_to(pipe.path, options)), pipe.path, 23);
  }
  CHECK(server.requests() == 0);
}

TEST_CASE("cookies are neither read from a pipe nor written to one") {
  const Pipe pipe;
  CookieJar jar;
  for (const auto& done : {jar.load(pipe.path), jar.save(pipe.path)}) {
    REQUIRE_FALSE(done);
    CHECK(done.error().code == Errc::InvalidRequest);
    CHECK(done.error().message.find(pipe.path + ": it is ") != std::string::npos);
  }
  CHECK(jar.load("/dev/null"));
  CHECK(jar.save("/dev/null"));
}

TEST_CASE("no name and password are read from a pipe") {
  const Pipe pipe;
  FaultServer server;
  ClientOptions options;
  options.middlewares = {};
  options.connection.netrc = pipe.path;
  check_refused(Client(options).get(server.url()), pipe.path, 26);

  options.connection.netrc = "/dev/null";
  CHECK(Client(options).get(server.url()));
  CHECK(server.requests() == 1);
}

TEST_CASE("a netrc in the home directory that is a pipe is not read") {
  const Pipe pipe;
  REQUIRE(::rename(pipe.path.c_str(), pipe.directory.file(".netrc").c_str()) == 0);
  const char* old = std::getenv("HOME");
  const std::string home(old == nullptr ? "/" : old);
  ::setenv("HOME", pipe.directory.file("").c_str(), 1);
  FaultServer server;
  ClientOptions options;
  options.middlewares = {};
  options.connection.netrc = "";
  check_refused(Client(options).get(server.url()), ".netrc", 26);
  CHECK(server.requests() == 0);
  ::setenv("HOME", home.c_str(), 1);
}

TEST_CASE("neither certificates nor keys are read from a pipe") {
  const Pipe pipe;
  FaultServerOptions tls;
  tls.tls = Tls::Good;
  FaultServer server(Scenario{}, tls);
  using Set = std::function<void(TransportOptions&)>;
  const std::vector<Set> all{
      [&](TransportOptions& to) { to.ca_file = pipe.path; },
      [&](TransportOptions& to) { to.client_certificate.file = pipe.path; },
      [&](TransportOptions& to) {
        to.client_certificate.file = "/dev/null";
        to.client_certificate.key_file = pipe.path;
      },
      [&](TransportOptions& to) { to.pinned_keys = pipe.path; },
      [&](TransportOptions& to) {
        to.proxy.url = "https://127.0.0.1:1";
        to.proxy.ca_file = pipe.path;
      },
  };
  for (const auto& set : all) {
    ClientOptions options;
    options.middlewares = {};
    options.connection.ca_file = server.ca_file();
    options.connection.proxy.url = "";
    set(options.connection);
    check_refused(Client(options).get(server.url()), pipe.path, 26);
  }
  CHECK(server.requests() == 0);
}

TEST_CASE("without TLS no certificate is needed, and a missing one is told by libcurl") {
  const Pipe pipe;
  FaultServer server;
  ClientOptions options;
  options.middlewares = {};
  options.connection.ca_file = pipe.path;
  CHECK(Client(options).get(server.url()));

  FaultServerOptions tls;
  tls.tls = Tls::Good;
  FaultServer secured(Scenario{}, tls);
  options.connection.ca_file = "/nonexistent";
  const auto outcome = Client(options).get(secured.url());
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().curl_code == 77);
}

TEST_CASE("no body is read from a pipe by its name") {
  const Pipe pipe;
  FaultServer server;
  Request request("PUT", server.url());
  request.set_body(Body::file(pipe.path));
  check_refused(Client::bare().send(request), pipe.path, 26);
  CHECK(server.requests() == 0);
}
