#include "lib/curl/watchdog.hpp"

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

using namespace httpretry;

// At the moment of the fork, the thread of the parent has the lock or waits for its condition.
TEST_CASE("a forked child watches loops of its own") {
  const Heartbeat of_parent;
  for (int i = 0; i < 20; ++i) {
    const auto child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      ::alarm(30);  // a child that hangs ends by a signal
      for (int k = 0; k < 300; ++k) const Heartbeat of_child;
      ::_exit(0);
    }
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(status == 0);
  }
}
