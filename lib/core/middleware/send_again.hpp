// SendAgain: resends a request that `retry` must not repeat unchanged. Such a request has one in
// its context.
#pragma once

#include <httpretry/chain/middleware.hpp>

#include <functional>

namespace httpretry {

// `retry` calls `send` instead of `next` for each attempt after the first.
struct SendAgain {
  std::function<Task<Outcome>(Request attempt, Call& call, Next next)> send;
};

}  // namespace httpretry
