// The time at which the tests of single guards begin.
#pragma once

#include <httpretry/http/time.hpp>

namespace httpretry::guard {

constexpr Time kStart{std::chrono::hours(1)};

}  // namespace httpretry::guard
