// Which calls the threads of the client send by themselves.
#include "lib/extras/batch/call_watch.hpp"

#include <doctest/doctest.h>

#include <deque>

using namespace httpretry;
using namespace httpretry::batch;

namespace {

struct Fixture {
  Flight* flight(std::string host, bool unsafe = false) {
    Job job;
    job.host = std::move(host);
    Prepared prepared(Request::get("http://example.test/"));
    prepared.unsafe = unsafe;
    return &flights.emplace_back(std::move(job), std::move(prepared));
  }
  // So many are on their way, and `ready` wait for their turn.
  std::vector<Flight*> send(std::vector<Flight*> ready, std::size_t on_way, std::size_t most) {
    const auto all = on_way + ready.size() + watch->ready();
    return watch->send_ready(std::move(ready), all, most);
  }
  CallWatch::News take() { return watch->take(Time::min()); }

  std::deque<Flight> flights;
  std::shared_ptr<CallWatch> watch = std::make_shared<CallWatch>();
};

Outcome good() {
  Response response;
  response.status = 200;
  return response;
}
Outcome bad() { return Error(Errc::Timeout, "too late"); }

}  // namespace

TEST_CASE("as many calls are sent at once as may be on their way, the others when one ends well") {
  Fixture all;
  auto* const a = all.flight("a");
  auto* const b = all.flight("b");
  auto* const c = all.flight("c");
  CHECK(all.send({a, b, c}, 0, 1) == std::vector{a});
  CHECK(all.watch->ready() == 2);
  CHECK(all.watch->ended(*a, good()) == b);
  CHECK(all.watch->ended(*b, good()) == c);
  CHECK(all.watch->ended(*c, good()) == nullptr);
  CHECK(all.take().ended.size() == 3);
}

TEST_CASE("after a call that did not end well, nothing is sent until it is judged") {
  Fixture all;
  auto* const a = all.flight("a");
  auto* const b = all.flight("a");
  auto* const c = all.flight("a");
  auto* const d = all.flight("a");
  CHECK(all.send({a, b, c, d}, 0, 2) == std::vector{a, b});
  CHECK(all.watch->ended(*a, bad()) == nullptr);
  CHECK(all.watch->ended(*b, good()) == nullptr);
  CHECK(all.take().needs_judgment);
  CHECK(all.send({}, 0, 1) == std::vector{c});
  CHECK(all.watch->ended(*c, good()) == d);
}

TEST_CASE("what ends while the thread of the run judges is sent by that thread") {
  Fixture all;
  auto* const a = all.flight("a");
  auto* const b = all.flight("a");
  auto* const c = all.flight("a");
  all.send({a, b, c}, 0, 2);
  CHECK(all.watch->ended(*a, bad()) == nullptr);
  CHECK(all.take().ended.size() == 1);
  CHECK(all.watch->ended(*b, good()) == nullptr);
  CHECK(all.send({}, 0, 2) == std::vector{c});
}

TEST_CASE("what must not be sent twice is left to the thread of the run") {
  Fixture all;
  auto* const a = all.flight("a");
  auto* const b = all.flight("a", true);
  all.send({a, b}, 0, 1);
  CHECK(all.watch->ended(*a, good()) == nullptr);
  CHECK(all.send({}, 0, 1) == std::vector{b});
}

TEST_CASE("after finish_up nothing more is sent") {
  Fixture all;
  auto* const a = all.flight("a");
  auto* const b = all.flight("a");
  all.send({a, b}, 0, 1);
  all.watch->ask(&CallWatch::News::finish_up);
  CHECK(all.watch->ended(*a, good()) == nullptr);
  CHECK(all.send({}, 0, 1).empty());
  CHECK(all.watch->withdraw([](const Flight&) { return true; }) == std::vector{b});
  CHECK(all.watch->ready() == 0);
}

TEST_CASE("calls to a host that has to be left alone are taken back") {
  Fixture all;
  auto* const a = all.flight("a");
  auto* const b = all.flight("b");
  auto* const c = all.flight("a");
  CHECK(all.send({a, b, c}, 1, 1).empty());
  CHECK(all.watch->withdraw([](const Flight& one) { return one.job.host == "a"; }) ==
        std::vector{a, c});
  CHECK(all.send({}, 0, 1) == std::vector{b});
}
