// What a server can have seen, from the order of sends and responses alone.
#include "lib/core/curl/send_tracker.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

using namespace httpretry;

namespace {

// Events, in order, and what is known after them. "new" and "reused": libcurl is about to send, on
// such a connection, and may; "stop": it is about to send, and must not; a number: the status of a
// final response, "200 without body" where the request had gone out without its own; last, how it
// ended: "died": the connection; "refused": the server did not process it.
struct Row {
  const char* name;
  std::vector<std::string_view> events;
  int sends;
  Sent sent;
  bool reused = false;
  bool stale = false;
  bool refused = false;
};

SendTracker after(const std::vector<std::string_view>& events) {
  SendTracker tracker;
  for (const auto event : events) {
    if (event == "died" || event == "refused") continue;
    if (event == "new" || event == "reused") {
      CHECK(tracker.count_if_allowed(event == "reused", 1234));
    } else if (event == "stop") {
      CHECK_FALSE(tracker.count_if_allowed(false, 1234));
    } else {
      tracker.response_came(std::stoi(std::string(event)), event.ends_with("without body"));
    }
  }
  return tracker;
}

Exchange described(const std::vector<std::string_view>& events) {
  const auto last = events.empty() ? std::string_view() : events.back();
  Exchange exchange;
  after(events).describe(exchange, last == "died", last == "refused");
  return exchange;
}

}  // namespace

TEST_CASE("one exchange is one send, and what the server can have seen follows from the count") {
  const std::vector<Row> rows{
      {"nothing was sent", {}, 0, Sent::Never},
      {"sent, no response", {"new"}, 1, Sent::Maybe},
      {"sent and answered", {"new", "200"}, 1, Sent::Answered},
      {"sent on a reused connection", {"reused", "200"}, 1, Sent::Answered, true},
      {"an error status is a response", {"new", "503"}, 1, Sent::Answered},
      {"a dead reused connection", {"reused", "died"}, 1, Sent::Maybe, true, true},
      {"libcurl wants to send again there", {"reused", "stop", "died"}, 1, Sent::Maybe, true, true},
      {"a dead new connection", {"new", "died"}, 1, Sent::Maybe},
      {"a refused stream", {"new", "stop", "refused"}, 1, Sent::Maybe, false, false, true},
      {"a refused stream on a reused connection",
       {"reused", "refused"},
       1,
       Sent::Maybe,
       true,
       false,
       true},
      {"a response is not followed by another send", {"new", "200", "stop"}, 1, Sent::Answered},
      {"a 503 is not either", {"new", "503", "stop"}, 1, Sent::Answered},
      {"a round of authentication", {"new", "401", "reused", "200"}, 2, Sent::Answered},
      {"a round of a proxy's authentication", {"new", "407", "new", "200"}, 2, Sent::Answered},
      {"libcurl's own send after a 417", {"new", "417", "stop"}, 1, Sent::Answered},
      {"a success without the body may be followed by the body",
       {"new", "200 without body", "reused", "200"},
       2,
       Sent::Answered},
      {"if the body does not follow, it is no answer", {"new", "200 without body"}, 1, Sent::Maybe},
      {"a body is not followed by another send",
       {"new", "200 without body", "new", "200", "stop"},
       2,
       Sent::Answered},
      {"the second round is not answered yet", {"new", "401", "new"}, 2, Sent::Maybe},
      {"the connection dies in the second round", {"new", "401", "new", "died"}, 2, Sent::Maybe},
      {"a refused second round", {"new", "401", "new", "refused"}, 2, Sent::Maybe},
      {"the same on a reused connection",
       {"reused", "401", "reused", "died"},
       2,
       Sent::Maybe,
       true,
       true},
  };
  for (const auto& row : rows) {
    INFO(row.name);
    const auto exchange = described(row.events);
    CHECK(exchange.wire_sends == row.sends);
    CHECK(exchange.sent == row.sent);
    CHECK(exchange.reused_connection == row.reused);
    CHECK(exchange.stale_connection == row.stale);
    CHECK(exchange.refused == row.refused);
  }
}

TEST_CASE("a server that asks for authentication for ever gets five sends") {
  SendTracker tracker;
  for (int i = 0; i < 5; ++i) {
    CHECK(tracker.count_if_allowed(false, 1));
    tracker.response_came(401, false);
  }
  CHECK_FALSE(tracker.count_if_allowed(false, 1));
  CHECK(tracker.sends == 5);
  CHECK(tracker.answered);
}

TEST_CASE("only the first send says whether the connection was reused, and from which port") {
  SendTracker tracker;
  CHECK(tracker.count_if_allowed(false, 1));
  tracker.response_came(401, false);
  CHECK(tracker.count_if_allowed(true, 2));
  CHECK_FALSE(tracker.reused);
  CHECK(tracker.local_port == 1);
}

TEST_CASE("a connection is stale only where it was reused and may have carried the request") {
  CHECK(described({"reused", "died"}).stale_connection);
  CHECK_FALSE(described({"new", "died"}).stale_connection);
  CHECK_FALSE(described({"reused", "200", "died"}).stale_connection);
  CHECK_FALSE(described({"died"}).stale_connection);
}
