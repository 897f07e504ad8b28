// What a user sees of an outcome.
#pragma once

#include "send_options.hpp"

#include <httpretry/response.hpp>

#include <cstddef>

namespace httpretry::cli {

// Writes the answer of the URL at `index` where it belongs, what is to be said to standard error,
// and answers with the exit status. `give_up` as for write_all.
int show(const SendOptions& options, const Request& request, const Outcome& outcome,
         std::size_t index, int give_up);

}  // namespace httpretry::cli
