// The memory of coroutine frames. AddressSanitizer's builds have no free lists
// (lib/flow/frames.cpp).
#include "tests/retry/allocations.hpp"

#include <httpretry/flow/task.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace httpretry;

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kPooled = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool kPooled = false;
#else
constexpr bool kPooled = true;
#endif
#else
constexpr bool kPooled = true;
#endif

// How often memory is allocated for `count` frames of a size, once as many have been freed.
long allocations_of_the_next(std::size_t size, std::size_t count) {
  std::vector<void*> frames(count);
  for (auto& frame : frames) frame = detail::allocate_frame(size);
  for (auto* frame : frames) detail::free_frame(frame, size);
  const auto before = allocations();
  for (auto& frame : frames) frame = detail::allocate_frame(size);
  const auto made = allocations() - before;
  for (auto* frame : frames) detail::free_frame(frame, size);
  return made;
}

TEST_CASE("frames of up to 2040 bytes use the memory of freed frames" * doctest::skip(!kPooled)) {
  for (const std::size_t size : {1U, 8U, 9U, 16U, 17U, 800U, 2040U}) {
    CAPTURE(size);
    CHECK(allocations_of_the_next(size, 1) == 0);
    CHECK(allocations_of_the_next(size, 256) == 0);
  }
}

TEST_CASE("memory is not kept for larger frames, and for 256 of a size") {
  CHECK(allocations_of_the_next(2041, 1) == 1);
  CHECK(allocations_of_the_next(1000, 300) == (kPooled ? 44 : 300));
}

}  // namespace
