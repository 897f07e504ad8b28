// Where a body ends: lengths that contradict each other, and header lines that no response may
// have.
#include "canned_server.hpp"
#include "wire.hpp"

#include "tests/libcurl_version.hpp"

using namespace httpretry;

namespace {

const std::string kOk = "HTTP/1.1 200 OK\r\n";

// The error of a GET; its connection is not used again.
Error refused(const std::string& answer, const char* method = "GET") {
  const CannedServer server({answer});
  ClientOptions options;
  options.middlewares = {};
  options.connection.max_headers = 256 << 10;
  Client client(options);
  Error error(Errc::Internal, "none");
  for (int round = 1; round <= 2; ++round) {
    Request request(method, server.url());
    request.edit_options().stall_timeout = std::chrono::seconds(10);  // fails, rather than waits
    auto outcome = client.send(request);
    REQUIRE_FALSE(outcome);
    CHECK(server.connections() == round);
    error = std::move(outcome).error();
  }
  return error;
}

}  // namespace

TEST_CASE("two lengths of one response are an error of the protocol") {
  for (const std::string headers :
       {"Content-Length: 10\r\nContent-Length: 2", "Content-Length: 2\r\nContent-Length: 10",
        "Content-Length: 2, 10", "Content-Length: 10, 2",
        "Content-Length: 2\r\nX: y\r\ncontent-length: 3", "Content-Length: 2,",
        "Content-Length: ,2", "Content-Length: 2 2", "Content-Length: +2", "Content-Length: 2x",
        "Content-Length: ", "Content-Length: -2", "Content-Length: 2\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 2",
        "Transfer-Encoding: identity\r\nContent-Length: 2"}) {
    CAPTURE(headers);
    const auto error = refused(kOk + headers + "\r\n\r\nokokokokok");
    CHECK(error.code == Errc::Protocol);
    CHECK_FALSE(error.permanent);
  }
}

TEST_CASE("an error of the protocol says which lengths contradict each other") {
  // libcurl 8.17 and later may be the first to refuse them.
  const bool ours = libcurl_before(0x081100);
  auto error = refused(kOk + "Content-Length: 10\r\nContent-Length: 2\r\n\r\nok");
  CHECK(error.message.find(ours ? "Content-Length is 10 and also 2" : "Invalid Content-Length") !=
        std::string::npos);
  error = refused(kOk + "Content-Length: 2x\r\n\r\nok");
  CHECK(error.message.find(ours ? "Content-Length \"2x\" is not a number"
                                : "Invalid Content-Length") != std::string::npos);
  error = refused(kOk + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nok");
  CHECK(error.message.find("both Content-Length and Transfer-Encoding") != std::string::npos);
}

TEST_CASE("the same length twice is a length") {
  for (const std::string headers :
       {"Content-Length: 2, 2", "Content-Length: 2\r\nContent-Length: 2", "Content-Length: 02, 2",
        "Content-Length: 2 ,\t2"}) {
    CAPTURE(headers);
    const CannedServer server({kOk + headers + "\r\n\r\nok"});
    auto client = Client::bare();
    for (int round = 0; round < 2; ++round) {
      const auto outcome = client.get(server.url());
      REQUIRE(outcome);
      CHECK(outcome->body == "ok");
    }
    CHECK(server.connections() == 1);
  }
}

// RFC 9112 §6.3: these end with their headers, whatever the headers say.
TEST_CASE("lengths do not matter where a response has no body") {
  struct Row {
    const char* method;
    const char* answer;
  };
  for (const auto& row :
       {Row{"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n"},
        Row{"GET", "HTTP/1.1 304 Same\r\nContent-Length: 2\r\nContent-Length: 10\r\n\r\n"},
        Row{"GET", "HTTP/1.1 204 None\r\nContent-Length: 2, 10\r\n\r\n"},
        Row{"GET",
            "HTTP/1.1 103 Hints\r\nContent-Length: 2, 10\r\n\r\nHTTP/1.1 204 None\r\n\r\n"}}) {
    CAPTURE(std::string(row.answer));
    const CannedServer server({row.answer});
    auto client = Client::bare();
    for (int round = 0; round < 2; ++round) CHECK(client.send(Request(row.method, server.url())));
    CHECK(server.connections() == 1);
  }
  // libcurl 8.17 and later read the length all the same.
  const std::string head = kOk + "Content-Length: 2, 10\r\n\r\n";
  if (!libcurl_before(0x081100)) {
    CHECK(refused(head, "HEAD").code == Errc::Protocol);
    return;
  }
  const CannedServer server({head});
  auto client = Client::bare();
  for (int round = 0; round < 2; ++round) CHECK(client.send(Request("HEAD", server.url())));
  CHECK(server.connections() == 1);
}

TEST_CASE("a proxy that refuses with two lengths is not asked again on that connection") {
  const CannedServer proxy(
      {"HTTP/1.1 407 Who\r\nProxy-Authenticate: Digest realm=\"x\", nonce=\"y\"\r\n"
       "Content-Length: 2, 10\r\n\r\nok"});
  ClientOptions options;
  options.middlewares = {};
  options.connection.proxy.url = proxy.url();
  options.connection.proxy.credentials.emplace(Credentials::Scheme::Digest, "ann", "secret");
  const auto outcome = Client(options).get("https://127.0.0.1:1/");
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Protocol);
  CHECK(outcome.error().exchange.sent == Sent::Never);
  CHECK(proxy.requests() == 1);
}

TEST_CASE("what no response may look like is an error of the protocol") {
  for (const std::string& answer :
       {kOk + " folded: 1\r\nContent-Length: 2\r\n\r\nok",
        kOk + "Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n",
        kOk + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nno colon\r\n\r\n"}) {
    CAPTURE(answer);
    const auto error = refused(answer);
    CHECK(error.code == Errc::Protocol);
    CHECK_MESSAGE(error.message.find("not NAME: VALUE") != std::string::npos, error.message);
  }
}

TEST_CASE("a line that continues a header is joined to it") {
  const CannedServer server({kOk +
                             "X: a\r\n b\r\n\t  c \r\nEmpty:\r\n later\r\nBad name: 1\r\n Y: 2\r\n"
                             "Content-Length: 2\r\nZ: 1\r\n  \r\n\r\nok"});
  auto client = Client::bare();
  for (int round = 0; round < 2; ++round) {
    const auto outcome = client.get(server.url());
    REQUIRE(outcome);
    CHECK(outcome->body == "ok");
    CHECK(outcome->headers ==
          Headers{{"X", "a b c"}, {"Empty", "later"}, {"Content-Length", "2"}, {"Z", "1"}});
  }
  CHECK(server.connections() == 1);
}

TEST_CASE(
    "a length that continues on a second line is not used where libcurl reads only the first") {
  for (const std::string& answer :
       {kOk + "Content-Length:\r\n 2\r\n\r\nok",
        kOk + "Transfer-Encoding:\r\n chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"}) {
    CAPTURE(answer);
    if (libcurl_before(0x081200)) {
      const auto error = refused(answer);
      CHECK(error.code == Errc::Protocol);
    } else {
      const CannedServer server({answer});
      const auto outcome = Client::bare().get(server.url());
      REQUIRE(outcome);
      CHECK(outcome->body == "ok");
    }
  }
  const auto error = refused(kOk + "Content-Length: 2\r\n 3\r\n\r\nok3");
  CHECK(error.code == Errc::Protocol);
}

TEST_CASE("a header line that is too long is too large, and no lack of memory") {
  for (const std::size_t size :
       {std::size_t{110} << 10, std::size_t{200} << 10, std::size_t{10} << 20}) {
    for (const std::string name : {"X-Long", "Location"}) {
      CAPTURE(size);
      const auto error =
          refused(kOk + name + ": " + std::string(size, 'a') + "\r\nContent-Length: 2\r\n\r\nok");
      CHECK(error.code == Errc::TooLarge);
      CHECK(error.permanent);
      CHECK_MESSAGE(error.message.find("header line") != std::string::npos, error.message);
    }
  }
  const auto error = refused("HTTP/1.1 200 " + std::string(200 << 10, 'a') + "\r\n\r\n");
  CHECK(error.code == Errc::TooLarge);
}

TEST_CASE("a response of more than 5000 headers is too large") {
  const auto answer = [](int count) {
    std::string text = kOk + "Content-Length: 2\r\n";
    for (int i = 1; i < count; ++i) text += "X: 1\r\n";
    return text + "\r\nok";
  };
  const auto error = refused(answer(5001));
  CHECK(error.code == Errc::TooLarge);
  CHECK(error.permanent);
  CHECK(error.curl_code == 63);
  CHECK(error.message.find("more than 5000 headers") != std::string::npos);
  const CannedServer server({answer(5000)});
  const auto outcome = Client::bare().get(server.url());
  REQUIRE(outcome);
  CHECK(outcome->headers.size() == 5000);
}

TEST_CASE("headers and a body may have as many bytes as is allowed, and no more") {
  const std::string head = kOk + "Content-Length: 4\r\nX: y\r\n\r\n";
  const std::string chunked =
      kOk + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n2\r\nok\r\n0\r\n\r\n";
  for (const std::string& answer : {head + "okok", chunked}) {
    CAPTURE(answer);
    const CannedServer server({answer});
    for (const std::uint64_t most : {3U, 4U}) {
      auto request = Request::get(server.url());
      request.edit_options().max_body = most;
      const auto outcome = Client::bare().send(request);
      REQUIRE(outcome.has_value() == (most == 4));
      if (outcome) CHECK(outcome->body == "okok");
      if (outcome) continue;
      CHECK(outcome.error().code == Errc::TooLarge);
      CHECK(outcome.error().message.ends_with("the response body is larger than 3 bytes"));
    }
  }
  const CannedServer server({head + "okok"});
  for (const std::size_t most : {head.size() - 1, head.size()}) {
    ClientOptions options;
    options.middlewares = {};
    options.connection.max_headers = most;
    const auto outcome = Client(options).get(server.url());
    REQUIRE(outcome.has_value() == (most == head.size()));
    if (outcome) continue;
    CHECK(outcome.error().code == Errc::TooLarge);
    CHECK(outcome.error().message.ends_with("the response headers are larger than " +
                                            std::to_string(most) + " bytes"));
  }
}
