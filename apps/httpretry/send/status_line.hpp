// The live line: what is going on, on a terminal, over and over on one line.
#pragma once

#include "send/send_options.hpp"

#include <httpretry/flow/observer.hpp>

#include <memory>

namespace httpretry::cli {

// Whether there is somebody to show it to: standard error is a terminal, and no flag forbids it.
bool shows_live_line(const SendOptions& options);

// "attempt 2 of 4: 503, waiting 1.4 s (server asked 1 s)…"; for several URLs at once, how many are
// done, under way and waiting. `policies` says of how many attempts.
std::shared_ptr<Observer> live_line(const SendOptions& options, const PolicySet& policies);

}  // namespace httpretry::cli
