// HTTP/2 servers say which requests they did not process: they refuse a stream, or name the last
// one when they close a connection. Only those may be sent again whatever the method.
#include "http2_server.hpp"
#include "tests/waiting.hpp"
#include "wire.hpp"

#include <functional>
#include <future>

using namespace httpretry;

namespace {

using Pieces = FrameServer::Pieces;
using Streams = std::vector<std::string>;

struct Posts {
  std::vector<Outcome> outcomes;
  int streams = 0;  // that the server saw
};

// POSTs on one connection, after `before` GETs, which are answered together; all later ones get
// a 200.
Posts post(int count, const std::function<Pieces(const Streams&)>& frames, int before = 0) {
  Streams streams;
  const FrameServer server([&](const std::string& stream, int number) {
    if (number <= before || number > before + count) {
      return Pieces{headers(stream, k200, kEndStream)};
    }
    streams.push_back(stream);
    return number < before + count ? Pieces{} : frames(streams);
  });
  ClientOptions options;
  options.connection.ca_file = server.ca_file();
  options.threads = 1;
  options.middlewares = {retry(hasty())};
  Client client(options);
  for (int i = 0; i < before; ++i) REQUIRE(client.send_async(Request::get(server.url())).get());
  std::vector<std::future<Outcome>> calls;
  for (int i = 0; i < count; ++i) {
    calls.push_back(client.send_async(Request::post(server.url(), "unsafe")));
    wait_until([&] { return server.streams() > before + i; });
  }
  Posts posts;
  for (auto& call : calls) posts.outcomes.push_back(call.get());
  posts.streams = server.streams() - before;
  return posts;
}

void check_sent(const Outcome& outcome, int times) {
  if (!outcome) FAIL(outcome.error().message);
  CHECK(outcome->status == 200);
  CHECK(outcome->history.attempts.size() == static_cast<std::size_t>(times));
  CHECK(wire_sends(outcome) == times);
}

void check_not_repeated(const Outcome& outcome) {
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().history.stop_reason == Reason::UnsafeToRepeat);
  CHECK(outcome.error().exchange.sent == Sent::Maybe);
  CHECK_FALSE(outcome.error().exchange.refused);
  CHECK(wire_sends(outcome) == 1);
}

const std::string kAllStreams("\x7f\xff\xff\xff");

// A goodbye that says that only the first `processed` were processed. `warned`: the server has said
// before that it will say so.
std::string goodbye(const Streams& streams, int processed, bool warned) {
  const auto last =
      processed == 0 ? std::string(4, '\0') : streams[static_cast<std::size_t>(processed) - 1];
  return (warned ? goaway(kAllStreams) : "") + goaway(last);
}

// For each combination of these.
void for_goodbyes(const std::function<void(int count, int processed, bool warned)>& check) {
  for (const int count : {1, 2, 8}) {
    for (const int processed : {0, 1, 5}) {
      if (processed > count) continue;
      for (const bool warned : {false, true}) {
        CAPTURE(count);
        CAPTURE(processed);
        CAPTURE(warned);
        check(count, processed, warned);
      }
    }
  }
}

}  // namespace

TEST_CASE("a request above the last stream of a goodbye is sent again, whatever the method") {
  for_goodbyes([](int count, int processed, bool warned) {
    for (const bool at_once : {true, false}) {
      for (const bool closes : {true, false}) {
        CAPTURE(at_once);
        CAPTURE(closes);
        const auto [outcomes, streams] = post(count, [&](const Streams& asked) {
          Pieces pieces{goodbye(asked, processed, warned)};
          for (int i = 0; i < processed; ++i) {
            pieces.push_back(headers(asked[static_cast<std::size_t>(i)],
                                     k200 + std::string(kLength0), kEndStream));
          }
          if (closes) pieces.back() += kHangUp;
          return together(pieces, at_once);
        });
        for (int i = 0; i < count; ++i) {
          check_sent(outcomes[static_cast<std::size_t>(i)], i < processed ? 1 : 2);
        }
        CHECK(streams == 2 * count - processed);
      }
    }
  });
}

// Of connections that speak HTTP/1.1 libcurl is not asked to tell anything.
TEST_CASE("a goodbye counts, too, where the server spoke HTTP/1.1 before") {
  const FrameServer server(
      [](const std::string& stream, int number) {
        return Pieces{number == 1 ? goaway(std::string(4, '\0'))
                                  : headers(stream, k200, kEndStream)};
      },
      1);
  ClientOptions options;
  options.connection.ca_file = server.ca_file();
  options.middlewares = {retry(hasty())};
  Client client(options);
  for (int i = 0; i < 2; ++i) {
    const auto first = client.get(server.url());
    REQUIRE(first);
    CHECK(first->http_version == "1.1");
  }
  REQUIRE(server.connections() == 1);

  auto request = Request::post(server.url(), "unsafe");
  request.edit_options().fresh_connection = true;
  const auto outcome = client.send(request);
  check_sent(outcome, 2);
  CHECK(outcome->http_version == "2");
  CHECK(server.streams() == 2);
}

TEST_CASE("a request that a server may have processed before it died is not sent again") {
  for_goodbyes([](int count, int processed, bool warned) {
    const auto [outcomes, streams] = post(count, [&](const Streams& asked) {
      return Pieces{goodbye(asked, processed, warned) + kHangUp};
    });
    for (int i = 0; i < count; ++i) {
      const auto& outcome = outcomes[static_cast<std::size_t>(i)];
      if (i < processed) {
        check_not_repeated(outcome);
      } else {
        check_sent(outcome, 2);
      }
    }
    CHECK(streams == 2 * count - processed);
  });
}

TEST_CASE("a goodbye without a last stream, or none, leaves all requests unsafe to repeat") {
  for (const bool says : {true, false}) {
    for (const int count : {1, 4}) {
      const auto [outcomes, streams] = post(
          count,
          [&](const Streams&) { return Pieces{(says ? goaway(kAllStreams) : "") + kHangUp}; }, 1);
      for (const auto& outcome : outcomes) check_not_repeated(outcome);
      CHECK(streams == count);
    }
  }
}

TEST_CASE("a refused stream is sent again on a connection that others use or have used, too") {
  for (const int before : {0, 1}) {
    for (const bool at_once : {true, false}) {
      CAPTURE(before);
      CAPTURE(at_once);
      const auto [outcomes, streams] = post(
          4,
          [&](const Streams& asked) {
            return together(
                {reset(asked[0], kRefusedStream), reset(asked[2], kRefusedStream),
                 headers(asked[1], k200, kEndStream), headers(asked[3], k200, kEndStream)},
                at_once);
          },
          before);
      for (const std::size_t i : {0U, 2U}) check_sent(outcomes[i], 2);
      for (const std::size_t i : {1U, 3U}) check_sent(outcomes[i], 1);
      CHECK(streams == 6);
    }
  }
}

TEST_CASE("a stream that is reset for another reason is not sent again") {
  for (const int why : {kNoError, kInternalError, kCancel}) {
    for (const int before : {0, 1}) {
      CAPTURE(why);
      CAPTURE(before);
      const auto [outcomes, streams] = post(
          2,
          [&](const Streams& asked) {
            return Pieces{reset(asked[0], why) + headers(asked[1], k200, kEndStream)};
          },
          before);
      check_not_repeated(outcomes[0]);
      check_sent(outcomes[1], 1);
      CHECK(streams == 2);
    }
  }
}

// libcurl asks the proxy for another tunnel before it wants to send again.
TEST_CASE("a POST whose stream was refused is sent again through a proxy, too") {
  const RefusingServer server(1);
  FaultServerOptions as_proxy;
  as_proxy.proxy = true;
  const FaultServer proxy(Scenario{}, as_proxy);
  ClientOptions options;
  options.connection.ca_file = server.ca_file();
  options.connection.proxy.url = proxy.url();
  options.middlewares = {retry(hasty())};
  check_sent(Client(options).post(server.url(), "unsafe"), 2);
}
