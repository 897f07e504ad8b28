// -w: what curl's --write-out says about a transfer.
#pragma once

#include <httpretry/response.hpp>

#include <string>
#include <string_view>

namespace httpretry::cli {

struct Transferred {
  const Outcome& outcome;
  std::string_view method;
  std::string_view url;
  int exit_status;
};

// The text for standard output; `to_stderr` gets what stands behind %{stderr}.
std::string write_out(std::string_view format, const Transferred& about, std::string& to_stderr);

}  // namespace httpretry::cli
