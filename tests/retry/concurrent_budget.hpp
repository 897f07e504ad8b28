// A budget of kind concurrent, for tests.
#pragma once

#include <httpretry/retry/retry_policy.hpp>

#include <cstdint>

namespace httpretry_test {

inline httpretry::BudgetPolicy concurrent(std::int64_t thousandths, int min) {
  httpretry::BudgetPolicy policy;
  policy.kind = httpretry::BudgetPolicy::Kind::Concurrent;
  policy.ratio = thousandths;
  policy.min = min;
  return policy;
}

}  // namespace httpretry_test
