// The lines were written by libcurl 7.88.1, 8.14.1 and 8.23.0, except where a comment says
// "source": those have the words of libcurl's source at that version.
#include "lib/core/curl/log_text.hpp"

#include <doctest/doctest.h>

#include <array>

using namespace httpretry;

namespace {

using enum LogLine::Kind;

struct Case {
  std::string_view line;
  LogLine::Kind kind;
  std::optional<std::uint32_t> number = std::nullopt;
};

constexpr std::array kCases{
    // 7.88.1
    Case{"Using Stream ID: 5 (easy handle 0x5587e0)\n", StreamOpened, 5},
    Case{"REFUSED_STREAM, retrying a fresh connect\n", StreamRefused},
    Case{"recveived GOAWAY, error=0, last_stream=3\n", GoAway, 3},
    Case{"recveived GOAWAY, error=0, last_stream=2147483647\n", GoAway, 2147483647},
    Case{"Closing connection 2\n", ConnectionClosed},
    Case{"Connection #0 to host 127.0.0.1 left intact\n", ConnectionKept},
    // source of 8.1 and 8.2
    Case{"received GOAWAY, error=0, last_stream=3\n", GoAway, 3},
    Case{"Using Stream ID: 5\n", StreamOpened, 5},
    Case{"Closing connection\n", ConnectionClosed},
    // 8.14.1 and 8.23.0
    Case{"[HTTP/2] [13] OPENED stream for https://127.0.0.1:4433/hello\n", StreamOpened, 13},
    Case{"received GOAWAY, error=0, last_stream=1\n", GoAway, 1},
    Case{"closing connection #7\n", ConnectionClosed},
    Case{"Connection #12 to host 127.0.0.1 left intact\n", ConnectionKept},
    // 8.23.0
    Case{"Connection #12 to host 127.0.0.1:4433 left intact\n", ConnectionKept},
};

}  // namespace

TEST_CASE("each version's words for a stream, a GOAWAY and a connection's end are understood") {
  for (const auto& expected : kCases) {
    CAPTURE(expected.line);
    const auto line = read_log_line(expected.line);
    REQUIRE(line);
    CHECK(line->kind == expected.kind);
    CHECK(line->number == expected.number);
  }
}

TEST_CASE("the TLS version and the cipher are the rest of their line") {
  auto line = read_log_line("SSL connection using TLSv1.3 / TLS_AES_256_GCM_SHA384\n");  // 7.88.1
  REQUIRE(line);
  CHECK(line->kind == LogLine::Kind::Tls);
  CHECK(line->text == "TLSv1.3 / TLS_AES_256_GCM_SHA384");
  line = read_log_line(  // 8.14.1 and 8.23.0
      "SSL connection using TLSv1.3 / TLS_AES_256_GCM_SHA384 / X25519MLKEM768 / UNDEF\n");
  REQUIRE(line);
  CHECK(line->text == "TLSv1.3 / TLS_AES_256_GCM_SHA384 / X25519MLKEM768 / UNDEF");
}

TEST_CASE("a GOAWAY without a number that is understood names no last stream") {
  for (const std::string_view text :
       {"received GOAWAY, error=0\n", "received GOAWAY, error=0, last_stream=-1\n",
        "received GOAWAY, error=0, last_stream=99999999999\n"}) {
    CAPTURE(text);
    const auto line = read_log_line(text);
    REQUIRE(line);
    CHECK(line->kind == GoAway);
    CHECK_FALSE(line->number);
  }
}

TEST_CASE("a line that only contains the words means nothing") {
  for (const std::string_view text :
       {"", "\n", "[HTTP/2] [1] [x-note: OPENED stream for https://example.com/]\n",
        "[HTTP/2] [OPENED stream\n", "> x: received GOAWAY, error=0, last_stream=1\n",
        "Connection #0 seems to be dead\n", "Re-using existing connection #0\n",
        "SSL connection timeout\n", "Stream opened with ID 5\n"}) {
    CAPTURE(text);
    CHECK_FALSE(read_log_line(text));
  }
}
