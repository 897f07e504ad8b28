#include "log_text.hpp"

#include "lib/core/base/text.hpp"

#include <algorithm>
#include <array>

namespace httpretry {
namespace {

using Kind = LogLine::Kind;

// A line consists of `start`, possibly other words, `before_value`, and then the value: a number or
// a text. `after_number` must follow the number; if it is "", anything may follow the value.
struct Spelling {
  Kind kind;
  std::string_view start;
  std::string_view before_value = {};
  std::string_view after_number = {};
};

// Each comment names the versions whose source has these words. The test has lines that some of
// them wrote.
constexpr std::array kSpellings{
    Spelling{Kind::StreamOpened, "Using Stream ID: "},                  // up to 8.2
    Spelling{Kind::StreamOpened, "[HTTP/2] [", "", "] OPENED stream"},  // since 8.3
    Spelling{Kind::StreamRefused, "REFUSED_STREAM, "},                  // all
    Spelling{Kind::GoAway, "recveived GOAWAY, ", "last_stream="},       // up to 8.0
    Spelling{Kind::GoAway, "received GOAWAY, ", "last_stream="},        // since 8.1
    Spelling{Kind::ConnectionClosed, "Closing connection"},             // up to 8.8
    Spelling{Kind::ConnectionClosed, "closing connection #"},           // since 8.9
    Spelling{Kind::ConnectionKept, "Connection #", " left intact"},     // all
    Spelling{Kind::Tls, "SSL connection using "},                       // all
};

// Returns the fact that the log line reports if it has this spelling, and nullopt otherwise. With
// the spelling {GoAway, "received GOAWAY, ", "last_stream="}, the line "received GOAWAY, error=0,
// last_stream=5" gives a LogLine of the kind GoAway with the number 5.
std::optional<LogLine> read_as(const Spelling& spelling, std::string_view line) {
  if (!line.starts_with(spelling.start)) return std::nullopt;
  line.remove_prefix(spelling.start.size());
  LogLine result{.kind = spelling.kind};
  const auto position = line.find(spelling.before_value);  // 0 if `before_value` is ""
  if (position == line.npos) {
    // A GOAWAY without "last_stream=" still shows that the server closes the connection.
    return spelling.kind == Kind::GoAway ? std::optional(result) : std::nullopt;
  }
  line.remove_prefix(position + spelling.before_value.size());  // `line` begins with the value now
  // 0 if the value is a text. The spelling then has no `after_number`.
  const auto digit_count = std::min(line.find_first_not_of("0123456789"), line.size());
  if (!line.substr(digit_count).starts_with(spelling.after_number)) return std::nullopt;
  if (spelling.kind == Kind::StreamOpened || spelling.kind == Kind::GoAway) {
    result.number = to_number<std::uint32_t>(line.substr(0, digit_count));
  }
  result.text = line.substr(0, line.find('\n'));
  return result;
}

}  // namespace

std::optional<LogLine> read_log_line(std::string_view line) {
  for (const auto& spelling : kSpellings) {
    if (const auto result = read_as(spelling, line)) return result;
  }
  return std::nullopt;
}

}  // namespace httpretry
