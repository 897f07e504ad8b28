#include "lib/core/curl/response_reader.hpp"

#include <doctest/doctest.h>

using namespace httpretry;

TEST_CASE("headers say where a body ends, or why they do not") {
  CHECK(length_problem(Headers()).empty());
  CHECK(length_problem(Headers{{"Content-Length", "0"}}).empty());
  CHECK(length_problem(Headers{{"Content-Length", "18446744073709551615"}}).empty());
  CHECK(length_problem(Headers{{"Transfer-Encoding", "chunked"}}).empty());
  CHECK(length_problem(Headers{{"Content-Length", "5"}, {"content-length", "5,5"}}).empty());
  CHECK(length_problem(Headers{{"Content-Length", "5"}, {"content-length", "6"}}) ==
        "its Content-Length is 5 and also 6");
  CHECK(length_problem(Headers{{"Content-Length", "18446744073709551616"}}) ==
        "its Content-Length \"18446744073709551616\" is not a number");
  CHECK(length_problem(Headers{{"Content-Length", "5,"}}) ==
        "its Content-Length \"\" is not a number");
  CHECK(length_problem(Headers{{"TRANSFER-ENCODING", "gzip"}, {"Content-Length", "5"}}) ==
        "it has both Content-Length and Transfer-Encoding; expected one");
}
