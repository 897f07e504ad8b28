// No secret of a request or a response is in anything that observers write.
#include "tests/client/conversation.hpp"
#include "tests/client/policies.hpp"

#include <httpretry/telemetry/telemetry.hpp>

#include <doctest/doctest.h>

using namespace httpretry;
using namespace std::chrono_literals;

TEST_CASE("secrets of every kind are in no span, metric, log line or archive") {
  Conversation talk;
  Response moved = redirect_to(302, "https://me:s3cr3t@x/b?token=s3cr3t&Signature=s3cr3t");
  moved.headers.add("Set-Cookie", "a=s3cr3t");
  Response again(503, "s3cr3t");
  again.headers.add("X-Api-Key", "s3cr3t");
  again.headers.add("Content-Location", "/c?sig=s3cr3t");
  again.headers.add("Operation-Location", "/o?page=s3cr3t");
  again.headers.add("Link", "</n?cursor=s3cr3t>; rel=next, <https://me:s3cr3t@x/?q=s3cr3t>");
  talk.network->say(moved).say(again).say(error_of(Errc::Receive)).say(Response(200, "s3cr3t"));

  std::vector<SpanPtr> spans;
  std::string written;
  Har archive;
  const auto numbers = metrics();
  ClientOptions options;
  options.middlewares = {redirect(), retry(steady_policy()), propagate()};
  options.scheduler = talk.clock;
  options.transport = talk.network;
  options.random = fixed_random(0.5);
  options.observers = {traces([&](SpanPtr span) { spans.push_back(std::move(span)); }), numbers,
                       json_log([&](std::string_view line) { written += line; }),
                       archive.observer()};
  auto request = Request::get(
      "https://me:s3cr3t@x/a?X-Amz-Signature=s3cr3t&X-Amz-Credential=s3cr3t&AWSAccessKeyId=s3cr3t"
      "&X-Amz-Security-Token=s3cr3t&X-Goog-Signature=s3cr3t&sig=s3cr3t&api_key=s3cr3t"
      "&client_secret=s3cr3t&password=s3cr3t&access_token=s3cr3t");
  for (const auto* name :
       {"Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "X-Auth-Token",
        "X-Amz-Security-Token", "Cf-Access-Jwt-Assertion", "X-Client-Secret", "X-Signature"}) {
    request.set_header(name, "s3cr3t");
  }
  request.set_header("x-ms-copy-source", "https://x/blob?sv=s3cr3t&sig=s3cr3t");
  request.set_header("Referer", "https://h/?token=s3cr3t");
  request.set_body(std::string("password=s3cr3t"));
  const auto outcome = Client(options).send(request);
  CAPTURE(outcome ? std::string() : outcome.error().message);
  REQUIRE(outcome);
  REQUIRE(talk.sends() == 4);
  REQUIRE(spans.size() == 5);
  CHECK(archive.entries() == 4);

  const auto otlp = otlp_json(spans, {});
  const auto har = archive.text();
  CHECK(otlp.find("REDACTED:REDACTED@x/a?X-Amz-Signature=REDACTED") != std::string::npos);
  CHECK(har.find("token=REDACTED") != std::string::npos);
  for (const auto& text : {otlp, har, written, numbers->prometheus(), numbers->openmetrics(),
                           otlp_json(numbers->snapshot(), {})}) {
    REQUIRE_FALSE(text.empty());
    CHECK(text.find("s3cr3t") == std::string::npos);
  }
}
