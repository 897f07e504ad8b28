// How long a response about a name is used, in virtual time. The look-ups are made by real threads.
#include "lib/core/curl/resolver.hpp"
#include "tests/waiting.hpp"

#include <httpretry/testing/testing.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

class Asking {
 public:
  // "-" has the look-ups fail.
  void say(const std::string& address) {
    const std::lock_guard lock(mutex_);
    address_ = address;
  }
  Resolver::Resolved ask(const std::string& host = "x.test") {
    std::optional<Resolver::Resolved> answer;
    start(host, answer);
    while (!answer) clock.run();
    return *answer;
  }
  std::string address(const std::string& host = "x.test") {
    const auto answer = ask(host);
    return answer.addresses ? answer.addresses->at(0) : answer.addresses.error().message;
  }
  void renew(const std::string& host = "x.test") { resolver_.renew(host, clock.now()); }
  [[nodiscard]] int lookups() const { return lookups_; }

  ManualScheduler clock;

 private:
  detail::Detached start(std::string host, std::optional<Resolver::Resolved>& into) {
    Resolver::Resolved answer =
        co_await resolver_.resolve(std::move(host), clock, kNever, std::stop_token());
    into.emplace(std::move(answer));
  }
  Result<Addresses> look_up() {
    ++lookups_;
    const std::lock_guard lock(mutex_);
    if (address_ == "-") return Error(Errc::Resolve, "no response");
    return Addresses{address_};
  }

  std::mutex mutex_;
  std::string address_ = "192.0.2.1";
  std::atomic<int> lookups_ = 0;
  Resolver resolver_{[this](const std::string&) { return look_up(); }};
};

}  // namespace

TEST_CASE("a response is good for a minute") {
  Asking asking;
  CHECK(asking.address() == "192.0.2.1");
  asking.say("192.0.2.2");
  asking.clock.advance(59s);
  CHECK(asking.address() == "192.0.2.1");
  CHECK(asking.ask().use_until == Time(60s));
  CHECK(asking.lookups() == 1);
}

TEST_CASE("then it is used until the next is there, without waiting for that") {
  Asking asking;
  CHECK(asking.address() == "192.0.2.1");
  asking.say("192.0.2.2");
  asking.clock.advance(60s);
  const auto old = asking.ask();
  CHECK(old.addresses->at(0) == "192.0.2.1");
  CHECK(old.use_until <= asking.clock.now() + 1s);
  wait_until([&] { return asking.address() == "192.0.2.2"; });
  CHECK(asking.lookups() == 2);
}

TEST_CASE("name servers that fail do no harm to a name in use, for some minutes") {
  Asking asking;
  CHECK(asking.address() == "192.0.2.1");
  asking.say("-");
  for (int minute = 1; minute <= 5; ++minute) {
    asking.clock.advance(1min);
    const auto before = asking.lookups();
    // Again, for the last look-up may not be quite over.
    while (asking.lookups() == before) CHECK(asking.address() == "192.0.2.1");
  }
  asking.clock.advance(1min);
  CHECK(asking.address() == "no response");
  asking.say("192.0.2.2");
  CHECK(asking.address() == "192.0.2.2");  // a failure is not kept
}

TEST_CASE("a name is looked up again on request, unless its last look-up began just before") {
  Asking asking;
  CHECK(asking.address() == "192.0.2.1");
  asking.say("192.0.2.2");
  for (const auto wait : {0ms, 99ms}) {
    asking.clock.advance(wait);
    asking.renew();
    CHECK(asking.ask().use_until == Time(60s));  // no look-up is pending
  }
  asking.clock.advance(1ms);
  asking.renew();
  const auto meanwhile = asking.ask().use_until;
  CHECK((meanwhile == Time(200ms) || meanwhile == Time(60s + 100ms)));  // if it is over already
  wait_until([&] { return asking.address() == "192.0.2.2"; });
  CHECK(asking.ask().use_until == Time(60s + 100ms));
  asking.renew("unknown.test");
  asking.renew();  // it began at this very time
  CHECK(asking.ask().use_until == Time(60s + 100ms));
  CHECK(asking.lookups() == 2);
}

TEST_CASE("names that are not used any more are forgotten") {
  Asking asking;
  for (int i = 0; i < 1000; ++i) {
    CHECK(asking.address("host" + std::to_string(i)) == "192.0.2.1");
    asking.clock.advance(10s);
  }
  asking.say("192.0.2.2");
  CHECK(asking.address("host1") == "192.0.2.2");
}

TEST_CASE("names in use are not forgotten, however many there are") {
  Asking asking;
  for (int times = 0; times < 2; ++times) {
    for (int i = 0; i < 1000; ++i) asking.ask("host" + std::to_string(i));
  }
  CHECK(asking.lookups() == 1000);
}

TEST_CASE("a wait for a name ends with its limit or its stop") {
  const auto go = std::make_shared<std::atomic<bool>>(false);  // the look-up outlives its resolver
  ManualScheduler clock;
  {
    Resolver resolver([go](const std::string&) {
      go->wait(false);
      return Result<Addresses>(Addresses{"192.0.2.1"});
    });
    std::vector<Errc> ends;
    std::stop_source stop;
    const auto wait = [&](Time limit, std::stop_token token) -> detail::Detached {
      const auto answer = co_await resolver.resolve("x.test", clock, limit, std::move(token));
      ends.push_back(answer.addresses.error().code);
    };
    wait(Time(1s), std::stop_token());
    wait(kNever, stop.get_token());
    clock.advance(1s);
    stop.request_stop();
    clock.run();
    CHECK(ends == std::vector<Errc>{Errc::Timeout, Errc::Canceled});
    *go = true;
    go->notify_all();
  }
}
