// Which line of a response is its status line, and what it must look like.
#include "canned_server.hpp"
#include "files.hpp"
#include "wire.hpp"

#include <httpretry/body/sink.hpp>

using namespace httpretry;

namespace {

// A body in one chunk, with a trailer.
std::string with_trailer(const std::string& status_line, const std::string& trailer) {
  return status_line + "\r\nX-Id: 7\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n" +
         trailer + "\r\n\r\n";
}

}  // namespace

TEST_CASE("what is no status line of HTTP is an error, and never a success") {
  for (const std::string line :
       {"http/1.1 503 Busy", "HTTP/1.1 099 Low", "HTTP/2 50312", "HTTP/2 -5", "HTTP/2 0x1F",
        "HTTP/1.1 \t200 OK", "HTTP/1.1  200 OK", "HTTP/1.1 101 Switching Protocols",
        "HTTP/1.1 2000", "HTTP/1.1 -20", "HTTP/1.1"}) {
    CAPTURE(line);
    const CannedServer server({line + "\r\nContent-Length: 2\r\n\r\nok"});
    auto client = Client::bare();
    for (int round = 1; round <= 2; ++round) {
      const auto outcome = client.get(server.url());
      REQUIRE_FALSE(outcome);
      CHECK(outcome.error().code == Errc::Protocol);
      CHECK(server.connections() == round);  // the first is not used again
    }
  }
}

TEST_CASE("a status that libcurl and the library read alike is a response") {
  for (const std::string line :
       {"HTTP/1.1 299", "HTTP/1.0 299 Fine", "HTTP/1.1 299fine", "HTTP/1.1 299 "}) {
    CAPTURE(line);
    const CannedServer server({line + "\r\nContent-Length: 2\r\n\r\nok"});
    const auto outcome = Client::bare().get(server.url());
    REQUIRE(outcome);
    CHECK(outcome->status == 299);
    CHECK(outcome->body == "ok");
  }
}

TEST_CASE("a trailer that looks like a status line changes nothing") {
  for (const std::string trailer :
       {"HTTP/1.1 200 OK: x", "HTTP/1.1 200 OK: x\r\nX-Id: 8", "http/1.1 200 OK: x"}) {
    CAPTURE(trailer);
    const CannedServer server({with_trailer("HTTP/1.1 500 Oops", trailer)});
    auto client = Client::bare();
    for (int round = 0; round < 2; ++round) {
      const auto outcome = client.get(server.url());
      REQUIRE(outcome);
      CHECK(outcome->status == 500);
      CHECK(outcome->reason == "Oops");
      CHECK(outcome->body == "ok");
      CHECK(outcome->headers.get_all("X-Id") == std::vector<std::string_view>{"7"});
    }
    CHECK(server.connections() == 1);
  }
}

TEST_CASE("a request that was answered is not sent again because of a trailer") {
  for (const std::string trailer :
       {"HTTP/1.1 429 Slow: x", "HTTP/1.1 429 Slow: x\r\nRetry-After: 0"}) {
    CAPTURE(trailer);
    const CannedServer server({with_trailer("HTTP/1.1 200 OK", trailer)});
    ClientOptions options;
    options.middlewares = {retry(hasty())};
    const auto outcome = Client(options).post(server.url(), "");
    REQUIRE(outcome);
    CHECK(outcome->status == 200);
    CHECK(outcome->history.attempts.size() == 1);
    CHECK(server.requests() == 1);
  }
}

TEST_CASE("a file is what the response brought before its trailer") {
  const CannedServer server({with_trailer("HTTP/1.1 200 OK", "HTTP/1.1 206 Part: x")});
  const TemporaryDirectory directory;
  auto request = Request::get(server.url());
  request.edit_options().sink = save_to(directory.file("saved"), FileOptions());
  const auto outcome = Client::bare().send(request);
  REQUIRE(outcome);
  CHECK(outcome->status == 200);
  CHECK(read_file(directory.file("saved")) == "ok");
}

TEST_CASE("interim responses come before the one that counts") {
  const CannedServer server(
      {"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" +
       with_trailer("HTTP/1.1 200 OK", "HTTP/1.1 500 No: x")});
  const auto outcome = Client::bare().get(server.url());
  REQUIRE(outcome);
  CHECK(outcome->status == 200);
  CHECK_FALSE(outcome->headers.contains("Link"));
}

TEST_CASE("a redirect whose Location has a control character is an error, and no success") {
  for (const std::string location : {"Location: /\x01", "location: /a\r\n b\x7f"}) {
    CAPTURE(location);
    for (const std::string status : {"302 Found", "200 OK"}) {
      CAPTURE(status);
      const CannedServer server(
          {"HTTP/1.1 " + status + "\r\n" + location + "\r\nContent-Length: 2\r\n\r\nok"});
      const auto outcome = Client({redirect(), retry(hasty())}).get(server.url());
      REQUIRE(outcome.has_value() == (status == "200 OK"));
      if (outcome) continue;  // only a redirect needs a Location
      const auto& error = outcome.error();
      CHECK(error.code == Errc::Protocol);
      CHECK(error.permanent);
      CHECK(error.curl_code == 3);
      CHECK(error.status == 302);
      CHECK(error.exchange.sent == Sent::Answered);
      CHECK(error.message.ends_with("the Location of the redirect contains a control character"));
      CHECK(error.history.attempts.size() == 1);
    }
  }
}
