// The status line on a terminal while calls run.
#pragma once

#include "send/options.hpp"

#include <httpretry/chain/observer.hpp>

#include <memory>

namespace httpretry::cli {

// Returns whether to show the status line: standard error is a terminal, and no flag turns it off.
bool shows_status_line(const SendOptions& options);

// Returns an observer that shows "attempt 2 of 4: 503, waiting 1.4 s (server asked 1 s)…". With -Z
// it shows how many calls are done, running and waiting.
std::shared_ptr<Observer> status_line(const SendOptions& options, const PolicySet& policies);

}  // namespace httpretry::cli
