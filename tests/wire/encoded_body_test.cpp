// RequestOptions::compress_with, with gzip: what is sent, and what happens after a 415.
#include "files.hpp"
#include "sinks.hpp"

#include "lib/core/curl/content_codings.hpp"

#include <httpretry/body/awaited_body.hpp>
#include <httpretry/client/client_options.hpp>

#include <array>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

const std::string kText(10'000, 'a');

std::string gunzipped(std::string_view bytes) {
  const auto decoder = find_coding("gzip", {})->decoder();
  std::string text;
  std::array<char, 4096> piece{};
  ContentCoder::Step step;
  do {
    step = decoder->run(bytes, piece, false);
    text.append(piece.data(), step.written);
  } while (!bytes.empty() || step.state == ContentCoder::State::MoreOutput);
  return step.state == ContentCoder::State::End ? text : "not complete";
}

// Refuses a body with a Content-Encoding.
Step picky() {
  Step step;
  step.respond = [](const SeenRequest& request) {
    return Step(request.headers.contains("Content-Encoding") ? 415 : 200);
  };
  return step;
}

Request gzipped(const FaultServer& server, Body body = kText) {
  return Request::put(server.url(), std::move(body)).compress_with("gzip");
}

}  // namespace

TEST_CASE("a body is compressed, with a length if it is small and in memory") {
  const std::string large(3 << 20, 'b');
  const TemporaryDirectory directory;
  const auto file = directory.file("body");
  write_file(file, kText);
  struct Row {
    const char* what;
    Body body;
    const std::string& text;
    bool has_length;
  };
  std::string_view rest = kText;
  const auto once = Body::once([&](std::span<char> into) {
    const auto count = rest.copy(into.data(), into.size());
    rest.remove_prefix(count);
    return count;
  });
  const std::string empty;
  const std::string megabyte(1 << 20, 'm');
  const auto more = megabyte + "m";
  for (const auto& row :
       {Row{"memory", kText, kText, true}, Row{"empty", empty, empty, true},
        Row{"a megabyte", megabyte, megabyte, true}, Row{"more", more, more, false},
        Row{"large", large, large, false}, Row{"file", Body::file(file), kText, false},
        Row{"once", once, kText, false}}) {
    CAPTURE(row.what);
    const FaultServer server;
    REQUIRE(Client().send(gzipped(server, row.body)));
    const auto seen = server.seen()[0];
    CHECK(seen.headers.get("Content-Encoding") == "gzip");
    CHECK(seen.headers.contains("Content-Length") == row.has_length);
    CHECK(seen.body_complete);
    CHECK(gunzipped(seen.body) == row.text);
  }
}

TEST_CASE("a body that is awaited is compressed as it comes") {
  const FaultServer server;
  int pieces = 0;
  const auto body = awaited_body_once([&](Call& call) -> Task<Result<std::string>> {
    const bool waited = co_await call.scheduler().sleep_until(call.scheduler().now(), call.stop());
    if (!waited || ++pieces > 3) co_return std::string();
    co_return kText;
  });
  REQUIRE(Client().send(gzipped(server, body)));
  CHECK(gunzipped(server.seen()[0].body) == kText + kText + kText);
}

TEST_CASE("each attempt compresses the body again") {
  const FaultServer server(Scenario{503, 200});
  const TemporaryDirectory directory;
  const auto file = directory.file("body");
  write_file(file, kText);
  REQUIRE(Client({retry(hasty())}).send(gzipped(server, Body::file(file))));
  REQUIRE(server.requests() == 2);
  for (const auto& seen : server.seen()) CHECK(gunzipped(seen.body) == kText);
}

TEST_CASE("after a 415 the same attempt sends the body as it is, and the origin is remembered") {
  const FaultServer server(Scenario{picky()});
  Client client({retry(hasty())});
  const auto outcome = client.send(gzipped(server));
  REQUIRE(outcome);
  CHECK(outcome->status == 200);
  const auto& attempts = outcome->history.attempts;
  REQUIRE(attempts.size() == 1);
  CHECK(attempts[0].wire_sends == 2);
  CHECK(attempts[0].budget_left == 500);
  REQUIRE(server.requests() == 2);
  CHECK_FALSE(server.seen()[1].headers.contains("Content-Encoding"));
  CHECK(server.seen()[1].body == kText);

  REQUIRE(client.send(gzipped(server)));
  CHECK(server.requests() == 3);

  const FaultServer other;  // another origin, which accepts it
  REQUIRE(client.send(gzipped(other)));
  CHECK(other.seen()[0].headers.contains("Content-Encoding"));
}

TEST_CASE("a 415 that is about something else is the outcome, and nothing is remembered") {
  const FaultServer server(Scenario{415, 415, 200});
  Client client({retry(hasty())});
  const auto outcome = client.send(gzipped(server));
  REQUIRE(outcome);
  CHECK(outcome->status == 415);
  CHECK(server.requests() == 2);
  REQUIRE(client.send(gzipped(server)));
  CHECK(server.seen()[2].headers.contains("Content-Encoding"));
}

TEST_CASE("a body that was read and cannot be read again is not sent after a 415") {
  const FaultServer server(Scenario{picky()});
  bool ended = false;
  const auto once = Body::once([&](std::span<char> into) -> std::size_t {
    if (std::exchange(ended, true)) return 0;
    return kText.copy(into.data(), into.size());
  });
  const auto outcome = Client({retry(hasty())}).send(gzipped(server, once));
  REQUIRE(outcome);
  CHECK(outcome->status == 415);
  CHECK(server.requests() == 1);
}

TEST_CASE("other failures are not sent again without compression") {
  for (const int status : {400, 413, 422}) {
    const FaultServer server(Scenario{status});
    CHECK(Client({retry(hasty())}).send(gzipped(server))->status == status);
    CHECK(server.requests() == 1);
  }
}

TEST_CASE("a sink gets the body of the response to the second send") {
  Step step = picky();
  step.respond = [](const SeenRequest& request) {
    return request.headers.contains("Content-Encoding") ? Step(415, "no") : Step(200, "stored");
  };
  const FaultServer server(Scenario{step});
  std::string received;
  auto request = gzipped(server);
  request.sink(pass_to([&](std::string_view bytes) {
    received.append(bytes);
    return true;
  }));
  REQUIRE(Client().send(request));
  CHECK(received == "stored");
}

TEST_CASE("a request without a body, or with headers about its bytes, is sent as it is") {
  const FaultServer server;
  REQUIRE(Client().send(Request::get(server.url()).compress_with("gzip")));
  CHECK_FALSE(server.seen()[0].headers.contains("Content-Encoding"));
  for (const char* header : {"Content-Encoding", "Content-MD5", "Content-Digest", "Digest",
                             "Repr-Digest", "Content-Range", "x-amz-content-sha256"}) {
    CAPTURE(header);
    REQUIRE(Client().send(gzipped(server).header(header, "x")));
    CHECK(server.seen().back().body == kText);
  }
}

TEST_CASE("a coding that the client does not have is an invalid request") {
  const FaultServer server;
  for (const char* name : {"br", "gzip, gzip", "\x01"}) {
    const auto outcome = Client().send(Request::put(server.url(), kText).compress_with(name));
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::InvalidRequest);
  }
  CHECK(server.requests() == 0);
}

TEST_CASE("a coding whose coders break their promises ends the call with an error that says so") {
  struct Broken final : ContentCoder {
    explicit Broken(Step always) : step(always) {}
    Step run(std::string_view& /*in*/, std::span<char> /*out*/, bool /*last*/) override {
      return step;
    }
    Step step;
  };
  using State = ContentCoder::State;
  struct Row {
    std::optional<ContentCoder::Step> step;  // nullopt: the functions return no coder
    const char* problem;
  };
  using CoderStep = ContentCoder::Step;
  for (const auto& row :
       {Row{std::nullopt, "has made no coder"},
        Row{CoderStep{0, State::MoreInput}, "neither reads nor writes"},
        Row{CoderStep{0, State::MoreOutput}, "neither reads nor writes"},
        Row{CoderStep{1U << 20U, State::End}, "reports more bytes than it had room for"}}) {
    CAPTURE(row.problem);
    ContentCoding coding;
    coding.name = "odd";
    coding.decoder = coding.encoder = [step = row.step]() -> std::unique_ptr<ContentCoder> {
      if (!step) return nullptr;
      return std::make_unique<Broken>(*step);
    };
    ClientOptions options;
    options.middlewares = {};
    options.connection.content_codings = {coding};
    Client client(options);
    FaultServer server(Scenario{{200, {{"Content-Encoding", "odd"}}, "body"}});
    auto get = Request::get(server.url());
    get.edit_options().compressed = true;
    const auto put = Request::put(server.url(), kText).compress_with("odd");
    const auto large = Request::put(server.url(), std::string(2U << 20U, 'a')).compress_with("odd");
    for (const auto& request : {get, put, large}) {
      const auto outcome = client.send(request);
      REQUIRE_FALSE(outcome);
      CAPTURE(outcome.error().message);
      CHECK(outcome.error().message.find(row.problem) != std::string::npos);
    }
  }
}
