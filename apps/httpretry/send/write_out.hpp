// -w: curl's --write-out, with our own additional variables.
#pragma once

#include <httpretry/http/request.hpp>
#include <httpretry/http/response.hpp>
#include <httpretry/retry/retry_policy.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry::cli {

// The connections of all exchanges of a call.
struct Connections {
  ConnectionInfo last;
  int made = 0;
  std::uint64_t request_bytes = 0;
};

// The last request of a call, which redirects may have changed.
struct LastSend {
  std::string url;                 // without userinfo; empty if no request was to be sent
  std::string http_version = "0";  // of its response; "0" if unknown
};

class Download;

// A call that has ended.
struct EndedCall {
  const Request& request;
  const RetryPolicy& policy;  // the policy for its retries
  const Outcome& outcome;
  std::size_t index;         // of the URL
  const Download* download;  // null: the body is in the outcome
  const Connections& connections;
  const LastSend* last_send;  // null without -w
  std::string label;          // the start of each line about it; empty for the only URL
  bool explained;             // false: its failure is only counted
};

// The data that the variables of -w show.
struct Transferred : EndedCall {
  std::string file;  // the file with the response; empty: standard output
  int exit_status;
  std::uint64_t downloaded;                 // bytes of the body
  const std::vector<int>& keep_post_after;  // SendOptions::keep_post_after
};

enum class Kind : std::uint8_t { Text, Number, Certificates, Json };

struct WriteOutVariable {
  std::string_view name;
  Kind kind;
  std::string (*text)(const Transferred&);
  bool of_connection = false;  // needs EndedCall::connections
};

// Returns the variable with this name, or null.
const WriteOutVariable* write_out_variable(std::string_view name);

const Headers& headers_of(const Transferred& t);
// Returns the first value of a header, or "".
std::string header(const Headers& headers, std::string_view name);

// Returns whether `format` needs EndedCall::connections.
bool needs_connections(std::string_view format);

// Returns the text for standard output. `to_stderr` receives the text after %{stderr}.
std::string write_out(std::string_view format, const Transferred& about, std::string& to_stderr);

// Returns the status line and the headers, as -i shows them.
std::string head_of(const Response& response);
// Returns the same, also for a response that broke off. Returns "" if there was none.
std::string head_of(const Outcome& outcome);

}  // namespace httpretry::cli
