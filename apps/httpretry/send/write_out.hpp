// -w: curl's --write-out, with variables of our own.
#pragma once

#include <httpretry/http/request.hpp>
#include <httpretry/http/response.hpp>
#include <httpretry/retry/retry_policy.hpp>

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

class Download;

// A call that has ended.
struct EndedCall {
  const Request& request;
  const RetryPolicy& policy;  // by which it was retried
  const Outcome& outcome;
  std::size_t index;         // of the URL
  const Download* download;  // null: the body is in the outcome
  const Connections& connections;
  std::string label;  // begins each line about it; empty for the only URL
  bool explained;     // false: its failure is only counted
};

// The data that the variables of -w show.
struct Transferred : EndedCall {
  std::string file;  // where the response was written; empty: standard output
  int exit_status;
  std::uint64_t downloaded;  // bytes of the body
};

enum class Kind : std::uint8_t { Text, Number, Certificates, Json };

struct WriteOutVariable {
  std::string_view name;
  Kind kind;
  std::string (*text)(const Transferred&);
  bool of_connection = false;  // needs EndedCall::connections
};

// Null if there is no such variable.
const WriteOutVariable* write_out_variable(std::string_view name);

const Headers& headers_of(const Transferred& t);
// Returns the first value of a header, or an empty text.
std::string header(const Headers& headers, std::string_view name);

// Whether `format` needs EndedCall::connections.
bool needs_connections(std::string_view format);

// The text for standard output; `to_stderr` receives the text after %{stderr}.
std::string write_out(std::string_view format, const Transferred& about, std::string& to_stderr);

// The status line and the headers, as -i shows them.
std::string head_of(const Response& response);

}  // namespace httpretry::cli
