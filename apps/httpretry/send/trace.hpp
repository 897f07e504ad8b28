// --trace and --verbose: messages on standard error while a call runs.
#pragma once

#include <httpretry/middleware/builtin.hpp>

#include <memory>

namespace httpretry::cli {

// A line when an attempt starts, and a line for each decision.
std::shared_ptr<Observer> tracer(bool in_color);

// Shows the headers of each request ("> ") and response ("< "), without secrets. Must come after
// `retry` in the chain.
MiddlewarePtr verbose();

}  // namespace httpretry::cli
