#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <thread>

namespace httpretry {

// Waits until another thread or process has made `condition` true. Fails the test after a minute,
// so that it does not hang.
template <class Condition>
void wait_until(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) FAIL("it has not happened within a minute");
    std::this_thread::yield();
  }
}

}  // namespace httpretry
