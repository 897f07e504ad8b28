// What one writes first works: default chain, headers in a call, a base URL, conversions.
#include "conversation.hpp"

#include <httpretry/body/sink.hpp>
#include <httpretry/http/url.hpp>
#include <httpretry/policy/policy_source.hpp>

#include <doctest/doctest.h>

#include <sstream>
#include <stdexcept>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

ClientOptions options_of(const Conversation& talk) {
  ClientOptions options;
  options.scheduler = talk.clock;
  options.transport = talk.network;
  return options;
}

Task<int> number(int value) { co_return value; }
Task<> nothing(int& runs) {
  ++runs;
  co_return;
}
Task<> failing() {
  throw std::runtime_error("failed");
  co_return;
}

Task<std::string> three_at_once(int& runs) {
  auto all = when_all(number(1), nothing(runs), number(2));
  const auto [first, none, last] = co_await all;
  static_assert(std::is_same_v<decltype(none), const std::monostate>);
  co_return std::to_string(first) + std::to_string(last);
}

}  // namespace

TEST_CASE("a client follows redirects and retries, unless its chain is empty") {
  Conversation talk;
  talk.network->say(redirect_to(302, "http://y/")).say(Response(503)).say(Response(200));
  auto options = options_of(talk);
  CHECK(Client(options).get("http://x/")->status == 200);
  CHECK(talk.sends() == 3);
  Conversation once;
  once.network->say(Response(503));
  options = options_of(once);
  options.middlewares = {};
  CHECK(Client(options).get("http://x/")->status == 503);
  CHECK(once.sends() == 1);
  Conversation failing;
  failing.network->say(error_of(Errc::Connect));
  const auto outcome = failing.client({}).get("http://x/");
  CHECK(history_of(outcome).stop_reason == Reason::NotRetryable);
}

TEST_CASE("a call takes its options") {
  Conversation talk;
  std::vector<Time> deadlines;
  auto client = talk.client({on_request(
      "look", [&](Request&, const Call& call) { deadlines.push_back(call.deadline()); })});
  CallOptions options;
  options.deadline = Time(5s);
  static_cast<void>(client.get("http://x/", {{"Accept", "text/plain"}}, options));
  static_cast<void>(client.head("http://x/", {}, options));
  static_cast<void>(client.del("http://x/", {}, options));
  static_cast<void>(client.post("http://x/", "text", "text/plain", {}, options));
  static_cast<void>(client.put("http://x/", "text", "text/plain", {}, options));
  static_cast<void>(client.patch("http://x/", "text", "text/plain", {}, options));
  CHECK(deadlines == std::vector<Time>(6, Time(5s)));
}

TEST_CASE("a call takes its headers, and a body its type") {
  Conversation talk;
  talk.network->say(Response(200));
  auto client = talk.client({});
  CHECK(client.get("http://x/", {{"Accept", "application/json"}}));
  CHECK(talk.sent(0).headers()["accept"] == "application/json");
  CHECK(client.post("http://x/", "{}", "application/json"));
  CHECK(talk.sent(1).headers()["Content-Type"] == "application/json");
  CHECK(client.put("http://x/", "{}", "application/json", {{"X-Tag", "1"}}));
  CHECK(talk.sent(2).headers()["X-Tag"] == "1");
  CHECK(client.post("http://x/", "{}"));
  CHECK(talk.sent(3).headers().empty());
}

TEST_CASE("a URL without a scheme is resolved against the base URL, and gets its query") {
  struct Row {
    const char* base;
    const char* url;
    const char* sent;
  };
  for (const auto& row : {
           Row{"https://api.example.com/v1/", "items",
               "https://api.example.com/v1/items?key=a%26b"},
           Row{"https://api.example.com/v1/", "/items", "https://api.example.com/items?key=a%26b"},
           Row{"https://api.example.com/v1/", "../v2/items",
               "https://api.example.com/v2/items?key=a%26b"},
           Row{"https://api.example.com", "items?page=2",
               "https://api.example.com/items?page=2&key=a%26b"},
           Row{"https://api.example.com/v1/", "", "https://api.example.com/v1/?key=a%26b"},
           Row{"https://api.example.com/v1/", "?page=2",
               "https://api.example.com/v1/?page=2&key=a%26b"},
           Row{"https://api.example.com/v1/", "items:batch?at=http://y/",
               "https://api.example.com/v1/items:batch?at=http://y/&key=a%26b"},
           // The key and the password go to their own origin only.
           Row{"https://me:pw@api.example.com/v1/", "items",
               "https://me:pw@api.example.com/v1/items?key=a%26b"},
           Row{"https://me:pw@api.example.com/v1/", "//other.example.com/",
               "https://other.example.com/"},
           Row{"https://api.example.com/v1/", "//other.example.com/", "https://other.example.com/"},
           Row{"https://api.example.com/v1/", "http://other.example.com/",
               "http://other.example.com/"},
       }) {
    CAPTURE(row.url);
    Conversation talk;
    talk.network->say(Response(200));
    auto options = options_of(talk);
    options.base_url = row.base;
    options.base_query = {{"key", "a&b"}};
    CHECK(Client(options).get(row.url));
    CHECK(talk.sent(0).url() == row.sent);
  }
}

TEST_CASE("a name of the base query is found in a URL however it is encoded there") {
  for (const auto* query : {"f[a]=1", "f%5Ba%5D=1", "f%5ba%5d=1", "%66[a%5D=1", "f[a]"}) {
    CAPTURE(query);
    Conversation talk;
    talk.network->say(Response(200));
    auto options = options_of(talk);
    options.base_url = "https://api.example.com/";
    options.base_query = {{"f[a]", "2"}};
    CHECK(Client(options).get(std::string("items?") + query));
    // Some versions of libcurl write the digits of an encoded byte in capitals.
    const auto expected = Url::parse(std::string("https://api.example.com/items?") + query);
    CHECK(talk.sent(0).url() == expected->to_string());
  }
}

TEST_CASE("a name that only looks like one of the base query does not stand for it") {
  for (const auto* query : {"f=1", "f%5Ba=1", "xf[a]=1", "f[a]x=1", "a=f[a]", "f%5Ba%5Dx", "f&a"}) {
    CAPTURE(query);
    Conversation talk;
    talk.network->say(Response(200));
    auto options = options_of(talk);
    options.base_url = "https://api.example.com/";
    options.base_query = {{"f[a]", "2"}};
    CHECK(Client(options).get(std::string("items?") + query));
    const auto without = Url::parse(std::string("https://api.example.com/items?") + query);
    CHECK(talk.sent(0).url() == without->to_string() + "&f%5Ba%5D=2");
  }
}

TEST_CASE("a base URL that cannot be one is refused") {
  for (const auto* base :
       {"api.example.com", "/v1", "ftp://x/", "https://x/?a=1", "https://x/#a", "https://x/v1"}) {
    CAPTURE(base);
    ClientOptions options;
    options.base_url = base;
    CHECK_THROWS_AS(Client{options}, std::invalid_argument);
  }
}

TEST_CASE("a time limit in seconds, a policy that was loaded, and one with few changes") {
  Conversation talk;
  talk.network->say(Response(200), 1s);
  CHECK(talk.client({timeout(0.5s)}).get("http://x/").error().code == Errc::Timeout);
  CHECK(talk.client({timeout(1500ms)}).get("http://x/"));
  CHECK_THROWS_WITH_AS(static_cast<void>(retry(PolicySet::load("/nonexistent"))),
                       "cannot read the policy file /nonexistent: No such file or directory",
                       Failure);
  CHECK_THROWS_AS(static_cast<void>(retry(PolicySource::watch("/nonexistent"))), Failure);
  const auto policy = RetryPolicy::standard({.max_attempts = 2, .response_timeout = 3s});
  auto expected = RetryPolicy();
  expected.max_attempts = 2;
  expected.response_timeout = 3s;
  CHECK(policy == expected);
  CHECK(RetryPolicy::standard({}) == RetryPolicy());
}

TEST_CASE("several tasks of different types at once") {
  int runs = 0;
  CHECK(sync_wait(three_at_once(runs)) == "12");
  CHECK(runs == 1);
  std::vector<Task<>> tasks;
  for (int i = 0; i < 3; ++i) tasks.push_back(nothing(runs));
  sync_wait(when_all(std::move(tasks)));
  CHECK(runs == 4);
  tasks.clear();
  tasks.push_back(failing());
  tasks.push_back(nothing(runs));
  CHECK_THROWS_WITH_AS(sync_wait(when_all(std::move(tasks))), "failed", std::runtime_error);
  CHECK(runs == 5);
}

TEST_CASE("words are printed, and a sink may be a function that takes all") {
  std::ostringstream out;
  out << Errc::Connect << ' ' << Class::Throttle << ' ' << Sent::Maybe << ' '
      << Reason::ElapsedExhausted;
  CHECK(out.str() == "connect throttle maybe elapsed_exhausted");
  Conversation talk;
  talk.network->say(Response(200, "body"));
  std::string text;
  auto request = Request::get("http://x/");
  request.edit_options().sink = pass_to([&](std::string_view bytes) { text += bytes; });
  CHECK(talk.client({}).send(request));
  CHECK(text == "body");
}
