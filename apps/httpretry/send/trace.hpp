// --trace and --verbose: what happens, while it happens, on standard error.
#pragma once

#include <httpretry/middleware/builtin.hpp>

#include <memory>

namespace httpretry::cli {

// A line for each attempt as it begins, and one for each decision.
std::shared_ptr<Observer> tracer(bool in_color);

// The headers of each attempt, there ("> ") and back ("< "); stands below `retry`. Secrets are left
// out.
MiddlewarePtr verbose_stage();

}  // namespace httpretry::cli
