#include "lib/core/curl/poll_poller.hpp"
#if __has_include(<sys/epoll.h>)
#include "lib/core/curl/epoll_poller.hpp"
#endif

#include <doctest/doctest.h>

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <vector>

using namespace httpretry;

namespace {

#if __has_include(<sys/epoll.h>)
#define HTTPRETRY_POLLERS EpollPoller, PollPoller
#else
#define HTTPRETRY_POLLERS PollPoller
#endif

// Two connected sockets.
struct Pair {
  Pair() { REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0); }
  ~Pair() {
    for (const int fd : ends) ::close(fd);
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  void fill() const { REQUIRE(::write(ends[1], "x", 1) == 1); }
  void drain() const {
    char byte = 0;
    REQUIRE(::read(ends[0], &byte, 1) == 1);
  }
  [[nodiscard]] int fd() const { return ends[0]; }

  std::array<int, 2> ends{};
};

// Returns the events that the next wait reports for `fd` (CURL_CSELECT_IN and so on), or 0.
template <class Poller>
int events_of(Poller& poller, int fd, int timeout_ms = 0) {
  std::array<typename Poller::Event, 8> events{};
  const auto count = poller.wait(events, timeout_ms);
  for (std::size_t i = 0; i < count; ++i) {
    if (Poller::descriptor_of(events[i]) == fd) return Poller::what_of(events[i]);
  }
  return 0;
}

TEST_CASE_TEMPLATE("a poller reports what was asked for, while it lasts", Poller,
                   HTTPRETRY_POLLERS) {
  Poller poller("failure");
  const Pair pair;
  REQUIRE(poller.watch(pair.fd(), CURL_POLL_IN));
  CHECK(events_of(poller, pair.fd()) == 0);
  pair.fill();
  CHECK(events_of(poller, pair.fd()) == CURL_CSELECT_IN);
  CHECK(events_of(poller, pair.fd()) == CURL_CSELECT_IN);
  REQUIRE(poller.watch(pair.fd(), CURL_POLL_INOUT));
  CHECK(events_of(poller, pair.fd()) == (CURL_CSELECT_IN | CURL_CSELECT_OUT));
  REQUIRE(poller.watch(pair.fd(), CURL_POLL_OUT));
  CHECK(events_of(poller, pair.fd()) == CURL_CSELECT_OUT);
  REQUIRE(poller.watch(pair.fd(), CURL_POLL_IN));
  pair.drain();
  CHECK(events_of(poller, pair.fd(), 20) == 0);
}

TEST_CASE_TEMPLATE("a poller reports the end of a connection as an error, too", Poller,
                   HTTPRETRY_POLLERS) {
  Poller poller("failure");
  const Pair pair;
  REQUIRE(poller.watch(pair.fd(), CURL_POLL_IN));
  REQUIRE(::shutdown(pair.ends[1], SHUT_RDWR) == 0);
  CHECK(events_of(poller, pair.fd()) == (CURL_CSELECT_IN | CURL_CSELECT_ERR));
}

TEST_CASE_TEMPLATE("a poller forgets", Poller, HTTPRETRY_POLLERS) {
  Poller poller("failure");
  const Pair pair;
  const Pair other;
  pair.fill();
  other.fill();
  REQUIRE(poller.watch(pair.fd(), CURL_POLL_IN));
  REQUIRE(poller.watch(other.fd(), CURL_POLL_IN));
  poller.forget(pair.fd());
  CHECK(events_of(poller, pair.fd()) == 0);
  CHECK(events_of(poller, other.fd()) == CURL_CSELECT_IN);
  poller.forget(pair.fd());  // changes nothing
  REQUIRE(poller.watch(pair.fd(), CURL_POLL_IN));
  CHECK(events_of(poller, pair.fd()) == CURL_CSELECT_IN);
}

TEST_CASE_TEMPLATE("a number that was closed and used again is a new descriptor", Poller,
                   HTTPRETRY_POLLERS) {
  Poller poller("failure");
  int fd = -1;
  for (const bool announced : {true, false}) {
    {
      const Pair pair;
      pair.fill();
      fd = pair.fd();
      REQUIRE(poller.watch(fd, CURL_POLL_IN));
      if (announced) poller.forget(fd);
    }
    CHECK(events_of(poller, fd) == 0);
    const Pair next;
    REQUIRE(next.fd() == fd);
    next.fill();
    CHECK(events_of(poller, fd) == 0);
    REQUIRE(poller.watch(fd, CURL_POLL_IN));
    CHECK(events_of(poller, fd) == CURL_CSELECT_IN);
  }
}

TEST_CASE_TEMPLATE("with more events than room, each has its turn", Poller, HTTPRETRY_POLLERS) {
  Poller poller("failure");
  std::vector<std::unique_ptr<Pair>> pairs;
  for (int i = 0; i < 7; ++i) {
    pairs.push_back(std::make_unique<Pair>());
    pairs.back()->fill();
    REQUIRE(poller.watch(pairs.back()->fd(), CURL_POLL_IN));
  }
  std::set<int> reported;
  for (int i = 0; i < 4; ++i) {
    std::array<typename Poller::Event, 2> events{};
    REQUIRE(poller.wait(events, 0) >= 1);
    for (const auto& event : events) reported.insert(Poller::descriptor_of(event));
  }
  for (const auto& pair : pairs) CHECK(reported.contains(pair->fd()));
}

TEST_CASE_TEMPLATE("a poller's descriptor is readable while there are events", Poller,
                   HTTPRETRY_POLLERS) {
  if constexpr (Poller::kHasDescriptor) {
    Poller poller("failure");
    const Pair pair;
    PollPoller outer("failure");
    REQUIRE(poller.watch(pair.fd(), CURL_POLL_IN));
    REQUIRE(outer.watch(poller.descriptor(), CURL_POLL_IN));
    CHECK(events_of(outer, poller.descriptor()) == 0);
    pair.fill();
    CHECK(events_of(outer, poller.descriptor()) == CURL_CSELECT_IN);
  } else {
    CHECK(Poller("failure").descriptor() == -1);
  }
}

}  // namespace
