// Names that are slow, dead or lie: what becomes of the calls, and that nothing else waits for
// them.
#include "dns_server.hpp"
#include "wire.hpp"

#include <condition_variable>
#include <future>
#include <map>
#include <mutex>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

using Says = DnsServer::Says;

// Holds a thread back until it is opened.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void wait_for(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  int waiting_ = 0;
};

ClientOptions looking_up(Lookup lookup, std::vector<MiddlewarePtr> chain = {}) {
  ClientOptions options;
  options.middlewares = std::move(chain);
  options.connection.lookup = std::move(lookup);
  return options;
}

std::string named(const FaultServer& server, const std::string& host = "api.test") {
  return "http://" + host + ":" + std::to_string(server.port()) + "/";
}

// What a call waits for here, another must not.
void check_lively(Client& client, const FaultServer& server) {
  CHECK(client.send_async(Request::get(server.url("/"))).get());
}

}  // namespace

TEST_CASE("a name is looked up once, for all loops and for some time") {
  FaultServer server;
  DnsServer dns([](const std::string&) { return "127.0.0.1"; });
  auto options = looking_up(dns.lookup());
  options.threads = 3;
  Client client(options);
  const auto first = client.get(named(server));
  REQUIRE(first);
  CHECK(first->exchange.timings.resolved > 0s);
  CHECK(first->exchange.timings.connected >= first->exchange.timings.resolved);
  const auto asked = dns.questions();
  CHECK(asked >= 1);
  CHECK(asked <= 2);  // for both kinds of address
  for (int i = 0; i < 6; ++i) CHECK(client.send_async(Request::get(named(server))).get());
  CHECK(client.get(named(server)));
  CHECK(dns.questions() == asked);
  CHECK(server.seen()[0].headers.get("Host") == "api.test:" + std::to_string(server.port()));
}

TEST_CASE("calls that need one name together wait for one look-up") {
  FaultServer server;
  Gate gate;
  std::atomic<int> looked_up = 0;
  Client client(looking_up([&](const std::string&) {
    ++looked_up;
    gate.pass();
    return Result<Addresses>(Addresses{"127.0.0.1"});
  }));
  std::vector<std::future<Outcome>> outcomes;
  for (int i = 0; i < 50; ++i) outcomes.push_back(client.send_async(Request::get(named(server))));
  gate.wait_for(1);
  check_lively(client, server);
  gate.open();
  for (auto& outcome : outcomes) CHECK(outcome.get());
  CHECK(looked_up == 1);
}

TEST_CASE("a host that does not exist is told apart from a name server that fails") {
  FaultServer server;
  DnsServer dns([](const std::string& name) -> DnsServer::Reply {
    return name.starts_with("gone") ? Says::NoSuchName : Says::Failure;
  });
  Client client(looking_up(dns.lookup(), {retry(hasty())}));
  const auto gone = client.get(named(server, "gone.test"));
  REQUIRE_FALSE(gone);
  CHECK(gone.error().code == Errc::Resolve);
  CHECK(gone.error().curl_code == 6);
  CHECK(gone.error().exchange.sent == Sent::Never);
  CHECK(gone.error().message.find("the host gone.test does not exist") != std::string::npos);

  const auto failing = client.post(named(server, "failing.test"), "never sent, so sent again");
  REQUIRE_FALSE(failing);
  CHECK(failing.error().code == Errc::Resolve);
  CHECK(failing.error().history.attempts.size() == 5);
  CHECK(failing.error().message.find("no name server could resolve failing.test") !=
        std::string::npos);
}

TEST_CASE("a name server that recovers is asked again by the next attempt") {
  FaultServer server;
  std::atomic<int> questions = 0;
  DnsServer dns([&](const std::string&) -> DnsServer::Reply {
    if (++questions <= 2) return Says::Failure;
    return "127.0.0.1";
  });
  auto policy = hasty();
  policy.max_attempts = 6;
  Client client(looking_up(dns.lookup(), {retry(policy)}));
  const auto outcome = client.get(named(server));
  REQUIRE(outcome);
  CHECK(outcome->history.attempts.size() > 1);
  CHECK(outcome->history.attempts[0].error == Errc::Resolve);
}

TEST_CASE("a slow name is waited for, and nothing else waits with it") {
  FaultServer server;
  Gate gate;
  DnsServer dns([&](const std::string&) {
    gate.pass();
    return "127.0.0.1";
  });
  Client client(looking_up(dns.lookup()));
  auto slow = client.send_async(Request::get(named(server)));
  gate.wait_for(1);
  check_lively(client, server);
  gate.open();
  CHECK(slow.get());
}

TEST_CASE("names that are dead, or answered with lies, end with the attempt's time") {
  FaultServer server;
  for (const auto says : {Says::Nothing, Says::Garbage, Says::OtherName}) {
    DnsServer dns([says](const std::string&) { return says; });
    auto policy = hasty();
    policy.attempt_timeout = 20ms;
    policy.max_attempts = 2;
    Client client(looking_up(dns.lookup(), {retry(policy)}));
    const auto outcome = client.get(named(server));
    REQUIRE_FALSE(outcome);
    CHECK((outcome.error().code == Errc::Timeout || outcome.error().code == Errc::Resolve));
    CHECK(outcome.error().exchange.sent == Sent::Never);
    CHECK(outcome.error().message.find("GET http://api.test:") == 0);
    CHECK(outcome.error().message.find("api.test") != std::string::npos);
    CHECK(server.requests() == 0);
  }
}

TEST_CASE("an address that leads nowhere is looked up anew for a later attempt") {
  FaultServer server;
  std::atomic<int> looked_up = 0;
  auto policy = hasty();
  policy.max_attempts = 100;  // the look-up has a thread of its own
  policy.backoff.kind = Backoff::Kind::Constant;
  policy.backoff.jitter = Backoff::Jitter::None;
  policy.backoff.initial = 60ms;
  policy.budget = BudgetPolicy();
  Client client(looking_up(
      [&](const std::string&) {
        // 127.0.0.2 is this machine, too, but nobody listens there.
        return Result<Addresses>(Addresses{++looked_up == 1 ? "127.0.0.2" : "127.0.0.1"});
      },
      {retry(policy)}));
  const auto outcome = client.get(named(server));
  CAPTURE(looked_up.load());
  REQUIRE_MESSAGE(outcome, outcome.error().message);
  CHECK(looked_up == 2);
  CHECK(outcome->history.attempts[0].error == Errc::Connect);
}

TEST_CASE("of several addresses, one that answers is enough") {
  FaultServer server;
  Client client(looking_up([](const std::string&) {
    return Result<Addresses>(Addresses{"127.0.0.2", "127.0.0.1"});
  }));
  CHECK(client.get(named(server)));
}

TEST_CASE("a look-up that nobody waits for any more is not begun") {
  FaultServer server;
  Gate gate;
  std::mutex mutex;
  std::vector<std::string> looked_up;
  Client client(looking_up([&](const std::string& host) {
    {
      const std::lock_guard lock(mutex);
      looked_up.push_back(host);
    }
    if (host.starts_with("slow")) gate.pass();
    return Result<Addresses>(Addresses{"127.0.0.1"});
  }));
  std::vector<std::future<Outcome>> slow;
  for (int i = 0; i < 4; ++i) {
    slow.push_back(
        client.send_async(Request::get(named(server, "slow" + std::to_string(i) + ".test"))));
  }
  gate.wait_for(4);  // all the threads there are
  std::stop_source stop;
  CallOptions stopped;
  stopped.stop = stop.get_token();
  auto canceled = client.send_async(Request::get(named(server, "canceled.test")), stopped);
  auto last = client.send_async(Request::get(named(server, "last.test")));
  stop.request_stop();
  CHECK(canceled.get().error().code == Errc::Canceled);
  gate.open();
  CHECK(last.get());
  for (auto& outcome : slow) CHECK(outcome.get());
  const std::lock_guard lock(mutex);
  CHECK(std::count(looked_up.begin(), looked_up.end(), "canceled.test") == 0);
}

TEST_CASE("the end of a client does not wait for a look-up") {
  FaultServer server;
  const auto gate = std::make_shared<Gate>();
  std::future<Outcome> outcome;
  {
    Client client(looking_up([gate](const std::string&) {
      gate->pass();
      return Result<Addresses>(Addresses{"127.0.0.1"});
    }));
    outcome = client.send_async(Request::get(named(server)));
    gate->wait_for(1);
  }
  CHECK(outcome.get().error().code == Errc::Canceled);
  gate->open();
  CHECK(server.requests() == 0);
}

TEST_CASE("a look-up of one's own is believed as far as it gives addresses") {
  struct Row {
    std::function<Result<Addresses>()> says;
    std::string text;
  };
  const std::vector<Row> rows{
      {[] { return Addresses{}; }, "the host x.test has no address"},
      {[] { return Addresses{"127.0.0.1,evil"}; },
       "gave \"127.0.0.1,evil\": expected an IPv4 or IPv6 address"},
      {[]() -> Result<Addresses> { throw std::runtime_error("no registry"); },
       "the lookup of x.test threw: no registry"},
      {[] { return Error(Errc::Resolve, "the registry knows no x"); }, "the registry knows no x"}};
  for (const auto& row : rows) {
    Client client(looking_up([&](const std::string& host) {
      CHECK(host == "x.test");
      return row.says();
    }));
    const auto outcome = client.get("http://X.test/");
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::Resolve);
    CHECK_MESSAGE(outcome.error().message.find(row.text) != std::string::npos,
                  outcome.error().message);
  }
}

TEST_CASE("addresses and localhost are not looked up") {
  FaultServer server;
  Client client(looking_up([](const std::string& host) {
    return Result<Addresses>(Error(Errc::Resolve, "asked for " + host));
  }));
  const auto port = std::to_string(server.port());
  for (const auto* host : {"127.0.0.1", "127.1", "localhost", "0x7f.0.0.1"}) {
    CHECK(client.get("http://" + std::string(host) + ":" + port + "/"));
  }
  CHECK(client.get("http://[::1]:1/").error().code == Errc::Connect);
}
