// Reads the lines of libcurl's log. libcurl reports these facts in no other way, and its wording
// changes between versions. A line with unknown words is ignored, so a caller must interpret the
// absence of a line as "unknown", never as "no".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace httpretry {

struct LogLine {
  enum class Kind : std::uint8_t {
    StreamOpened,      // `number`: the ID of the request's HTTP/2 stream
    StreamRefused,     // the server refused the stream, and libcurl wants to resend the request
    GoAway,            // `number`: the last stream that the server processes, if the line names it
    ConnectionClosed,  // the connection of the request, or an idle one that makes room in the pool
    ConnectionKept,    // the connection of the request returned to the pool
    Tls,               // `text`: the TLS version and the cipher
  };
  Kind kind;
  std::optional<std::uint32_t> number = std::nullopt;
  std::string_view text = {};  // the text after the known words, up to the end of the line
};

// Returns nullopt for a line that reports none of these facts.
std::optional<LogLine> read_log_line(std::string_view line);

}  // namespace httpretry
