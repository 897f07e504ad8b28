// Reads the lines of libcurl's log. libcurl has no other way to report these facts, and it changes
// the wording from version to version. A line with unknown words means nothing, so a caller that
// waits for it must treat its absence as "unknown", never as "no".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace httpretry {

struct LogLine {
  enum class Kind : std::uint8_t {
    StreamOpened,      // `number`: the ID of the request's HTTP/2 stream
    StreamRefused,     // the server refused the stream, and libcurl wants to send the request again
    GoAway,            // `number`: the last stream that the server processes, if the line names it
    ConnectionClosed,  // the connection of the request, or an idle one to make room in the pool
    ConnectionKept,    // the connection of the request went back to the pool
    Tls,               // `text`: the TLS version and the cipher
  };
  Kind kind;
  std::optional<std::uint32_t> number = std::nullopt;
  std::string_view text = {};  // what follows the known words, up to the end of the line
};

std::optional<LogLine> read_log_line(std::string_view line);

}  // namespace httpretry
