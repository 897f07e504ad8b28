// What a user sees of an outcome.
#pragma once

#include "send/download.hpp"
#include "send/send_options.hpp"
#include "send/write_out.hpp"

#include <httpretry/http/response.hpp>

#include <cstddef>

namespace httpretry::cli {

// A call that has ended.
struct Ended {
  const Request& request;
  const Outcome& outcome;
  std::size_t index;         // of the URL
  const Download* download;  // null: the body is in the outcome
  const Connections& connections;
};

// Writes the answer where it belongs, what is to be said to standard error, and answers with the
// exit status. `give_up` as for write_all.
int show(const SendOptions& options, const Ended& ended, int give_up);

}  // namespace httpretry::cli
