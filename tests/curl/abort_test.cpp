// The errors of exchanges that the library ended itself.
#include "lib/core/curl/errors.hpp"

#include <doctest/doctest.h>

#include <new>
#include <stdexcept>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

TEST_CASE("each reason to abort has its error code, libcurl's number and its words") {
  struct Row {
    Abort why;
    Errc code;
    bool permanent;
    int curl_code;
    const char* message;
  };
  const std::vector<Row> rows{
      {Abort::Canceled, Errc::Canceled, true, 42, "canceled"},
      {Abort::NoTimeLeft, Errc::Timeout, false, 28, "no time was left to send it"},
      {Abort::NoResponse, Errc::Timeout, false, 28, "no response after 1.50 s"},
      {Abort::ResponseIncomplete, Errc::Timeout, false, 28,
       "the response was not complete after 1.50 s"},
      {Abort::ConnectionDied, Errc::Receive, false, 56,
       "the reused connection was closed before a response arrived"},
      {Abort::NoMemory, Errc::Internal, true, 27, "out of memory"},
  };
  for (const auto& row : rows) {
    AbortReason reason;
    CHECK_FALSE(reason.set(row.why));
    const auto error = reason.error(1500ms);
    INFO(row.message);
    CHECK(error.code == row.code);
    CHECK(error.permanent == row.permanent);
    CHECK(error.curl_code == row.curl_code);
    CHECK(error.message == row.message);
  }
}

TEST_CASE("the first reason counts") {
  AbortReason reason;
  CHECK(reason.none());
  reason.set(Abort::BodyLeftOut);
  reason.set(Abort::ConnectionDied);
  reason.set_error(CURLE_WRITE_ERROR, Error(Errc::Internal, "disk full"));
  CHECK(reason.why() == Abort::BodyLeftOut);
  CHECK(reason.error(0s).code == Errc::Send);
}

TEST_CASE("an error of the user's keeps its code, and has libcurl's number where it had none") {
  AbortReason reason;
  reason.set_error(CURLE_WRITE_ERROR, Error(Errc::Canceled, "enough"));
  const auto error = reason.error(0s);
  CHECK(error.code == Errc::Canceled);
  CHECK(error.message == "enough");
  CHECK(error.curl_code == 23);
}

TEST_CASE("what user code throws is an error in its own words, want of memory is that") {
  const auto thrown = [](auto what) {
    AbortReason reason;
    try {
      throw what;
    } catch (...) {
      CHECK_FALSE(reason.set_thrown(CURLE_WRITE_ERROR, "the sink"));
    }
    return reason.error(0s).message;
  };
  CHECK(thrown(std::runtime_error("disk full")) == "the sink threw: disk full");
  CHECK(thrown(42) == "the sink threw: something that is not a std::exception");
  CHECK(thrown(std::bad_alloc()) == "out of memory");
}

TEST_CASE("what is longer than libcurl allows is too large, whatever the version calls it") {
  for (const auto code : {CURLE_FILESIZE_EXCEEDED, static_cast<CURLcode>(100)}) {
    CHECK(failure_of(code).code == Errc::TooLarge);
    CHECK(failure_of(code).permanent);
  }
  CHECK(failure_of(static_cast<CURLcode>(120)).code == Errc::Internal);
  CHECK(failure_of(static_cast<CURLcode>(120)).permanent);
}
