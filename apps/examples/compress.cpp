// Sends a compressed body, and accepts a compressed response. The server here refuses Zstandard, so
// the client sends the body once more as it is.
#include <httpretry/compression/compression.hpp>
#include <httpretry/httpretry.hpp>
#include <httpretry/testing/testing.hpp>

#include <cstdio>

using namespace httpretry;

int main() {
  // The server refuses the first request, whose body is compressed, and accepts the second one.
  FaultServer server(Scenario{{415}, {200, "stored"}});
  const std::string url = server.url("/documents");
  const std::string text(10'000, 'x');

  ClientOptions options;
  options.connection.content_codings = {brotli(), zstd()};
  Client client(options);

  auto request = Request::post(url, text).compress_with("zstd");
  request.edit_options().compressed = true;  // the response may be compressed, too
  const Outcome outcome = client.send(request);

  std::printf("%s\n", describe(outcome).c_str());
  for (const auto& seen : server.seen()) {
    std::printf("%zu bytes\n", static_cast<std::size_t>(seen.body_size));
  }
  return outcome && outcome->is_2xx() ? 0 : 1;
}
