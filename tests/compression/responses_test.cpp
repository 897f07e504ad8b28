// Responses in brotli and Zstandard on the wire: whole, cut, corrupt, mislabeled, and bombs.
#include "codings.hpp"

#include "tests/wire/sinks.hpp"

#include <httpretry/client/client_options.hpp>

#include <stdexcept>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

Client client_with(std::vector<ContentCoding> codings, RetryPolicy policy = hasty()) {
  ClientOptions options;
  options.middlewares = {retry(std::move(policy))};
  options.connection.content_codings = std::move(codings);
  return Client(options);
}

Client decoding_client() { return client_with({brotli(), zstd()}); }

Request get_compressed(const FaultServer& server) {
  auto request = Request::get(server.url());
  request.edit_options().compressed = true;
  return request;
}

Step in_coding(const ContentCoding& coding, int status, std::string bytes) {
  return {status, Headers{{"Content-Encoding", coding.name}}, std::move(bytes)};
}

}  // namespace

TEST_CASE("responses are decoded in each coding that the client has, in memory and to a sink") {
  const std::string text(300'000, 'a');
  for (const auto& coding : all_codings()) {
    CAPTURE(coding.name);
    const FaultServer server(Scenario{in_coding(coding, 200, encode(coding, text))});
    auto request = get_compressed(server);
    const auto outcome = decoding_client().send(request);
    REQUIRE(outcome);
    CHECK(outcome->body == text);
    CHECK_FALSE(outcome->headers.contains("Content-Encoding"));
    CHECK(server.seen()[0].headers.get("Accept-Encoding") == "gzip, br, zstd");

    std::string received;
    request.edit_options().sink = append_to(received);
    REQUIRE(decoding_client().send(request));
    CHECK(received == text);
  }
}

TEST_CASE("a coding is requested and decoded only if the client has it") {
  for (const auto& coding : {brotli(), zstd()}) {
    CAPTURE(coding.name);
    const FaultServer server(Scenario{in_coding(coding, 200, encode(coding, "text"))});
    const auto outcome = client_with({}).send(get_compressed(server));
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::Protocol);
    CHECK(outcome.error().permanent);
    CHECK(outcome.error().message.ends_with(
        "the response body has a coding that was not requested; expected one of gzip"));
    CHECK(server.seen()[0].headers.get("Accept-Encoding") == "gzip");
    // Without the option, nothing is requested, and the body stays as it is.
    CHECK(decoding_client().get(server.url())->body == encode(coding, "text"));
    CHECK_FALSE(server.seen()[1].headers.contains("Accept-Encoding"));
  }
}

TEST_CASE("several codings one after the other are refused") {
  for (const char* codings : {"br, gzip", "zstd, zstd", "gzip, br"}) {
    CAPTURE(codings);
    const FaultServer server(Scenario{{200, Headers{{"Content-Encoding", codings}}, "0123"}});
    const auto outcome = decoding_client().send(get_compressed(server));
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().curl_code == 61);
    CHECK(server.requests() == 1);
  }
}

TEST_CASE("a body that ends early is an error, even if its length is right") {
  for (const auto& coding : all_codings()) {
    CAPTURE(coding.name);
    const auto whole = encode(coding, "some text, some text, some text");
    std::vector<Step> steps;
    for (std::size_t cut = 1; cut < whole.size(); ++cut) {
      steps.push_back(in_coding(coding, 200, whole.substr(0, cut)));
    }
    const auto count = steps.size();
    const FaultServer server(Scenario(std::move(steps)));
    auto once = hasty();
    once.max_attempts = 1;
    auto client = client_with({brotli(), zstd()}, once);
    for (std::size_t i = 0; i < count; ++i) {
      const auto outcome = client.send(get_compressed(server));
      if (outcome) FAIL("cut at " << i + 1 << " counts as whole");
      CHECK(outcome.error().code == Errc::Receive);
      CHECK(outcome.error().partial);
      CHECK(outcome.error().message.ends_with("the " + coding.name +
                                              " body of the response ends early"));
    }
  }
}

TEST_CASE("a corrupt body is an error that a retry cannot mend") {
  for (const auto& coding : all_codings()) {
    CAPTURE(coding.name);
    const FaultServer server(Scenario{in_coding(coding, 200, "\xFF\xFF this is not encoded")});
    const auto outcome = decoding_client().send(get_compressed(server));
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::Protocol);
    CHECK(outcome.error().message.ends_with("the " + coding.name +
                                            " body of the response is corrupt"));
    CHECK(server.requests() == 1);
  }
}

TEST_CASE("the limit of a body counts what it decodes to") {
  const std::string zeros(std::size_t{8} << 20, '\0');
  for (const auto& coding : all_codings()) {
    CAPTURE(coding.name);
    const FaultServer server(Scenario{in_coding(coding, 200, encode(coding, zeros))});
    auto request = get_compressed(server);
    request.edit_options().max_body = 50'000;
    const auto outcome = decoding_client().send(request);
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::TooLarge);
    request.edit_options().max_body = zeros.size();
    CHECK(decoding_client().send(request)->body == zeros);
  }
}

TEST_CASE("a stop is noticed while a small body decodes to a huge one") {
  const std::string zeros(std::size_t{32} << 20, '\0');
  for (const auto& coding : all_codings()) {
    CAPTURE(coding.name);
    const FaultServer server(Scenario{in_coding(coding, 200, encode(coding, zeros))});
    std::stop_source stop;
    std::size_t after_stop = 0;
    auto request = get_compressed(server);
    request.edit_options().sink = pass_to([&](std::string_view bytes) {
      if (stop.stop_requested()) after_stop += bytes.size();
      stop.request_stop();
      return true;
    });
    const auto outcome = decoding_client().send(request, CallOptions().with_stop(stop.get_token()));
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::Canceled);
    CHECK(after_stop <= (std::size_t{512} << 10));
  }
}

TEST_CASE("a failure whose body is not what it says keeps its status and the body as it came") {
  const std::string pages[] = {
      "<html><head><title>503 Service Unavailable</title></head><body>busy</body></html>",
      "<!DOCTYPE html>\n<html lang=\"en\">" + std::string(3000, ' ') + "</html>",
      R"({"error": {"code": 503, "message": "The service is overloaded."}})",
      "upstream connect error or disconnect/reset before headers. reset reason: overflow",
      "no healthy upstream",
      "busy",
      "<",
      "Service Unavailable\n",
      std::string(200'000, 'x')};
  auto once = hasty();
  once.max_attempts = 1;
  for (const auto& coding : all_codings()) {
    for (const auto& page : pages) {
      CAPTURE(coding.name);
      CAPTURE(page.substr(0, 30));
      const FaultServer server(Scenario{in_coding(coding, 503, page)});
      const auto outcome = client_with({brotli(), zstd()}, once).send(get_compressed(server));
      if (!outcome) FAIL(outcome.error().message);
      CHECK(outcome->status == 503);
      CHECK(outcome->body == page);
      CHECK(outcome->headers.get("Content-Encoding") == coding.name);
    }
  }
}

TEST_CASE("the body of a failure is decoded, as far as it goes") {
  for (const auto& coding : all_codings()) {
    CAPTURE(coding.name);
    const std::string text(100'000, 'x');
    const auto whole = encode(coding, text);
    const FaultServer server(Scenario{in_coding(coding, 404, whole),
                                      in_coding(coding, 404, whole.substr(0, whole.size() - 1))});
    const auto decoded = decoding_client().send(get_compressed(server));
    REQUIRE(decoded);
    CHECK(decoded->body == text);
    CHECK_FALSE(decoded->headers.contains("Content-Encoding"));
    const auto cut = decoding_client().send(get_compressed(server));
    REQUIRE(cut);
    CHECK(cut->status == 404);
    CHECK(cut->incomplete);
    // Nothing may have been decoded yet: then it is what came.
    const bool as_it_came = whole.starts_with(cut->body);
    CHECK((as_it_came || text.starts_with(cut->body)));
  }
}

TEST_CASE("a coding without a name or a function is refused") {
  auto nameless = brotli();
  nameless.name.clear();
  auto without_encoder = zstd();
  without_encoder.encoder = nullptr;
  for (const auto& coding : {nameless, without_encoder}) {
    CHECK_THROWS_AS(client_with({coding}), std::invalid_argument);
  }
}
