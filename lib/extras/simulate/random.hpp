// RandomStream: random numbers that depend only on the seed and the number of the stream. Streams
// are independent of each other. The generator is PCG-XSH-RR with 64 bits of state and 32 bits of
// output.
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
  // Exponential with mean 1.
  double exponential() { return -std::log1p(-uniform()); }
  // Normal with mean 0 and standard deviation 1: one of each pair of the Box-Muller method.
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
  // Mixes the bits (splitmix64), so that neighboring numbers give unrelated streams.
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
