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
  Request request = Request::get("http://x/");

  Result<void> run(std::vector<MiddlewarePtr> chain = {}) {
    auto client = talk.client(std::move(chain));
    return talk.clock->run(co_listen(
        client, *talk.clock, request,
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
      {"line ends of two kinds, one after the other",
       "data: a\r\n\ndata: b\n\n",
       {"message[]a", "message[]b"}},
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
      {"an id with another control byte, too",
       "id: 1\nid: a\x01\ndata: a\n\nid: \x7f\ndata: b\n\n",
       {"message[1]a", "message[1]b"}},
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

TEST_CASE("an event may be as large as the limit, with the line that is being read") {
  const auto all = [](const ServerEvent&) { return true; };
  const auto fits = [&](std::size_t limit, std::string_view stream) {
    EventParser parser(limit);
    return parser.parse(stream, all).has_value();
  };
  CHECK(fits(10, "data: abcd"));
  CHECK_FALSE(fits(9, "data: abcd"));
  CHECK(fits(14, "data:abc\ndata:defghi"));
  CHECK_FALSE(fits(13, "data:abc\ndata:defghi"));
  CHECK(fits(11, "data:abc\n\ndata:defghi"));
  CHECK_FALSE(fits(10, "data:abc\n\ndata:defghi"));
  EventParser parser(10);
  CHECK(parser.parse("data:", all));
  CHECK(parser.parse("abcde", all));
  CHECK_FALSE(parser.parse("f", all));
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

TEST_CASE("the stream of a request that must not be repeated is not requested again") {
  Listener listener;
  listener.request = Request::post("http://x/", "question");
  listener.talk.network->say(stream_of("id: 1\ndata: a\n\n"));
  CHECK(listener.run());
  CHECK(listener.events == std::vector<std::string>{"message[1]a"});
  CHECK(listener.talk.sends() == 1);
  // With an idempotency key it is.
  listener.request.set_header("Idempotency-Key", "k");
  listener.talk.network->say(stream_of("id: 2\ndata: b\n\n")).say(Response(204));
  CHECK(listener.run());
  CHECK(listener.events == std::vector<std::string>{"message[1]a", "message[2]b"});
  CHECK(listener.talk.sends() == 3);
}

TEST_CASE("what is no stream ends with an error, and the retry policy decides about failures") {
  struct Row {
    Outcome comes;
    Errc code;
    std::size_t sends;
  };
  for (const auto& row :
       {Row{Response(404, "why"), Errc::Status, 1}, Row{Response(503, "why"), Errc::Status, 5},
        Row{error_of(Errc::Connect), Errc::Connect, 5},
        Row{stream_of("data: a\n\n", "text/html"), Errc::Protocol, 1},
        Row{stream_of(std::string(2000, 'a')), Errc::TooLarge, 1}}) {
    CAPTURE(row.code);
    Listener listener;
    listener.options.max_event = 1000;
    std::vector<std::string> failures;
    listener.options.on_failure = [&](const Response& response) {
      failures.push_back(std::to_string(response.status) + " " + response.body);
    };
    listener.talk.network->say(row.comes);
    const auto ended = listener.run({retry()});
    REQUIRE_FALSE(ended);
    CHECK(ended.error().code == row.code);
    CHECK(listener.talk.sends() == row.sends);
    CHECK(listener.events.empty());
    if (row.code == Errc::Status) {
      CHECK(failures == std::vector{std::to_string(row.comes->status) + " why"});
    } else {
      CHECK(failures.empty());
    }
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

  Listener with_bad_id;
  with_bad_id.options.last_id = "7\r\nX-Evil: 1";
  CHECK(with_bad_id.run().error().message ==
        "EventStreamOptions::last_id contains a control byte (CR, LF, NUL or another)");
}

TEST_CASE("an error of the function that gets the events ends the stream") {
  Conversation talk;
  talk.network->say(stream_of("data: a\n\ndata: b\n\n"));
  auto client = talk.client({});
  int events = 0;
  const auto ended =
      listen(client, Request::get("http://x/"), [&](const ServerEvent& event) -> Result<bool> {
        ++events;
        if (event.data == "b") return Error(Errc::Timeout, "the disk is slow");
        return true;
      });
  REQUIRE_FALSE(ended);
  CHECK(ended.error().code == Errc::Timeout);
  CHECK(ended.error().message == "GET http://x/: the disk is slow");
  CHECK(events == 2);
  CHECK(talk.network->requests().size() == 1);
}

TEST_CASE("an exception of a function ends the stream, which is not requested again") {
  for (const bool from_on_open : {false, true}) {
    CAPTURE(from_on_open);
    Conversation talk;
    talk.network->say(stream_of("data: a\n\n"));
    auto client = talk.client({retry()});
    EventStreamOptions options;
    options.call.timeout = 20s;
    int ends = 0;
    options.on_open = [&](const Response&) {
      if (from_on_open) throw std::runtime_error("boom");
    };
    options.on_end = [&](const Outcome& outcome) {
      ++ends;
      CHECK_FALSE(outcome);
    };
    const auto ended = listen(
        client, Request::get("http://x/"),
        [](const ServerEvent&) -> Result<bool> { throw std::runtime_error("boom"); }, options);
    REQUIRE_FALSE(ended);
    CHECK(ended.error().code == Errc::Internal);
    CHECK(ended.error().message == std::string("GET http://x/: ") +
                                       (from_on_open ? "on_open" : "on_event") +
                                       " of the event stream threw: boom");
    CHECK(ends == 1);
    CHECK(talk.sends() == 1);
  }
}

TEST_CASE("a server cannot ask for a longer or shorter wait than is allowed") {
  struct Case {
    const char* retry;
    Duration max_reconnect;
    Duration wait;
  };
  for (const auto& each : {
           Case{"3600000", 5s, 5s},
           Case{"0", 5s, 100ms},
           Case{"99", 5s, 100ms},
           Case{"101", 5s, 101ms},
           Case{"0", 50ms, 50ms},
       }) {
    CAPTURE(each.retry);
    Listener listener;
    listener.options.max_reconnect = each.max_reconnect;
    const auto text = "retry: " + std::string(each.retry) + "\ndata: a\n\n";
    listener.talk.network->say(stream_of(text)).say(Response(204));
    CHECK(listener.run());
    const auto seen = listener.talk.network->requests();
    CHECK(seen[1].when - seen[0].when == each.wait);
  }
}

TEST_CASE("the limit on the server's wait does not shorten the wait of the options") {
  Listener listener;
  listener.options.reconnect = 5min;
  listener.talk.network->say(stream_of("data: a\n\n")).say(Response(204));
  CHECK(listener.run());
  const auto seen = listener.talk.network->requests();
  CHECK(seen[1].when - seen[0].when == 5min);
}

TEST_CASE("an id counts at the blank line that ends its event, and not before") {
  EventParser parser;
  CHECK(parsed(parser, "id: 1\ndata: a\n\nid: 2\ndata: b\n") ==
        std::vector<std::string>{"message[1]a"});
  CHECK(parser.last_id() == "1");
  parser.restart();
  CHECK(parsed(parser, "data: c\n\n") == std::vector<std::string>{"message[1]c"});
  CHECK(parsed(parser, "id: 3\n").empty());
  CHECK(parser.last_id() == "1");
  CHECK(parsed(parser, "\n").empty());
  CHECK(parser.last_id() == "3");
  parser.set_last_id("4");
  CHECK(parsed(parser, "data: d\n\n") == std::vector<std::string>{"message[4]d"});
}

TEST_CASE("a stream that breaks off within an event is requested again from the event before") {
  Listener listener;
  listener.talk.network->say(stream_of("id: 1\ndata: a\n\nid: 2\ndata: lost\n"))
      .say(stream_of("id: 2\ndata: b\n\n"))
      .say(Response(204));
  CHECK(listener.run());
  CHECK(listener.events == std::vector<std::string>{"message[1]a", "message[2]b"});
  REQUIRE(listener.talk.sends() == 3);
  CHECK(listener.talk.sent(1).headers()["Last-Event-ID"] == "1");
  CHECK(listener.talk.sent(2).headers()["Last-Event-ID"] == "2");
}

TEST_CASE("of a policy's limits, response_timeout is for streams, and stall_timeout is not") {
  struct Row {
    Duration of_request;
    Duration of_options;
    Duration counts;
  };
  for (const auto& row : {Row{kForever, kForever, kForever}, Row{kForever, 20s, 20s},
                          Row{10s, kForever, 10s}, Row{10s, 20s, 10s}}) {
    Conversation talk;
    talk.network->say(Response(204));
    ExchangeLimits limits;
    auto look = middleware("look", [&](Request request, Call& call, Next next) -> Task<Outcome> {
      limits = call.limits(request);
      const auto sending = next(std::move(request), call);
      Outcome outcome = co_await sending;
      co_return outcome;
    });
    auto policy = RetryPolicy::standard({.response_timeout = 5s});
    REQUIRE(policy.stall_timeout < kForever);
    auto client = talk.client({retry(policy), look});
    auto request = Request::get("http://x/");
    request.edit_options().stall_timeout = row.of_request;
    EventStreamOptions options;
    options.stall_timeout = row.of_options;
    const auto all = [](const ServerEvent&) { return true; };

    CHECK(listen(client, request, all, options));
    CHECK(limits.stall_timeout == row.counts);
    CHECK(limits.response_timeout == 5s);

    CHECK(talk.clock->run(co_listen(client, *talk.clock, request, all, options)));
    CHECK(limits.stall_timeout == row.counts);
    CHECK(limits.response_timeout == 5s);
  }
}

TEST_CASE("callbacks report that a stream opens, ends, and is requested again") {
  Listener listener;
  std::vector<std::string> told;
  listener.options.on_open = [&](const Response& head) {
    told.push_back("open " + std::string(head.headers["X-Number"]));
  };
  listener.options.on_end = [&](const Outcome& outcome) {
    told.push_back(outcome ? "end " + std::to_string(outcome->status) : "error");
  };
  listener.options.on_reconnect = [&](const Request& request) {
    told.push_back("again after " + std::string(request.headers()["Last-Event-ID"]));
  };
  for (const auto* number : {"1", "2"}) {
    auto stream = stream_of(std::string("id: ") + number + "\ndata: a\n\n");
    stream.headers.add("X-Number", number);
    listener.talk.network->say(stream);
    if (*number == '1') listener.talk.network->say(Response(503));  // the policy's matter
  }
  listener.enough = 2;
  CHECK(listener.run({retry()}));
  CHECK(told == std::vector<std::string>{"open 1", "end 200", "again after 1", "open 2", "error"});
}

TEST_CASE("listen waits by the clock of the client's scheduler") {
  Conversation talk;
  talk.network->say(stream_of("retry: 5000\ndata: a\n\n")).say(Response(204));
  auto client = talk.client({});
  CHECK(listen(client, Request::get("http://x/"), [](const ServerEvent&) { return true; }));
  const auto seen = talk.network->requests();
  REQUIRE(seen.size() == 2);
  CHECK(seen[1].when - seen[0].when == 5s);

  EventStreamOptions options;
  options.call.timeout = 4s;
  talk.network->say(stream_of("data: a\n\n"));
  const auto ended = listen(
      client, Request::get("http://x/"), [](const ServerEvent&) { return true; }, options);
  CHECK(ended.error().code == Errc::Timeout);
}

TEST_CASE("a stream ends with an error if one of its notifications throws") {
  for (const std::string name : {"on_end", "on_failure", "on_reconnect"}) {
    CAPTURE(name);
    Listener listener;
    auto& options = listener.options;
    const auto boom = [](const auto&) { throw std::runtime_error("boom"); };
    if (name == "on_end") options.on_end = boom;
    if (name == "on_failure") options.on_failure = boom;
    if (name == "on_reconnect") options.on_reconnect = boom;
    listener.talk.network->say(stream_of("data: a\n\n")).say(Response(404));
    const auto ended = listener.run();
    REQUIRE_FALSE(ended);
    CHECK(ended.error().code == Errc::Internal);
    CHECK(ended.error().message == name + " of the event stream threw: boom");
  }
}
