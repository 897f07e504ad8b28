// Chance for property tests: seeded, and the seed is printed when a test fails. HTTPRETRY_SEED in
// the environment repeats a run.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <random>

namespace httpretry_test {

class Random {
 public:
  explicit Random(std::uint64_t fallback) : seed_(chosen(fallback)), engine_(seed_) {}

  [[nodiscard]] std::uint64_t seed() const { return seed_; }
  double unit() { return std::uniform_real_distribution<double>(0, 1)(engine_); }
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }
  bool coin() { return between(0, 1) == 1; }
  template <class Enum>
  Enum one_of(Enum last) {
    return static_cast<Enum>(between(0, static_cast<std::int64_t>(last)));
  }

 private:
  static std::uint64_t chosen(std::uint64_t fallback) {
    const char* given = std::getenv("HTTPRETRY_SEED");  // NOLINT(concurrency-mt-unsafe)
    return given != nullptr ? std::strtoull(given, nullptr, 10) : fallback;
  }

  std::uint64_t seed_;
  std::mt19937_64 engine_;
};

}  // namespace httpretry_test
