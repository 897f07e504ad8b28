// What this process lacks before a request is sent: descriptors, memory, local ports. Such a call
// has not failed for good, and says so.
#include "file_limit.hpp"
#include "files.hpp"
#include "wire.hpp"

#include "lib/core/base/descriptor.hpp"

#include <httpretry/client/report.hpp>

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

using namespace httpretry;

namespace {

void check_shortage(const Outcome& outcome, const std::string& text) {
  REQUIRE_FALSE(outcome);
  const auto& error = outcome.error();
  CHECK_MESSAGE(error.code == Errc::LocalShortage, error.message);
  CHECK_FALSE(error.permanent);
  CHECK_FALSE(error.maybe_sent());
  CHECK(error.history.stop_reason == Reason::LocalShortage);
  CHECK_MESSAGE(error.message.find(text) != std::string::npos, error.message);
}

// Takes all descriptors of this process but some, for a scope.
class FewFiles {
 public:
  explicit FewFiles(std::size_t left) : limit_(next_file() + 64) {
    for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) taken_.emplace_back(fd);
    taken_.resize(taken_.size() - left);
  }

 private:
  FileLimit limit_;
  std::vector<Descriptor> taken_;
};

// Gives the calling thread a network of its own, which has only "lo". Returns false if the system
// does not allow it.
bool enter_own_network() {
  if (::unshare(CLONE_NEWNET) != 0) return false;
  const Descriptor any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq loopback{};
  std::strcpy(loopback.ifr_name, "lo");
  loopback.ifr_flags = IFF_UP | IFF_RUNNING;
  REQUIRE(::ioctl(any.get(), SIOCSIFFLAGS, &loopback) == 0);
  return true;
}

// The same, with one port for the connections that the thread makes.
bool enter_network_with_one_port() {
  if (!enter_own_network()) return false;
  write_file("/proc/sys/net/ipv4/ip_local_port_range", "40000 40000");
  return true;
}

void run_on_thread(const std::function<void()>& function) { std::thread(function).join(); }

}  // namespace

TEST_CASE("a socket does not take the descriptor that its certificates need") {
  const FaultServer plain;
  FaultServerOptions tls;
  tls.tls = Tls::Good;
  const FaultServer secure({}, tls);
  ClientOptions options;
  options.connection.ca_file = secure.ca_file();
  Client client(std::move(options));
  CHECK(client.get(plain.url()));  // now the loop has its descriptors
  {
    const FewFiles few(1);
    check_shortage(client.get(secure.url()), "cannot open a socket: Too many open files");
  }
  CHECK(client.get(secure.url()));
}

TEST_CASE("the file of a body that cannot be opened for lack of descriptors is no bad request") {
  const TemporaryDirectory directory;
  const auto path = directory.file("body");
  write_file(path, "hello");
  const FaultServer server;
  auto client = Client::bare();
  CHECK(client.get(server.url()));
  const auto request = Request::post(server.url(), Body::file(path));
  {
    const FewFiles few(0);
    check_shortage(client.send(request), "Too many open files");
  }
  CHECK(client.send(request));
}

TEST_CASE("a host that cannot be looked up for lack of descriptors is not taken for unknown") {
  const FaultServer server;
  auto client = Client::bare();
  CHECK(client.get(server.url()));
  const FewFiles few(0);
  check_shortage(client.get("http://name.invalid/"), "Too many open files");
}

TEST_CASE("retry() ends a call at once that lacks a descriptor, and says why") {
  const FaultServer server;
  Client client;
  CHECK(client.get(server.url()));
  const FewFiles few(0);
  const auto outcome = client.get("http://127.0.0.1:1/");
  check_shortage(outcome, "cannot open a socket");
  CHECK(history_of(outcome).attempts.size() == 1);
  CHECK(describe(outcome).ends_with(": local_shortage (local_shortage)"));
}

// In a network of its own: a thread can have one.
TEST_CASE("a call for which no local port is left has not failed to reach the server") {
  run_on_thread([] {
    if (!enter_network_with_one_port()) return;
    const Descriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(8080);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto* there = reinterpret_cast<const sockaddr*>(&address);
    REQUIRE(::bind(listener.get(), there, sizeof address) == 0);
    REQUIRE(::listen(listener.get(), 16) == 0);
    const Descriptor first(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::connect(first.get(), there, sizeof address) == 0);
    check_shortage(Client::bare().get("http://127.0.0.1:8080/"),
                   "cannot connect: all local ports for this server are in use");
  });
}

// Gives "lo" an address that is not of loopback. Returns false if there is no IPv6.
bool add_global_ipv6_address() {
  struct {  // in6_ifreq, whose header does not fit <netinet/in.h>
    in6_addr address;
    std::uint32_t prefix_length;
    int interface_index;
  } request{{}, 64, static_cast<int>(::if_nametoindex("lo"))};
  ::inet_pton(AF_INET6, "2001:db8::1", &request.address);
  const Descriptor any(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return any.is_open() && ::ioctl(any.get(), SIOCSIFADDR, &request) == 0;
}

TEST_CASE("a machine whose network has only IPv6 still finds its own 127.0.0.1") {
  run_on_thread([] {
    if (!enter_own_network() || !add_global_ipv6_address()) return;
    const auto addresses = system_lookup("localhost");
    REQUIRE_MESSAGE(addresses, addresses.error().message);
    CHECK(std::ranges::count(*addresses, "127.0.0.1") == 1);
  });
}

TEST_CASE("a machine without an address of IPv6 does not lack a port") {
  run_on_thread([] {
    if (!enter_network_with_one_port()) return;
    write_file("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
    const auto outcome = Client::bare().get("http://[::1]:8080/");
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::Connect);
    CHECK(outcome.error().curl_code == 7);
  });
}
