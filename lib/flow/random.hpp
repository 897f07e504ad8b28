// The default for ClientOptions::random.
#pragma once

#include <random>

namespace httpretry {

// Uniform in [0, 1), from a generator of this thread with a seed from the system.
inline double system_random() {
  thread_local std::mt19937_64 generator{[] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }()};
  return static_cast<double>(generator() >> 11U) * 0x1.0p-53;
}

}  // namespace httpretry
