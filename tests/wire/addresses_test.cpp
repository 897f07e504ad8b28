// Hosts with several addresses, of which some are dead: the live one is reached, and libcurl is
// called only where something happened.
#include "wire.hpp"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <future>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

std::atomic<int> looks = 0;  // how often libcurl was called to see what has happened

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {
CURLMcode curl_multi_perform(CURLM* multi, int* running) {
  static auto* const next = real<CURLMcode(CURLM*, int*)>("curl_multi_perform");
  ++looks;
  return next(multi, running);
}
CURLMcode curl_multi_socket_action(CURLM* multi, curl_socket_t socket, int events, int* running) {
  static auto* const next =
      real<CURLMcode(CURLM*, curl_socket_t, int, int*)>("curl_multi_socket_action");
  ++looks;
  return next(multi, socket, events, running);
}
}

namespace {

// This machine's, on which nobody listens: 127.0.1.1, 127.0.1.2, …
Addresses dead(int count) {
  Addresses addresses;
  for (int i = 1; i <= count; ++i) addresses.push_back("127.0.1." + std::to_string(i));
  return addresses;
}

Addresses and_then(Addresses addresses, const std::string& last) {
  addresses.push_back(last);
  return addresses;
}

ClientOptions at(const Addresses& addresses) {
  ClientOptions options;
  options.middlewares = {};
  options.connection.lookup = [addresses](const std::string&) {
    return Result<Addresses>(addresses);
  };
  return options;
}

// In one of the two ways in which a loop is driven.
Outcome get(Client& client, const std::string& url, bool blocking) {
  looks = 0;
  return blocking ? client.get(url) : client.send_async(Request::get(url)).get();
}

std::string named(int port) { return "http://api.test:" + std::to_string(port) + "/"; }

// An address that answers no attempt to connect: its queue of connections is full.
class BlackHole {
 public:
  BlackHole(const char* ip, int port) : sockets_{open()} {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    REQUIRE(::inet_pton(AF_INET, ip, &address.sin_addr) == 1);
    auto* const self = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(::bind(sockets_[0], self, sizeof address) == 0);
    REQUIRE(::listen(sockets_[0], 0) == 0);
    for (int i = 0; i < 4; ++i) {
      sockets_.push_back(open());
      ::connect(sockets_.back(), self, sizeof address);
    }
  }
  ~BlackHole() {
    for (const int fd : sockets_) ::close(fd);
  }
  BlackHole(const BlackHole&) = delete;
  BlackHole& operator=(const BlackHole&) = delete;

 private:
  static int open() { return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }
  std::vector<int> sockets_;
};

}  // namespace

TEST_CASE("a host is reached at the one address that lives") {
  const FaultServer server;
  for (const bool blocking : {true, false}) {
    for (const int count : {0, 1, 2, 4, 20, 50}) {
      CAPTURE(blocking);
      CAPTURE(count);
      Client client(at(and_then(dead(count), "127.0.0.1")));
      const auto outcome = get(client, named(server.port()), blocking);
      REQUIRE(outcome);
      CHECK(outcome->exchange.wire_sends == 1);
      CHECK(looks <= 10 + 3 * count);
    }
  }
}

TEST_CASE("many calls at once reach the one address that lives") {
  const FaultServer server;
  Client client(at(and_then(dead(5), "127.0.0.1")));
  std::vector<std::future<Outcome>> outcomes;
  for (int i = 0; i < 50; ++i) {
    outcomes.push_back(client.send_async(Request::get(named(server.port()))));
  }
  for (auto& outcome : outcomes) CHECK(outcome.get());
}

TEST_CASE("a host whose addresses are all dead is given up at once") {
  const FaultServer server;
  for (const bool blocking : {true, false}) {
    CAPTURE(blocking);
    auto options = at(dead(50));
    options.connection.connect_timeout = 1h;
    Client client(options);
    const auto outcome = get(client, named(server.port()), blocking);
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::Connect);
    CHECK(outcome.error().exchange.sent == Sent::Never);
    CHECK(looks <= 160);
  }
}

TEST_CASE("all addresses that are given for a host are tried, and it is not looked up") {
  const FaultServer server;
  const auto port = std::to_string(server.port());
  for (const std::string host : {"api.test", "API.test", "*"}) {
    for (const bool blocking : {true, false}) {
      CAPTURE(host);
      CAPTURE(blocking);
      auto options = at({});  // a look-up would fail
      options.connection.resolve = {"other.test:" + port + ":127.0.1.9",
                                    host + ":" + port + ":127.0.1.1,127.0.1.2,127.0.0.1"};
      Client client(options);
      for (int round = 0; round < 3; ++round) {
        auto request = Request::get(named(server.port()));
        request.edit_options().fresh_connection = true;
        CHECK((blocking ? client.send(request) : client.send_async(request).get()));
      }
      CHECK(client.get("http://third.test:1/").error().code == Errc::Resolve);
    }
  }
}

TEST_CASE("an address that does not answer is left for the next one") {
  const FaultServer server;
  const BlackHole first("127.0.2.1", server.port());
  for (const bool blocking : {true, false}) {
    CAPTURE(blocking);
    auto options = at({"127.0.1.1", "127.0.2.1", "127.0.1.2", "127.0.0.1"});
    // libcurl 8 gives 600 ms or less to the first address alone.
    options.connection.connect_timeout = 800ms;
    Client client(options);
    CHECK(get(client, named(server.port()), blocking));
    CHECK(looks <= 25);
  }
}

TEST_CASE("a response is waited for without looking again and again") {
  Step slow(200);
  slow.delay = 300ms;
  for (const bool blocking : {true, false}) {
    CAPTURE(blocking);
    const FaultServer server(Scenario({slow}));
    Client client(at({"127.0.1.1", "127.0.0.1"}));
    CHECK(get(client, named(server.port()), blocking));
    CHECK(looks <= 15);
  }
}

TEST_CASE("a host that does not answer is waited for without looking again and again") {
  const FaultServer server;
  const BlackHole first("127.0.2.1", server.port());
  const BlackHole second("127.0.2.2", server.port());
  for (const bool blocking : {true, false}) {
    CAPTURE(blocking);
    auto options = at({"127.0.2.1", "127.0.2.2"});
    options.connection.connect_timeout = 300ms;
    Client client(options);
    const auto outcome = get(client, named(server.port()), blocking);
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::Timeout);
    CHECK(looks <= 15);
  }
}
