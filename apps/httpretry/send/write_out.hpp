// -w: curl's --write-out, with variables of our own.
#pragma once

#include <httpretry/http/request.hpp>
#include <httpretry/http/response.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace httpretry::cli {

// The connections of a call, over all of its exchanges.
struct Connections {
  ConnectionInfo last;
  int made = 0;
  std::uint64_t request_bytes = 0;
};

struct Transferred {
  const Outcome& outcome;
  const Request& request;
  std::size_t index;  // of the URL
  std::string file;   // where the response was written; empty: standard output
  int exit_status;
  const Connections& connections;
  std::uint64_t downloaded;  // bytes of the body
};

// Whether `format` needs Transferred::connections.
bool needs_connections(std::string_view format);

// The text for standard output; `to_stderr` receives the text after %{stderr}.
std::string write_out(std::string_view format, const Transferred& about, std::string& to_stderr);

// The status line and the headers, as -i shows them.
std::string head_of(const Response& response);

}  // namespace httpretry::cli
