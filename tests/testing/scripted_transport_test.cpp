// The scripted transport treats requests as the real one does. What tests with it use most, the
// tests of the chain cover.
#include <httpretry/client/client.hpp>
#include <httpretry/middleware/retry.hpp>
#include <httpretry/testing/testing.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// Gives `text` in pieces of at most three bytes; counts the pieces.
Body::Generator pieces_of(std::string text, std::shared_ptr<int> pieces = nullptr) {
  return [text, pieces, at = std::size_t{0}](std::span<char> into) mutable {
    const auto count = text.copy(into.data(), std::min<std::size_t>(3, into.size()), at);
    at += count;
    if (pieces && count > 0) ++*pieces;
    return count;
  };
}

struct VirtualNetwork {
  std::shared_ptr<ScriptedTransport> script = std::make_shared<ScriptedTransport>();

  // In virtual time.
  Outcome send(const Request& request) const {
    ClientOptions options;
    options.middlewares = {retry()};
    options.scheduler = std::make_shared<ManualScheduler>();
    options.transport = script;
    options.random = fixed_random(0.5);
    return Client(options).send(request);
  }
  [[nodiscard]] const std::string* body(std::size_t index) const {
    bodies.push_back(script->requests().at(index).request.body());
    return bodies.back().bytes();
  }
  mutable std::vector<Body> bodies;
};

Error connect_error() { return Error(Errc::Connect, "refused"); }

}  // namespace

TEST_CASE("the script reads a body that can be read once, so it is not sent again") {
  const VirtualNetwork network;
  network.script->say(Response(503)).say(Response(200));
  const auto outcome = network.send(Request::put("http://x/", Body::once(pieces_of("abcdefg"))));
  REQUIRE(outcome);
  CHECK(outcome->status == 503);
  CHECK(outcome->history.stop_reason == Reason::NotReplayable);
  REQUIRE(network.script->requests().size() == 1);
  REQUIRE(network.body(0) != nullptr);
  CHECK(*network.body(0) == "abcdefg");
}

TEST_CASE("steps that are added after the last one was repeated are played in order") {
  const VirtualNetwork network;
  const auto status = [&] { return network.send(Request::get("http://x/"))->status; };
  network.script->say(Response(201));
  for (int i = 0; i < 3; ++i) CHECK(status() == 201);
  network.script->say(Response(202)).say(Response(203));
  CHECK(status() == 202);
  CHECK(status() == 203);
  CHECK(status() == 203);
}

TEST_CASE("where nothing is sent, the body is not read, and the next attempt sends it") {
  for (const auto code : {Errc::Connect, Errc::Resolve, Errc::Tls}) {
    CAPTURE(code);
    const VirtualNetwork network;
    network.script->say(Error(code, "scripted")).say(Response(200));
    const auto pieces = std::make_shared<int>(0);
    const auto outcome =
        network.send(Request::put("http://x/", Body::once(pieces_of("abcdefg", pieces))));
    REQUIRE(outcome);
    CHECK(outcome->status == 200);
    CHECK(*pieces == 3);
    CHECK(network.body(0) == nullptr);
    REQUIRE(network.body(1) != nullptr);
    CHECK(*network.body(1) == "abcdefg");
  }
}

TEST_CASE("a generator starts again for each attempt, and reports its progress") {
  const VirtualNetwork network;
  network.script->say(Response(503)).say(Response(200));
  int starts = 0;
  const auto pieces = std::make_shared<int>(0);
  const auto body = Body::generated(
      [&] {
        ++starts;
        return pieces_of("abcdefg", pieces);
      },
      7);
  CHECK(network.send(Request::put("http://x/", body))->status == 200);
  CHECK(starts == 2);
  CHECK(*pieces == 6);
  for (const std::size_t attempt : {0U, 1U}) {
    REQUIRE(network.body(attempt) != nullptr);
    CHECK(*network.body(attempt) == "abcdefg");
  }
}

TEST_CASE("a response is computed from the request, whose body is in memory") {
  const VirtualNetwork network;
  network.script->say([](const Request& request, int number) -> Outcome {
    const auto* bytes = request.body().bytes();
    return Response(200, std::to_string(number) + request.method() +
                             (bytes == nullptr ? " nothing" : " " + *bytes));
  });
  Form form;
  form.add("name", "value");
  CHECK(network.send(Request::get("http://x/"))->body == "1GET nothing");
  CHECK(network.send(Request::put("http://x/", "bytes"))->body == "2PUT bytes");
  CHECK(network.send(Request::put("http://x/", Body::once(pieces_of("piece"))))->body ==
        "3PUT piece");
  const auto sent = network.send(Request::post("http://x/", Body()).set_form(form));
  CHECK(sent->body.find("name=\"name\"\r\n\r\nvalue\r\n") != std::string::npos);
}

TEST_CASE("progress is reported before the request, after its body, and after the response") {
  using Reports = std::vector<std::string>;
  const auto progress_of = [](Request request) {
    const VirtualNetwork network;
    network.script->say(Response(200, "down"));
    Reports reports;
    request.edit_options().on_progress = [&](const Progress& now) {
      const auto size_text = [](std::optional<std::uint64_t> size) {
        return size ? std::to_string(*size) : std::string("?");
      };
      reports.push_back(std::to_string(now.sent) + "/" + size_text(now.to_send) + " " +
                        std::to_string(now.received) + "/" + size_text(now.to_receive));
    };
    CHECK(network.send(request));
    return reports;
  };
  CHECK(progress_of(Request::get("http://x/")) == Reports{"0/0 0/?", "0/0 4/4"});
  CHECK(progress_of(Request::put("http://x/", "up")) == Reports{"0/2 0/?", "2/2 0/?", "2/2 4/4"});
  CHECK(progress_of(Request::put("http://x/", Body::once(pieces_of("abcdefg"), 7))) ==
        Reports{"0/7 0/?", "7/7 0/?", "7/7 4/4"});
  CHECK(progress_of(Request::put("http://x/", Body::once(pieces_of("abcdefg")))) ==
        Reports{"0/? 0/?", "7/? 0/?", "7/? 4/4"});
}

namespace {

// The outcome of a PUT with the body "up", without retries.
Outcome outcome_of_put(Outcome scripted, Duration after = {},
                       Duration response_timeout = kForever) {
  ClientOptions options;
  options.middlewares = {};
  options.scheduler = std::make_shared<ManualScheduler>();
  const auto script = std::make_shared<ScriptedTransport>();
  script->say(std::move(scripted), after);
  options.transport = script;
  auto request = Request::put("http://x/", "up");
  request.edit_options().response_timeout = response_timeout;
  return Client(options).send(request);
}

}  // namespace

TEST_CASE("the script fills in what a transport knows of the exchange") {
  const auto answered = outcome_of_put(Response(404, "down"));
  REQUIRE(answered);
  CHECK(answered->exchange.sent == Sent::Answered);
  CHECK(answered->exchange.wire_sends == 1);
  CHECK(answered->exchange.body_sent == 2);
  CHECK(answered->exchange.body_received == 4);
  CHECK(answered->url == "http://x/");
  for (const auto code : {Errc::Timeout, Errc::Send, Errc::Receive, Errc::Protocol}) {
    CAPTURE(code);
    const auto exchange = outcome_of_put(Error(code, "scripted")).error().exchange;
    CHECK(exchange.sent == Sent::Maybe);
    CHECK(exchange.wire_sends == 1);
    CHECK(exchange.body_sent == 2);
    CHECK(exchange.body_received == 0);
  }
  for (const auto code : {Errc::InvalidRequest, Errc::Resolve, Errc::Connect, Errc::Tls}) {
    CAPTURE(code);
    const auto exchange = outcome_of_put(Error(code, "scripted")).error().exchange;
    CHECK(exchange.sent == Sent::Never);
    CHECK(exchange.wire_sends == 0);
    CHECK(exchange.body_sent == 0);
  }
  // Counts that the script sets are kept.
  Response counted(200, "down");
  counted.exchange.sent = Sent::Answered;
  counted.exchange.wire_sends = 2;
  counted.exchange.body_sent = 5;
  counted.exchange.body_received = 6;
  const auto exchange = outcome_of_put(counted)->exchange;
  CHECK(exchange.wire_sends == 2);
  CHECK(exchange.body_sent == 5);
  CHECK(exchange.body_received == 6);
}

TEST_CASE("a response that comes exactly at the limit is in time") {
  CHECK(outcome_of_put(Response(200), 1500ms, 1500ms));
  const auto late = outcome_of_put(Response(200), 1500ms, 1499ms);
  REQUIRE_FALSE(late);
  CHECK(late.error().code == Errc::Timeout);
  CHECK(late.error().message == "no response in time");
  CHECK(late.error().curl_code == 28);
  CHECK(late.error().exchange.sent == Sent::Maybe);
  CHECK(late.error().exchange.wire_sends == 1);
  // If the step would have sent nothing, reaching a limit does not change that.
  const auto unsent = outcome_of_put(Error(Errc::Connect, "refused"), 1500ms, 1499ms).error();
  CHECK(unsent.code == Errc::Timeout);
  CHECK(unsent.exchange.sent == Sent::Never);
}

TEST_CASE("a function of the script keeps what it counts") {
  const VirtualNetwork network;
  network.script->say([count = 0](const Request&, int) mutable -> Outcome {
    return Response(200, std::to_string(++count));
  });
  CHECK(network.send(Request::get("http://x/"))->body == "1");
  CHECK(network.send(Request::get("http://x/"))->body == "2");
}

TEST_CASE("a function is called after the body was read, so it cannot fail before the send") {
  const VirtualNetwork network;
  network.script->say([](const Request&, int) -> Outcome { return connect_error(); });
  const auto outcome = network.send(Request::put("http://x/", Body::once(pieces_of("abc"))));
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Internal);
  CHECK(outcome.error().message.find("say(Error)") != std::string::npos);
}

TEST_CASE("a body that cannot be opened is not sent") {
  const VirtualNetwork network;
  network.script->say(Response(200));
  const auto outcome = network.send(Request::put("http://x/", Body::file("/no/such/file")));
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::InvalidRequest);
  CHECK(outcome.error().message.find("/no/such/file") != std::string::npos);
  CHECK(outcome.error().exchange.sent == Sent::Never);
  CHECK(network.script->requests().empty());
}

TEST_CASE("a body that fails while it is read ends the call, and part of it was sent") {
  const auto failing = [](std::span<char>) -> std::size_t { throw std::runtime_error("no disk"); };
  const auto ends_with = [](const Body& body, const char* text) {
    const VirtualNetwork network;
    network.script->say(Response(200));
    const auto outcome = network.send(Request::put("http://x/", body));
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::InvalidRequest);
    CHECK(outcome.error().message.find(text) != std::string::npos);
    CHECK(outcome.error().exchange.sent == Sent::Maybe);
    CHECK(outcome.error().exchange.wire_sends == 1);
    CHECK(network.script->requests().size() == 1);
  };
  ends_with(Body::generated([&] { return failing; }), "reading the body threw: no disk");
  ends_with(Body::once(pieces_of("abcd"), 3), "longer than its announced size");
  ends_with(Body::once(pieces_of("abcd"), 5), "1 bytes before its announced size");
}

TEST_CASE("several threads send through one script") {
  constexpr int kCalls = 400;
  ClientOptions options;
  options.middlewares = {};
  auto script = std::make_shared<ScriptedTransport>();
  int responses = 0;  // functions are called one at a time
  script->say([&](const Request& request, int number) -> Outcome {
    ++responses;
    return Response(200, request.url() + " " + std::to_string(number));
  });
  options.transport = script;
  options.threads = 4;
  Client client(options);

  std::vector<std::future<Outcome>> calls;
  for (int i = 0; i < kCalls; ++i) {
    calls.push_back(client.send_async(Request::get("http://x/" + std::to_string(i))));
    CHECK(script->requests().size() <= kCalls);
  }
  std::vector<std::string> expected;
  std::vector<std::string> bodies;
  for (auto& call : calls) bodies.push_back(call.get()->body);

  const auto requests = script->requests();
  REQUIRE(requests.size() == kCalls);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    expected.push_back(requests[i].request.url() + " " + std::to_string(i + 1));
  }
  std::sort(bodies.begin(), bodies.end());
  std::sort(expected.begin(), expected.end());
  CHECK(bodies == expected);
  CHECK(responses == kCalls);
}

TEST_CASE("a success whose body breaks off is an error, after its bytes") {
  Response cut(200, "half");
  cut.incomplete = true;
  for (const bool has_sink : {false, true}) {
    CAPTURE(has_sink);
    const VirtualNetwork network;
    network.script->say(cut);
    auto policy = std::make_shared<RetryPolicy>();
    policy->max_attempts = 1;
    auto request = Request::get("http://x/");
    request.edit_options().policy = policy;
    std::string received;
    if (has_sink) {
      request.edit_options().sink = pass_to([&](std::string_view bytes) {
        received += bytes;
        return true;
      });
    }
    const auto outcome = network.send(request);
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::Receive);
    CHECK(outcome.error().partial);
    CHECK(outcome.error().curl_code == 18);
    CHECK(outcome.error().status == 200);
    CHECK(outcome.error().exchange.sent == Sent::Answered);
    CHECK(received == (has_sink ? "half" : ""));
  }
}
