// SendAgain: how a request is sent again. In the context of a request that `retry` must not repeat
// as it is.
#pragma once

#include <httpretry/chain/middleware.hpp>

#include <functional>

namespace httpretry {

// Used for each attempt after the first, instead of `next`.
struct SendAgain {
  std::function<Task<Outcome>(Request attempt, Call& call, Next next)> send;
};

}  // namespace httpretry
