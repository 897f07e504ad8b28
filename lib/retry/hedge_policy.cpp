#include "lib/retry/policy_limits.hpp"

#include <httpretry/retry/hedge_policy.hpp>

#include <array>
#include <cmath>
#include <cstdio>

namespace httpretry {

std::string policy::quantile_text(double quantile) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "p%g", std::round(quantile * 1e5) / 1e3);
  return text.data();
}

}  // namespace httpretry
