// --trace and --verbose: messages on standard error while a call runs.
#pragma once

#include <httpretry/middleware/builtin.hpp>

#include <memory>
#include <string>

namespace httpretry::cli {

// Returns an observer that prints a line when an attempt starts, and a line for each decision. Each
// line begins with `mark`.
std::shared_ptr<Observer> tracer(bool in_color, std::string mark);

// Returns a middleware that shows the connection of each attempt ("* "), and the first line and the
// headers of its request ("> ") and response ("< "), without secrets. Must come after `retry` in
// the chain.
MiddlewarePtr verbose();

}  // namespace httpretry::cli
