// What a user sees of an outcome.
#pragma once

#include "send_options.hpp"

#include <httpretry/response.hpp>

#include <string>

namespace httpretry::cli {

// Writes the answer to `target` ("-": standard output), what is to be said to standard error, and
// answers with the exit status. `give_up` as for write_all.
int show(const SendOptions& options, const Request& request, const Outcome& outcome,
         const std::string& target, int give_up);

}  // namespace httpretry::cli
