// The status line on a terminal while calls run.
#pragma once

#include "send/options.hpp"

#include <httpretry/chain/observer.hpp>

#include <memory>

namespace httpretry::cli {

// Whether to show it: standard error is a terminal, and no flag says otherwise.
bool shows_status_line(const SendOptions& options);

// "attempt 2 of 4: 503, waiting 1.4 s (server asked 1 s)…". With -Z: how many calls are done,
// running and waiting.
std::shared_ptr<Observer> status_line(const SendOptions& options, const PolicySet& policies);

}  // namespace httpretry::cli
