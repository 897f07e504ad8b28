// How responses over HTTP/2 end: complete, or with a connection that breaks. libcurl 7.88 calls
// both a success where the response has no length.
#include "http2_server.hpp"
#include "wire.hpp"

#include "tests/libcurl_version.hpp"
#include "tests/waiting.hpp"

#include <array>
#include <functional>
#include <future>

using namespace httpretry;

namespace {

// Each ends the connection, by RFC 9113, as soon as the client has read it.
std::vector<std::string> errors(const std::string& stream) {
  return {data(stream, "\x20x", kPadded),                         // 32 bytes of padding
          headers(stream, "\x80", kEndStream),                    // no field has the index 0
          data(std::string("\0\0\0\x63", 4), "x", kEndStream),    // a stream that is idle
          frame(Frame::Settings, 0, std::string(4, '\0'), "x")};  // no multiple of six bytes
}
constexpr std::array<std::size_t, 4> kErrors{0, 1, 2, 3};

using Pieces = FrameServer::Pieces;
using Frames = std::function<Pieces(const std::string& stream)>;

// Two GETs of what the server answers with; `connections`: how many they need.
std::vector<Outcome> two(const Frames& frames, int connections, const char* method = "GET") {
  const FrameServer server([&](const std::string& stream, int) { return frames(stream); });
  ClientOptions options;
  options.middlewares = {};
  options.connection.ca_file = server.ca_file();
  options.threads = 1;
  Client client(options);
  std::vector<Outcome> outcomes;
  outcomes.push_back(client.send_async(Request(method, server.url())).get());
  outcomes.push_back(client.send_async(Request(method, server.url())).get());
  CHECK(server.connections() == connections);
  return outcomes;
}

using Streams = std::vector<std::string>;

// GETs on one connection, which are answered together.
std::vector<Outcome> several(int count, const std::function<Pieces(const Streams&)>& frames) {
  Streams streams;
  const FrameServer server([&](const std::string& stream, int number) {
    streams.push_back(stream);
    return number < count ? Pieces{} : frames(streams);
  });
  ClientOptions options;
  options.middlewares = {};
  options.connection.ca_file = server.ca_file();
  options.threads = 1;
  Client client(options);
  std::vector<std::future<Outcome>> calls;
  for (int i = 0; i < count; ++i) {
    calls.push_back(client.send_async(Request::get(server.url())));
    wait_until([&] { return server.streams() > i; });
  }
  std::vector<Outcome> outcomes;
  for (auto& call : calls) outcomes.push_back(call.get());
  CHECK(server.connections() == 1);
  return outcomes;
}

void check_broken(const Outcome& outcome) {
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Receive);
  CHECK(outcome.error().partial);
  CHECK(outcome.error().status == 200);
  CHECK(outcome.error().exchange.sent == Sent::Answered);
}

// Each error after what `begun` sends of a response.
void check_breaks(const std::function<std::string(const std::string& stream)>& begun) {
  for (const std::size_t i : kErrors) {
    for (const bool at_once : {true, false}) {
      CAPTURE(i);
      CAPTURE(at_once);
      const auto outcomes = two(
          [&](const std::string& stream) {
            return together({begun(stream), errors(stream)[i]}, at_once);
          },
          2);
      for (const auto& outcome : outcomes) check_broken(outcome);
    }
  }
}

}  // namespace

TEST_CASE("an HTTP/2 connection that breaks in a body leaves a part of the response") {
  check_breaks([](const auto& stream) { return headers(stream) + data(stream, "part"); });
  check_breaks([](const auto& stream) {
    return headers(stream, std::string(k200) + kLength9) + data(stream, "part");
  });
}

TEST_CASE("an HTTP/2 connection that breaks before the body leaves no empty response") {
  check_breaks([](const auto& stream) { return headers(stream); });
}

TEST_CASE("each of several requests on an HTTP/2 connection that breaks is broken") {
  for (const int count : {2, 3, 8}) {
    for (const std::size_t i : kErrors) {
      for (const bool at_once : {true, false}) {
        CAPTURE(count);
        CAPTURE(i);
        CAPTURE(at_once);
        const auto outcomes = several(count, [&](const Streams& streams) {
          std::string parts;
          for (const auto& one : streams) parts += headers(one) + data(one, "part");
          return together({parts, errors(streams.back())[i]}, at_once);
        });
        for (const auto& outcome : outcomes) check_broken(outcome);
      }
    }
  }
}

TEST_CASE("a response without a length is complete while others on its connection go on") {
  for (const bool at_once : {true, false}) {
    CAPTURE(at_once);
    const auto outcomes = several(3, [&](const Streams& streams) {
      return together({headers(streams[0]) + data(streams[0], "whole", kEndStream),
                       headers(streams[1]) + data(streams[1], "who"),
                       headers(streams[2]) + data(streams[2], "whole", kEndStream),
                       data(streams[1], "le", kEndStream)},
                      at_once);
    });
    for (const auto& outcome : outcomes) {
      REQUIRE(outcome);
      CHECK(outcome->body == "whole");
    }
  }
}

// libcurl 8.14 may find first that it cannot write, and then loses the end of the stream.
TEST_CASE("a response that is complete stays so if its connection is closed in the next one") {
  const bool loses_end = !libcurl_before(0x080000) && libcurl_before(0x081600);
  for (const bool with_length : {true, false}) {
    for (const bool at_once : {true, false}) {
      CAPTURE(with_length);
      CAPTURE(at_once);
      const auto fields = std::string(k200) + (with_length ? kLength9 : "");
      const auto outcomes = several(2, [&](const Streams& streams) {
        return together({headers(streams[0], fields) + data(streams[0], "all of it", kEndStream),
                         headers(streams[1]) + data(streams[1], "part"), kHangUp},
                        at_once);
      });
      CHECK_FALSE(outcomes[1]);
      if (loses_end && !with_length && at_once && !outcomes[0]) {
        CHECK(outcomes[0].error().code == Errc::Send);
        CHECK(outcomes[0].error().exchange.sent == Sent::Answered);
        continue;
      }
      if (!outcomes[0]) FAIL(outcomes[0].error().message);
      CHECK(outcomes[0]->body == "all of it");
    }
  }
}

TEST_CASE("a response is complete if its connection is closed right after it") {
  for (const auto& fields : {std::string(k200), std::string(k200) + kLength9}) {
    CAPTURE(fields);
    const auto outcomes = two(
        [&](const std::string& stream) {
          return together({headers(stream, fields), data(stream, "all of it", kEndStream), kHangUp},
                          true);
        },
        2, "POST");
    for (const auto& outcome : outcomes) {
      if (!outcome) FAIL(outcome.error().message);
      CHECK(outcome->body == "all of it");
    }
  }
}

TEST_CASE("a response is complete with its last byte, though its stream stays open") {
  const auto outcomes = two(
      [](const std::string& stream) {
        return Pieces{headers(stream, std::string(k200) + kLength9), data(stream, "all of it")};
      },
      1, "POST");
  for (const auto& outcome : outcomes) {
    REQUIRE(outcome);
    CHECK(outcome->body == "all of it");
  }
}

TEST_CASE("a response over HTTP/2 without a length ends with its stream") {
  for (const bool at_once : {true, false}) {
    const auto outcomes = two(
        [&](const std::string& stream) {
          return together({headers(stream), data(stream, "who"), data(stream, "le", kEndStream)},
                          at_once);
        },
        1);
    for (const auto& outcome : outcomes) {
      REQUIRE(outcome);
      CHECK(outcome->body == "whole");
    }
  }
}

TEST_CASE("a response is complete where the server says goodbye before, during or after it") {
  const std::string later("\x7f\xff\xff\xff");  // this stream, and all others so far
  for (std::size_t when = 0; when <= 3; ++when) {
    for (const bool at_once : {true, false}) {
      // A goodbye that comes later meets the next request.
      if (when == 3 && !at_once) continue;
      for (const bool graceful : {true, false}) {
        CAPTURE(when);
        CAPTURE(at_once);
        CAPTURE(graceful);
        const auto outcomes = two(
            [&](const std::string& stream) {
              Pieces pieces{headers(stream), data(stream, "who"), data(stream, "le", kEndStream)};
              pieces.insert(pieces.begin() + static_cast<std::ptrdiff_t>(when),
                            goaway(graceful ? later : stream));
              return together(pieces, at_once);
            },
            2);
        for (const auto& outcome : outcomes) {
          REQUIRE(outcome);
          CHECK(outcome->body == "whole");
        }
      }
    }
  }
}

TEST_CASE("a goodbye through one of two requests on a connection counts for both") {
  for (const bool at_once : {true, false}) {
    CAPTURE(at_once);
    const auto outcomes = several(2, [&](const Streams& streams) {
      const auto& one = streams[0];
      const auto& other = streams[1];
      return together({goaway(other), headers(one), headers(other), data(one, "who"),
                       data(one, "le", kEndStream), data(other, "whole", kEndStream)},
                      at_once);
    });
    for (const auto& outcome : outcomes) {
      REQUIRE(outcome);
      CHECK(outcome->body == "whole");
    }
  }
}

TEST_CASE("a response is complete with its last byte, whatever ends its stream") {
  struct Row {
    const char* method;
    std::string fields;
    std::string body;
  };
  const std::vector<Row> rows{{"POST", std::string(k200) + kLength0, ""},
                              {"POST", std::string(k200) + kLength9, "all of it"},
                              {"HEAD", k200, ""},
                              {"HEAD", std::string(k200) + kLength9, ""},
                              {"POST", k204, ""},
                              {"POST", k304, ""}};
  for (const auto& row : rows) {
    for (const int why : {kNoError, kInternalError, kCancel}) {
      CAPTURE(row.method);
      CAPTURE(row.fields);
      CAPTURE(why);
      const auto outcomes = two(
          [&](const std::string& stream) {
            Pieces pieces{headers(stream, row.fields)};
            if (!row.body.empty()) pieces.push_back(data(stream, row.body));
            pieces.push_back(reset(stream, why));
            return pieces;
          },
          1, row.method);
      for (const auto& outcome : outcomes) {
        REQUIRE(outcome);
        CHECK(outcome->body == row.body);
        CHECK(outcome->exchange.wire_sends == 1);
      }
    }
  }
}

// libcurl 7.88 may receive such a response while it still sends, and then not notice its end: one
// of ten waited here for its stall_timeout.
TEST_CASE("a POST that is answered at once ends at once, in a call that blocks") {
  const FrameServer server([](const std::string& stream, int /*number*/) {
    return FrameServer::Pieces{headers(stream, k200, kEndStream)};
  });
  auto options = ClientOptions();
  options.connection.ca_file = server.ca_file();
  options.middlewares = {};
  Client client(options);
  for (int i = 0; i < 50; ++i) {
    auto request = Request::post(server.url(), "small");
    request.edit_options().fresh_connection = i % 2 == 0;
    request.edit_options().stall_timeout = std::chrono::seconds(5);
    const auto outcome = client.send(request);
    if (!outcome) FAIL(outcome.error().message);
    CHECK(outcome->status == 200);
  }
}

TEST_CASE("a response whose stream is reset before its last byte is a part") {
  struct Row {
    std::string fields;
    std::string body;
    int why;
  };
  const auto length9 = std::string(k200) + kLength9;
  for (const auto& row :
       {Row{length9, "all of i", kNoError}, Row{length9, "", kNoError},
        Row{length9, "all of i", kInternalError}, Row{k200, "all of it", kInternalError}}) {
    CAPTURE(row.body);
    CAPTURE(row.why);
    const auto outcomes = two(
        [&](const std::string& stream) {
          return Pieces{headers(stream, row.fields), data(stream, row.body),
                        reset(stream, row.why)};
        },
        1, "POST");
    for (const auto& outcome : outcomes) check_broken(outcome);
  }
}

TEST_CASE("a response without a body is complete, however the connection ends") {
  struct Row {
    const char* method;
    const char* fields;
  };
  for (const auto& row : {Row{"HEAD", k200}, Row{"GET", k204}, Row{"GET", k304}}) {
    CAPTURE(row.method);
    const auto outcomes = two(
        [&](const std::string& stream) {
          return Pieces{headers(stream, row.fields, kEndStream) + errors(stream)[2]};
        },
        2, row.method);
    for (const auto& outcome : outcomes) CHECK(outcome);
  }
}
