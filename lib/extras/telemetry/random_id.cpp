// Generates the ids of traces and spans: each thread has a xoshiro256++ that the system seeds.
#include "call_trace.hpp"

#include <pthread.h>
#include <array>
#include <atomic>
#include <bit>
#include <random>

namespace httpretry::telemetry {
namespace {

// Counts forks, so that a child seeds its generators again and does not repeat its parent's ids.
std::atomic<unsigned> generation = 1;

// A xoshiro256++ generator. It is seeded at its first use, and again after a fork.
struct Generator {
  std::array<std::uint64_t, 4> state{};
  unsigned seeded_in = 0;  // the generation in which it was seeded; 0: never

  // Seeds from the system. The static variable registers `count_fork` once in the process.
  void seed() {
    const auto count_fork = [] { generation.fetch_add(1, std::memory_order_relaxed); };
    [[maybe_unused]] static const int registered =
        ::pthread_atfork(/*prepare=*/nullptr, /*parent=*/nullptr, /*child=*/count_fork);
    std::random_device device;
    for (auto& part : state) part = std::uint64_t{device()} << 32U | device();
    state[0] |= 1U;  // a state of all zeros would generate only zeros
    seeded_in = generation.load(std::memory_order_relaxed);
  }

  // Returns the next number of xoshiro256++, and seeds first if necessary.
  std::uint64_t next() {
    if (seeded_in != generation.load(std::memory_order_relaxed)) seed();
    const auto result = std::rotl(state[0] + state[3], 23) + state[0];
    const auto shifted = state[1] << 17U;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = std::rotl(state[3], 45);
    return result;
  }
};

thread_local constinit Generator generator;

}  // namespace

// Returns a random number other than 0.
std::uint64_t random_id() {
  for (;;) {
    if (const auto id = generator.next(); id != 0) return id;
  }
}

}  // namespace httpretry::telemetry
