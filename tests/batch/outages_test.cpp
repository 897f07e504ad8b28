#include "lib/extras/batch/outages.hpp"

#include "lib/extras/batch/call_watch.hpp"

#include <httpretry/batch/down_hosts.hpp>

#include <doctest/doctest.h>

#include <deque>
#include <string>
#include <vector>

using namespace httpretry;
using namespace httpretry::batch;

namespace {

using Names = std::vector<std::string>;

const std::string kHost = "https://a";

struct OutageFixture {
  // A call whose first send failed.
  const Flight& in_retry(const std::string& host = kHost) {
    const auto& call = flights.emplace_back(Job(), Prepared(Request::get(host)));
    outages.will_retry(host, call);
    return call;
  }
  [[nodiscard]] bool waits(const Flight& call) const {
    return outages.others_retry(kHost, call) != nullptr;
  }

  std::deque<Flight> flights;
  Outages outages;
};

}  // namespace

TEST_CASE("a host is left alone from its first failure to its next success") {
  OutageFixture all;
  all.outages.send_began(kHost);
  all.outages.send_began(kHost);
  CHECK(all.outages.blocked_hosts().empty());
  all.outages.send_ended(kHost);
  all.in_retry();
  CHECK(all.outages.blocked_hosts() == Names{kHost});
  all.in_retry("https://b");
  CHECK(all.outages.succeeded(kHost));
  CHECK(all.outages.blocked_hosts().empty());
}

TEST_CASE("with nothing on the wire, only three calls in a row that failed leave a host alone") {
  OutageFixture all;
  all.in_retry();
  all.in_retry();
  CHECK(all.outages.blocked_hosts().empty());
  all.in_retry();
  CHECK(all.outages.blocked_hosts() == Names{kHost});
}

TEST_CASE("three calls retry, and the others wait for one of them to succeed") {
  OutageFixture all;
  for (int i = 0; i < 5; ++i) all.in_retry();
  for (std::size_t i = 0; i < 3; ++i) CHECK_FALSE(all.waits(all.flights[i]));
  CHECK(all.waits(all.flights[3]));
  const auto change = all.outages.others_retry(kHost, all.flights[4]);
  REQUIRE(change);
  CHECK_FALSE(change->happened());
  all.outages.succeeded(kHost);
  CHECK(change->happened());
  for (const auto& call : all.flights) CHECK_FALSE(all.waits(call));
  CHECK_FALSE(all.outages.down(kHost));
}

TEST_CASE("a call that failed twice counts once") {
  OutageFixture all;
  const auto& call = all.in_retry();
  all.outages.will_retry(kHost, call);
  all.outages.will_retry(kHost, call);
  CHECK(all.outages.blocked_hosts().empty());
}

TEST_CASE("a call that gives up makes its host down, which lets all others send, until a success") {
  OutageFixture all;
  for (int i = 0; i < 5; ++i) all.in_retry();
  const auto change = all.outages.others_retry(kHost, all.flights[3]);
  CHECK(all.outages.ended(kHost, all.flights[1], true));
  CHECK(change->happened());
  CHECK(all.outages.down(kHost));
  CHECK(all.outages.blocked_hosts().empty());
  all.in_retry();
  CHECK_FALSE(all.waits(all.flights[3]));
  CHECK(all.outages.blocked_hosts().empty());
  CHECK(all.outages.succeeded(kHost));
  CHECK_FALSE(all.outages.down(kHost));
}

TEST_CASE("a call that never retried there, or before the last success, gives up nothing") {
  OutageFixture all;
  const auto& before = all.in_retry();
  all.outages.succeeded(kHost);
  all.in_retry();
  CHECK_FALSE(all.outages.ended(kHost, before, true));
  const auto& elsewhere = all.in_retry("https://b");
  CHECK_FALSE(all.outages.ended(kHost, elsewhere, true));
  CHECK_FALSE(all.outages.down(kHost));
}

TEST_CASE("a call that ends for another reason lets the others go on, and its host is not down") {
  OutageFixture all;
  for (int i = 0; i < 5; ++i) all.in_retry();
  const auto change = all.outages.others_retry(kHost, all.flights[3]);
  CHECK_FALSE(all.outages.ended(kHost, all.flights[1], false));
  CHECK(change->happened());
  CHECK_FALSE(all.outages.down(kHost));
}

TEST_CASE("only the calls to a host that is down are refused their retries") {
  DownHosts down;
  const auto may_retry = [&down](const std::string& url) {
    return down.take(Request::get(url), Classified(), Time{});
  };
  CHECK(may_retry("https://a/x"));
  down.set(kHost, /*down=*/false);
  CHECK(may_retry("https://a/x"));
  for (int turn = 0; turn < 2; ++turn) down.set(kHost, /*down=*/true);
  CHECK_FALSE(may_retry("https://a/x"));
  CHECK_FALSE(may_retry("https://a/y?z"));
  CHECK(may_retry("https://b/x"));
  CHECK(may_retry("http://a/x"));
  CHECK(may_retry("no URL"));
  down.set("https://b", /*down=*/false);
  CHECK_FALSE(may_retry("https://a/x"));
  down.set(kHost, /*down=*/false);
  CHECK(may_retry("https://a/x"));
}

TEST_CASE("nothing is known of a host to which nothing was sent") {
  OutageFixture all;
  const auto& call = all.in_retry("https://b");
  CHECK_FALSE(all.outages.succeeded(kHost));
  CHECK_FALSE(all.outages.down(kHost));
  CHECK_FALSE(all.waits(call));
  CHECK_FALSE(all.outages.ended(kHost, call, true));
  all.outages.send_ended(kHost);
  CHECK(all.outages.blocked_hosts().empty());
  // A host is forgotten when its last send has ended, and not before.
  all.outages.send_began(kHost);
  all.outages.send_began(kHost);
  all.outages.send_ended(kHost);
  CHECK(all.outages.succeeded(kHost));
  all.outages.send_ended(kHost);
  CHECK_FALSE(all.outages.succeeded(kHost));
}
