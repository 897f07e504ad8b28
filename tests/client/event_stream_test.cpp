#include "conversation.hpp"

#include <httpretry/client/event_stream.hpp>

#include <doctest/doctest.h>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

std::string text_of(const ServerEvent& event) {
  return event.type + "[" + event.id + "]" + event.data;
}

// The events of a stream, cut into pieces at these places.
std::vector<std::string> parsed(EventParser& parser, std::string_view stream,
                                std::size_t piece = std::string_view::npos) {
  std::vector<std::string> events;
  while (!stream.empty()) {
    const auto part = stream.substr(0, piece);
    stream.remove_prefix(part.size());
    REQUIRE(parser.parse(part, [&](const ServerEvent& event) {
      events.push_back(text_of(event));
      return true;
    }));
  }
  return events;
}

Response stream_of(std::string events, const char* type = "text/event-stream") {
  Response response(200, std::move(events));
  response.headers.add("Content-Type", type);
  return response;
}

struct Listener {
  Conversation talk;
  std::vector<std::string> events;
  EventStreamOptions options;
  std::size_t enough = 1000;

  Result<void> run(std::vector<MiddlewarePtr> chain = {}) {
    auto client = talk.client(std::move(chain));
    return talk.clock->run(co_listen(
        client, *talk.clock, Request::get("http://x/"),
        [&](const ServerEvent& event) {
          events.push_back(text_of(event));
          return events.size() < enough;
        },
        options));
  }
};

}  // namespace

TEST_CASE("events are parsed as the standard says, wherever the stream is cut") {
  struct Row {
    const char* what;
    std::string stream;
    std::vector<std::string> events;
  };
  const Row rows[] = {
      {"one line", "data: a\n\n", {"message[]a"}},
      {"several lines", "data: a\ndata:b\ndata\n\n", {"message[]a\nb\n"}},
      {"one space is left out", "data:  a\n\n", {"message[] a"}},
      {"line ends of all kinds",
       "data: a\r\rdata: b\r\n\r\ndata: c\n\n",
       {"message[]a", "message[]b", "message[]c"}},
      {"types and ids",
       "event: add\nid: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n",
       {"add[1]a", "message[1]b", "message[]c"}},
      {"comments and unknown fields", ": hi\nnothing: x\n:\ndata: a\n\n", {"message[]a"}},
      {"without data there is no event", "event: add\n\nid: 7\n\ndata: a\n\n", {"message[7]a"}},
      {"what is incomplete is none", "data: a\n\ndata: b\n", {"message[]a"}},
      {"a byte order mark",
       "\xEF\xBB\xBF"
       "data: a\n\n",
       {"message[]a"}},
      {"an id with a NUL is ignored",
       std::string("id: 1\nid: a\0b\ndata: a\n\n", 23),
       {"message[1]a"}},
      {"an empty type", "event\ndata: a\n\n", {"message[]a"}},
  };
  for (const auto& row : rows) {
    CAPTURE(std::string(row.what));
    for (std::size_t piece = 1; piece <= row.stream.size(); ++piece) {
      CAPTURE(piece);
      EventParser parser;
      CHECK(parsed(parser, row.stream, piece) == row.events);
    }
  }
}

TEST_CASE("a server says when it wants to be asked again, in digits") {
  EventParser parser;
  CHECK_FALSE(parser.reconnect());
  parsed(parser, "retry: 1500\n");
  CHECK(parser.reconnect() == 1500ms);
  for (const auto* bad : {"retry: 1s\n", "retry: -1\n", "retry:\n", "retry: 99999999999\n"}) {
    parsed(parser, bad);
    CHECK(parser.reconnect() == 1500ms);
  }
}

TEST_CASE("an event that is too large is an error, in one line or in many") {
  for (const auto* piece : {"data: aaaaaaaa", "data: aaaaaaaa\n"}) {
    EventParser parser(100);
    Result<bool> more = true;
    for (int i = 0; i < 20 && more; ++i) {
      more = parser.parse(piece, [](const ServerEvent&) { return true; });
    }
    REQUIRE_FALSE(more);
    CHECK(more.error().code == Errc::TooLarge);
  }
}

TEST_CASE("a stream that ends or breaks is requested again, after its last event") {
  Listener listener;
  Error broken(Errc::Receive, "lost");
  listener.talk.network->say(stream_of("retry: 500\nid: 1\ndata: a\n\ndata: lost"))
      .say(stream_of("id: 2\ndata: b\n\n"))
      .say(Response(204));
  CHECK(listener.run());
  CHECK(listener.events == std::vector<std::string>{"message[1]a", "message[2]b"});
  REQUIRE(listener.talk.sends() == 3);
  CHECK_FALSE(listener.talk.sent(0).headers().contains("Last-Event-ID"));
  CHECK(listener.talk.sent(0).headers()["Accept"] == "text/event-stream");
  CHECK(listener.talk.sent(1).headers()["Last-Event-ID"] == "1");
  CHECK(listener.talk.sent(2).headers()["Last-Event-ID"] == "2");
  const auto seen = listener.talk.network->requests();
  CHECK(seen[1].when - seen[0].when == 500ms);
}

TEST_CASE("what is no stream ends with an error, and the retry policy decides about failures") {
  struct Row {
    Outcome comes;
    Errc code;
    std::size_t sends;
  };
  for (const auto& row : {Row{Response(404), Errc::Status, 1}, Row{Response(503), Errc::Status, 5},
                          Row{error_of(Errc::Connect), Errc::Connect, 5},
                          Row{stream_of("data: a\n\n", "text/html"), Errc::Protocol, 1},
                          Row{stream_of(std::string(2000, 'a')), Errc::TooLarge, 1}}) {
    CAPTURE(row.code);
    Listener listener;
    listener.options.max_event = 1000;
    listener.talk.network->say(row.comes);
    const auto ended = listener.run({retry()});
    REQUIRE_FALSE(ended);
    CHECK(ended.error().code == row.code);
    CHECK(listener.talk.sends() == row.sends);
    CHECK(listener.events.empty());
  }
}

TEST_CASE("a stream ends when enough was heard, at the deadline, and when it is stopped") {
  Listener enough;
  enough.enough = 2;
  enough.talk.network->say(stream_of("data: a\n\ndata: b\n\ndata: c\n\n"));
  CHECK(enough.run());
  CHECK(enough.events.size() == 2);

  Listener late;
  late.options.call.timeout = 10s;
  late.talk.network->say(stream_of("data: a\n\n"));
  CHECK(late.run().error().code == Errc::Timeout);
  CHECK(late.events.size() == 4);  // at 0, 3, 6 and 9 s

  Listener stopped;
  std::stop_source stop;
  stopped.options.call.stop = stop.get_token();
  stopped.options.last_id = "7";
  stopped.talk.network->say([&](const Request& request, int) {
    CHECK(request.headers()["Last-Event-ID"] == "7");
    stop.request_stop();
    return stream_of("data: a\n\n");
  });
  CHECK(stopped.run().error().code == Errc::Canceled);
}

TEST_CASE("a server cannot ask for a longer wait than is allowed") {
  Listener listener;
  listener.options.max_reconnect = 5s;
  listener.talk.network->say(stream_of("retry: 3600000\ndata: a\n\n")).say(Response(204));
  CHECK(listener.run());
  const auto seen = listener.talk.network->requests();
  CHECK(seen[1].when - seen[0].when == 5s);
}
