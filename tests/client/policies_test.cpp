// Where a client's policies come from, and what a file that changes does to its calls.
#include "policies.hpp"
#include "conversation.hpp"
#include "heard.hpp"

#include "tests/policy/temporary.hpp"

#include <httpretry/guard/local_state.hpp>
#include <httpretry/middleware/retry.hpp>
#include <httpretry/policy/policy_set.hpp>
#include <httpretry/policy/policy_source.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// A file with one policy for all, and entries behind.
std::string file_with(const std::string& policy, const std::string& endpoints = {}) {
  return R"({"version": 1, "default": )" + policy + R"(, "endpoints": [)" + endpoints + "]}";
}

std::string attempts(int count) {
  return R"({"max_attempts": )" + std::to_string(count) +
         R"(, "max_elapsed_time": "1h", "backoff": {"kind": "constant", "interval": "10s"},
              "throttle_backoff": "none", "budget": "none", "allow": ["no_budget"]})";
}

std::string thrifty(const char* scope, int attempts = 2, int capacity = 100) {
  return R"({"max_attempts": )" + std::to_string(attempts) +
         R"(, "backoff": {"kind": "none"}, "throttle_backoff": "none",
         "budget": {"kind": "tokens", "capacity": )" +
         std::to_string(capacity) + R"(, "retry_cost": 10, "scope": ")" + scope + "\"}}";
}

struct Talk : Conversation {
  Client with(const PolicySource& policies, MiddlewarePtr middleware = retry()) {
    ClientOptions options;
    options.middlewares = {std::move(middleware)};
    options.policies = policies;
    options.scheduler = clock;
    options.transport = network;
    options.observers = {heard};
    options.random = fixed_random(0.5);
    return Client(options);
  }
  [[nodiscard]] std::ptrdiff_t count(const std::string& line) const {
    const auto lines = heard->lines();
    return std::count(lines.begin(), lines.end(), line);
  }
};

std::size_t attempts_of(const Outcome& outcome) { return history_of(outcome).attempts.size(); }

std::int64_t left_after(Client& client, const std::string& url) {
  const auto outcome = client.get(url);
  return history_of(outcome).attempts.back().budget_left.value();
}

}  // namespace

TEST_CASE("a client's policies are those of a middleware retry that has none of its own") {
  Talk talk;
  talk.network->say(Response(503));
  const auto policies = parse_policies(file_with(attempts(3)), "p.json").value();
  CHECK(attempts_of(talk.with(policies).get("http://x/")) == 3);

  auto own = steady_policy();
  own.max_attempts = 2;
  CHECK(attempts_of(talk.with(policies, retry(own)).get("http://x/")) == 2);
  CHECK(attempts_of(talk.with(policies, retry(PolicySet())).get("http://x/")) == 5);
  CHECK(attempts_of(talk.client({retry(policies)}).get("http://x/")) == 3);
  CHECK(attempts_of(talk.client({retry()}).get("http://x/")) == 5);
}

TEST_CASE("the endpoint of a request depends on its headers and its query, as they are sent") {
  Talk talk;
  talk.network->say(Response(503));
  const auto entry = [](const char* match, int count) {
    return std::string(R"({"match": {)") + match + R"(}, "policy": )" + attempts(count) + "}";
  };
  const auto policies =
      parse_policies(file_with(attempts(1), entry(R"("headers": {"X-Tier": "gold"})", 2) + ", " +
                                                entry(R"("host": "x", "query": {"do": "*"})", 3)),
                     "p.json")
          .value();
  auto client = talk.with(policies);
  const auto sent_with = [&](std::string_view tier) {
    return client.send(Request::get("http://y/").set_header("x-tier", tier));
  };
  CHECK(attempts_of(client.get("http://y/")) == 1);
  CHECK(attempts_of(sent_with("gold")) == 2);
  CHECK(attempts_of(sent_with("silver")) == 1);
  CHECK(attempts_of(client.get("http://x/?do=it")) == 3);
  // What a middleware above adds counts, too.
  auto added = talk.client({default_headers({{"X-Tier", "gold"}}), retry(policies)});
  CHECK(attempts_of(added.get("http://y/")) == 2);
}

TEST_CASE("policies that no middleware would retry by are refused when the client is made") {
  ClientOptions options;
  options.policies = PolicySet();
  options.middlewares = {timeout(1s)};
  CHECK_THROWS_WITH_AS(Client{options},
                       "the client has policies but no retry middleware: add retry() to its "
                       "middlewares",
                       std::invalid_argument);
}

TEST_CASE("a changed file counts for the calls that begin after it, and is told once") {
  const Heard log;
  const TemporaryFile file(file_with(attempts(2)));
  Talk talk;
  talk.network->say(Response(503));
  auto client = talk.with(PolicySource::watch(file.path()).value());
  CHECK(attempts_of(client.get("http://x/")) == 2);

  file.replace(file_with(attempts(3)));
  talk.clock->advance(1s);
  CHECK(attempts_of(client.get("http://x/")) == 3);
  CHECK(attempts_of(client.get("http://x/")) == 3);
  CHECK(talk.count("policies accepted") == 1);
  CHECK(log.text() == "info: httpretry: the policies of " + file.path() + " were reloaded\n");
}

TEST_CASE("a call in flight keeps the policy that it began with") {
  const Heard log;
  const TemporaryFile file(file_with(attempts(4)));
  Talk talk;
  talk.network->say(Response(503));
  auto client = talk.with(PolicySource::watch(file.path()).value());
  auto early = client.send_async(Request::get("http://x/"));
  talk.clock->advance(5s);  // the call waits for its second attempt
  REQUIRE(talk.sends() == 1);

  file.write(file_with(attempts(1)));
  auto late = client.send_async(Request::get("http://x/"));
  talk.clock->advance(10min);
  CHECK(attempts_of(late.get()) == 1);
  CHECK(attempts_of(early.get()) == 4);
}

TEST_CASE("a bad file, and one that is gone, keep what was good; the log and an event say why") {
  const Heard log;
  const TemporaryFile file(file_with(attempts(2)));
  Talk talk;
  talk.network->say(Response(503));
  auto client = talk.with(PolicySource::watch(file.path()).value());
  file.write(file_with(R"({"max_attempts": 0})"));
  for (auto i = 0; i < 3; ++i) {
    talk.clock->advance(1s);
    CHECK(attempts_of(client.get("http://x/")) == 2);
  }
  CHECK(talk.count("policies refused") == 1);
  file.remove();
  for (auto i = 0; i < 3; ++i) {
    talk.clock->advance(1s);
    CHECK(attempts_of(client.get("http://x/")) == 2);
  }
  CHECK(talk.count("policies refused") == 2);
  CHECK(log.text() ==
        "error: httpretry: " + file.path() + " is refused; the previous policies stay in force:\n" +
            file.path() +
            ":1:44: /default/max_attempts: 0 is out of range: at least 1; the first send counts\n" +
            "error: httpretry: " + file.path() +
            " is refused; the previous policies stay in force:\n" + file.path() +
            ": cannot be read: No such file or directory\n");
  file.write(file_with(attempts(3)));
  talk.clock->advance(1s);
  CHECK(attempts_of(client.get("http://x/")) == 3);
  CHECK(talk.count("policies accepted") == 1);
}

TEST_CASE("an explicit reload counts at once, without the clock") {
  const Heard log;
  const TemporaryFile file(file_with(attempts(2)));
  Talk talk;
  talk.network->say(Response(503));
  const auto source = PolicySource::watch(file.path()).value();
  auto client = talk.with(source);
  file.write(file_with(attempts(3)));
  REQUIRE(source.reload().has_value());
  CHECK(attempts_of(client.get("http://x/")) == 3);
  CHECK(talk.count("policies accepted") == 1);
}

TEST_CASE("budgets survive a reload for what stays, wherever it stands in the file") {
  const Heard log;
  const std::string a = R"({"match": {"host": "a"}, "policy": )";
  const std::string b = R"({"match": {"host": "b"}, "policy": )";
  const std::string named = R"({"name": "one", "match": {"host": "a"}, "policy": )";
  const std::string moved = R"({"name": "one", "match": {"host": "a", "path": "/**"}, "policy": )";
  for (const std::string scope : {"host", "endpoint", "policy"}) {
    CAPTURE(scope);
    const auto policy = thrifty(scope.c_str());
    const auto changed = thrifty(scope.c_str(), 3);  // the budget of a policy, not its attempts
    const TemporaryFile file(file_with("{}", a + policy + "}"));
    Talk talk;
    talk.network->say(Response(503));
    auto client = talk.with(PolicySource::watch(file.path()).value());
    CHECK(left_after(client, "http://a/") == 90);

    file.write(file_with("{}", b + policy + "}, " + a + changed + "}"));
    talk.clock->advance(1s);
    CHECK(left_after(client, "http://a/") == 70);
    CHECK(left_after(client, "http://b/") == 90);

    file.write(file_with("{}", named + policy + "}"));
    talk.clock->advance(1s);
    const auto left = left_after(client, "http://a/");
    CHECK(left == (scope == "host" ? 60 : 90));
    file.write(file_with("{}", b + policy + "}, " + moved + policy + "}"));
    talk.clock->advance(1s);
    CHECK(left_after(client, "http://a/") == left - 10);
  }
}

TEST_CASE("the budget of a policy with a name, and of the default, survive a reload") {
  const Heard log;
  const auto named = [](const std::string& before) {
    return R"({"version": 1, "policies": {)" + before + R"("p": )" + thrifty("policy") +
           R"(}, "default": "p"})";
  };
  const TemporaryFile file(named(""));
  Talk talk;
  talk.network->say(Response(503));
  auto client = talk.with(PolicySource::watch(file.path()).value());
  CHECK(left_after(client, "http://a/") == 90);
  file.write(named(R"("o": {}, )"));
  talk.clock->advance(1s);
  CHECK(left_after(client, "http://b/") == 80);

  file.write(file_with(thrifty("policy")));
  talk.clock->advance(1s);
  CHECK(left_after(client, "http://a/") == 90);
  file.write(file_with(thrifty("policy"), R"({"match": {"host": "c"}, "policy": {}})"));
  talk.clock->advance(1s);
  CHECK(left_after(client, "http://a/") == 80);
}

TEST_CASE("a budget goes on with the numbers of a file that was read again") {
  const Heard log;
  for (const bool shared : {false, true}) {
    CAPTURE(shared);
    for (const std::string scope : {"host", "endpoint", "policy"}) {
      CAPTURE(scope);
      // An entry, a policy with a name, and the default.
      const auto file_of = [&](int capacity) {
        const auto policy = thrifty(scope.c_str(), 2, capacity);
        return R"({"version": 1, "policies": {"p": )" + policy + R"(}, "default": )" + policy +
               R"(, "endpoints": [{"match": {"host": "a"}, "policy": )" + policy +
               R"(}, {"match": {"host": "b"}, "policy": "p"}]})";
      };
      const TemporaryFile file(file_of(100));
      Talk talk;
      talk.network->say(Response(503));
      ClientOptions options;
      options.middlewares = {retry()};
      options.policies = PolicySource::watch(file.path()).value();
      options.scheduler = talk.clock;
      options.transport = talk.network;
      if (shared) options.shared_state = local_state();
      Client client(options);
      for (const std::string url : {"http://a/", "http://b/", "http://c/"}) {
        CHECK(left_after(client, url) == 90);
      }

      file.write(file_of(50));
      talk.clock->advance(1s);
      CHECK(left_after(client, "http://a/") == 35);  // 45 of 50, and this retry
      file.write("no policies");
      talk.clock->advance(1s);
      CHECK(left_after(client, "http://a/") == 25);
      file.write(file_of(20));
      talk.clock->advance(1s);
      CHECK(left_after(client, "http://a/") == 0);  // 10 of 20
      CHECK(left_after(client, "http://b/") == 8);  // 18 of 20: two changes at once
      CHECK(left_after(client, "http://c/") == 8);
    }
  }
}

TEST_CASE("a budget of another kind begins anew") {
  const Heard log;
  const auto policy_of = [](const std::string& budget) {
    return R"({"max_attempts": 2, "backoff": {"kind": "none"}, "throttle_backoff": "none",
               "budget": {"kind": )" +
           budget + "}}";
  };
  const TemporaryFile file(file_with(thrifty("host")));
  Talk talk;
  talk.network->say(Response(503));
  const auto source = PolicySource::watch(file.path()).value();
  auto client = talk.with(source);
  CHECK(left_after(client, "http://a/") == 90);
  file.write(file_with(policy_of(R"("grpc", "max_tokens": 100, "token_ratio": 0.1)")));
  talk.clock->advance(1s);
  CHECK(left_after(client, "http://a/") == 98);  // both failures count
  CHECK(source.current(talk.clock->now()).reload->changed_budgets.empty());
}

TEST_CASE("a reload tells which budgets have other numbers, each once") {
  const Heard log;
  const auto file_of = [](int a, int b, int fallback) {
    const auto entry = [](const char* host, int capacity) {
      return R"({"match": {"host": ")" + std::string(host) + R"("}, "policy": )" +
             thrifty("host", 2, capacity) + "}";
    };
    return file_with(thrifty("host", 2, fallback), entry("a", a) + ", " + entry("b", b));
  };
  const TemporaryFile file(file_of(100, 100, 5000));
  const auto source = PolicySource::watch(file.path()).value();
  const auto changed = [&](int a, int b, int fallback) {
    file.replace(file_of(a, b, fallback));
    REQUIRE(source.reload().has_value());
    std::vector<std::pair<std::int64_t, std::int64_t>> capacities;
    for (const auto& one : source.current(Time()).reload->changed_budgets) {
      capacities.emplace_back(one.before.capacity / 1000, one.after.capacity / 1000);
    }
    return capacities;
  };
  using Capacities = std::vector<std::pair<std::int64_t, std::int64_t>>;
  CHECK(changed(100, 100, 5000) == Capacities{});
  CHECK(changed(50, 50, 5000) == Capacities{{100, 50}});
  CHECK(changed(50, 50, 5000) == Capacities{{100, 50}});
  CHECK(changed(50, 50, 4000) == Capacities{{100, 50}, {5000, 4000}});
  for (int capacity = 60; capacity < 200; ++capacity) changed(50, capacity, 4000);
  const auto latest = changed(50, 199, 4000);
  CHECK(latest.size() == 100);
  CHECK(latest.back() == std::pair<std::int64_t, std::int64_t>(198, 199));
}

TEST_CASE("each hop of a redirect is looked up when it begins") {
  const Heard log;
  const TemporaryFile file(file_with(attempts(1)));
  Talk talk;
  talk.network->say(redirect_to(302, "http://y/")).say(Response(503));
  const auto source = PolicySource::watch(file.path()).value();
  const auto turn = on_outcome("turn", [&](const Request&, Outcome& outcome, Call&) {
    if (!outcome || outcome->status != 302) return;
    file.write(file_with(attempts(2)));
    CHECK(source.reload().has_value());
  });
  ClientOptions options;
  options.middlewares = {redirect(), retry(), turn};
  options.policies = source;
  options.scheduler = talk.clock;
  options.transport = talk.network;
  CHECK(attempts_of(Client(options).get("http://x/")) == 1 + 2);
}
