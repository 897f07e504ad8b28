// RandomStream: random numbers that are the same in each run with the same seed, and independent
// for each stream. PCG-XSH-RR of 64 bits with an output of 32.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace httpretry::simulation {

class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::uint64_t stream) : step_(2 * mixed(stream) + 1) {
    next();
    state_ += mixed(seed);
    next();
  }

  // Uniform in [0, 1).
  double uniform() {
    const std::uint64_t high = next();
    const std::uint64_t bits = high << 32U | next();
    return static_cast<double>(bits >> 11U) * 0x1.0p-53;
  }
  // With mean 1.
  double exponential() { return -std::log1p(-uniform()); }
  // With mean 0 and deviation 1; of each pair that Box and Muller's method gives, one.
  double normal() {
    const double radius = std::sqrt(2 * exponential());
    return radius * std::cos(6.283185307179586 * uniform());
  }

 private:
  std::uint32_t next() {
    const auto old = state_;
    state_ = old * 6364136223846793005U + step_;
    const auto shifted = static_cast<std::uint32_t>(((old >> 18U) ^ old) >> 27U);
    return std::rotr(shifted, static_cast<int>(old >> 59U));
  }
  // So that neighbouring numbers give streams that have nothing in common (splitmix64).
  static std::uint64_t mixed(std::uint64_t value) {
    value += 0x9E3779B97F4A7C15U;
    value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9U;
    value = (value ^ (value >> 27U)) * 0x94D049BB133111EBU;
    return value ^ (value >> 31U);
  }

  std::uint64_t state_ = 0;
  std::uint64_t step_;
};

}  // namespace httpretry::simulation
