// RequestLine is a line of the input: one request, as JSON or as a bare URL.
#pragma once

#include "lib/core/json/detail/json.hpp"

#include <httpretry/batch/batch.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace httpretry::batch {

struct RequestLine {
  enum class Content : std::uint8_t { None, Bytes, Json, File };

  std::string id;  // empty: the number of the line
  std::string method = "GET";
  std::string url;
  Headers headers;
  Content content = Content::None;
  std::string body;    // the bytes, or the path of the file
  std::string policy;  // its name; empty: the policy of the endpoint
  std::vector<std::pair<std::string, std::string>> settings;  // "set": dotted keys with JSON
  bool wants_key = false;                                     // "key" is true or a text
  std::string key;                                            // that text; empty: a key is made
  std::string output;  // the file for the response body; empty: --bodies decides
  std::optional<WallTime> not_before;
  std::optional<WallTime> deadline;
  Priority priority = Priority::Normal;
  std::uint64_t cost = 1;  // taken from a rate that counts costs
  std::string tag;         // JSON; empty: none

  Position id_position;
  Position key_position;
  Position output_position;
  Position file_position;  // of "body_file"
  Position url_position;
  Position policy_position;  // of "policy" or "set"
  // The line without the member "last", which dead letters have. Empty: the line has no "last".
  std::string text_without_last;
  std::optional<Url> parsed_url;
};

namespace detail {

// Reads a text into `line`. If the text is wrong, adds problems in line 1 to `problems` and returns
// false. Does not open any file that the text names.
HTTPRETRY_API bool read_request_line(std::string_view text, InputFormat format, RequestLine& line,
                                     Problems& problems);
// Reads a line that was valid when it was added.
[[nodiscard]] HTTPRETRY_API RequestLine stored_line(std::string_view text, InputFormat format);

// Returns the line as JSON, with its id, with its key unless that is empty, and with `last` (JSON)
// as the last member "last". That is a dead letter. --export prints it without "last": `last` is
// empty.
HTTPRETRY_API std::string line_with(std::string_view text, const RequestLine& line,
                                    std::string_view id, std::string_view key,
                                    std::string_view last);

}  // namespace detail
using detail::line_with;
using detail::read_request_line;
using detail::stored_line;

}  // namespace httpretry::batch
