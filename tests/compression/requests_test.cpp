// Requests with a body in brotli and Zstandard.
#include "codings.hpp"

#include "tests/wire/wire.hpp"

#include <httpretry/client/client_options.hpp>

using namespace httpretry;

TEST_CASE("a request body is sent in each coding that the client has") {
  ClientOptions options;
  options.connection.content_codings = {brotli(), zstd()};
  Client client(options);
  const std::string text(10'000, 'a');
  for (const auto& coding : all_codings()) {
    CAPTURE(coding.name);
    const FaultServer server;
    REQUIRE(client.send(Request::put(server.url(), text).compress_with(coding.name)));
    const auto seen = server.seen()[0];
    CHECK(seen.headers.get("Content-Encoding") == coding.name);
    CHECK(seen.headers.get("Content-Length") == std::to_string(seen.body.size()));
    CHECK(seen.body.size() < 200);
    CHECK(decode(coding, seen.body).bytes == text);
  }
  const auto unknown = client.send(Request::put("http://127.0.0.1:1/", text).compress_with("lzma"));
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().code == Errc::InvalidRequest);
  CHECK(unknown.error().message.ends_with("this client supports gzip, br, zstd"));
}
