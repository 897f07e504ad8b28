// A line of the input: one request, as JSON or as a bare URL.
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
  std::string policy;  // the name of one; empty: that of the endpoint
  std::vector<std::pair<std::string, std::string>> settings;  // of "set": dotted keys, JSON
  bool wants_key = false;                                     // "key": true, or a value
  std::string key;                                            // the value; empty: one is made
  std::string output;  // where the response goes; empty: by --bodies
  std::optional<WallTime> not_before;
  std::optional<WallTime> deadline;
  Priority priority = Priority::Normal;
  std::string tag;  // JSON; empty: none

  Position id_position;
  Position key_position;
  Position output_position;
  Position file_position;  // of "body_file"
  Position url_position;
  Position policy_position;  // of "policy" or "set"
  // Without the member "last" that a dead letter has. Empty: as it stands.
  std::string text_without_last;
  std::optional<Url> parsed_url;
};

// Reads a line. Returns false, with problems at line 1 of `problems`, if the line is wrong. Reads
// no file.
HTTPRETRY_API bool read_request_line(std::string_view text, InputFormat format, RequestLine& to,
                                     Problems& problems);
// Returns a line that was right when it was added.
[[nodiscard]] HTTPRETRY_API RequestLine stored_line(std::string_view text, InputFormat format);

// The line with "id" and "key" (where it is not empty) written out, and with `last`, JSON, as its
// last member: what a dead letter is, and what --export prints (without `last`).
HTTPRETRY_API std::string line_with(std::string_view text, const RequestLine& line,
                                    std::string_view id, std::string_view key,
                                    std::string_view last);

}  // namespace httpretry::batch
