// A server that is broken or hostile: whatever it sends, the process goes on, as if the server was
// away.
#include "fake_fleet.hpp"
#include "lines.hpp"
#include "redis_server.hpp"
#include "sender.hpp"

#include "lib/extras/fleet/fleet_state.hpp"
#include "lib/extras/fleet/redis_state.hpp"
#include "tests/waiting.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <csignal>
#include <future>
#include <limits>
#include <string>
#include <thread>
#include <vector>

using namespace httpretry;
using namespace httpretry::fleet;
using namespace std::chrono_literals;

namespace {

constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();

// The reply to one call of RedisState with a server that replies with `bytes` to its script.
template <class Reply, class Ask>
Reply reply_to(const std::string& key, const std::string& bytes, const Ask& ask) {
  FakeRedis server([&](const auto& words) {
    return FakeRedis::key_of(words).starts_with(key) ? bytes : usual(words);
  });
  std::promise<Reply> promise;
  RedisState state(options_for(server), nullptr);
  CHECK(ask(state, [&promise](const Reply& reply, Time) { promise.set_value(reply); }));
  return promise.get_future().get();
}

std::string repeated(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

}  // namespace

TEST_CASE("a server that sends what it must not is left, and asked again later") {
  struct Row {
    const char* name;
    std::string bytes;
    std::string why;
  };
  const std::string too_large = "the server sent a reply that is too large";
  const std::vector<Row> rows = {
      {"a reply too many", ":1\r\n:2\r\n", "the server sent a reply that belongs to no command"},
      {"many replies too many", repeated("+OK\r\n", 1000),
       "the server sent a reply that belongs to no command"},
      {"an error that nobody asked for", ":1\r\n-ERR max number of clients reached\r\n",
       "ERR max number of clients reached"},
      {"a list that is too long", "*2147483647\r\n", too_large},
      {"lists that together are too long",
       "*3\r\n*500000\r\n" + repeated("$-1\r\n", 500'000) + "*600000\r\n", too_large},
      {"lists that are nested too deeply", repeated("*1\r\n", 100'000), too_large},
      {"a length that is no number", "$x\r\n", ""},
      {"another protocol", "HTTP/1.1 400 Bad Request\r\n\r\n", ""},
  };
  for (const auto& row : rows) {
    CAPTURE(row.name);
    FakeRedis server([&](const FakeRedis::Words& words) {
      return words[0] == "GET" ? row.bytes : FakeRedis::usual(words);
    });
    std::promise<std::string> down;
    std::atomic<bool> is_down = false;
    auto options = options_for(server);
    options.on_change = [&](bool up, const std::string& why) {
      if (!up && !is_down.exchange(true)) down.set_value(why);
    };
    Link link(std::move(options));
    CHECK(link.wait_for_first().empty());
    // The first of two replies may have been passed on.
    static_cast<void>(ask(link, {"GET", "key"}));
    const auto why = down.get_future().get();
    CHECK(!why.empty());
    if (!row.why.empty()) CHECK(why == row.why);
    while (ask(link, {"PING"}).text != "PONG") continue;
  }
}

TEST_CASE("replies of every usual type are read, also in pieces of lists") {
  FakeRedis server([](const FakeRedis::Words& words) {
    if (words[0] != "GET") return FakeRedis::usual(words);
    return std::string("*5\r\n:-7\r\n*2\r\n$3\r\na\nb\r\n*0\r\n$-1\r\n-ERR no\r\n+OK\r\n");
  });
  Link link(options_for(server));
  const auto reply = ask(link, {"GET", "key"});
  REQUIRE(reply.list.size() == 5);
  CHECK(reply.at(0) == -7);
  CHECK(reply.list[1].list[0].text == "a\nb");
  CHECK(reply.list[1].list[1].kind == Reply::Kind::List);
  CHECK(reply.list[2].kind == Reply::Kind::Nil);
  CHECK(reply.list[3].kind == Reply::Kind::Error);
  CHECK(reply.list[4].text == "OK");
}

TEST_CASE("lists may be nested seven deep") {
  FakeRedis server([](const FakeRedis::Words& words) {
    if (words[0] != "GET") return FakeRedis::usual(words);
    return repeated("*1\r\n", std::stoi(words[1])) + ":5\r\n";
  });
  Link link(options_for(server));
  const auto deepest = ask(link, {"GET", "7"});
  const Reply* part = &deepest;
  for (int depth = 0; depth < 7; ++depth) {
    REQUIRE(part->list.size() == 1);
    part = &part->list[0];
  }
  CHECK(part->integer == 5);
  CHECK(ask(link, {"GET", "8"}).text == "the server sent a reply that is too large");
}

TEST_CASE("a server that replies in time gets no PING after that of the greeting") {
  std::atomic<int> pings = 0;
  FakeRedis server([&](const FakeRedis::Words& words) {
    if (words[0] == "PING") ++pings;
    return FakeRedis::usual(words);
  });
  Link link(options_for(server));
  CHECK(link.wait_for_first().empty());
  for (int i = 0; i < 3; ++i) CHECK(ask(link, {"GET", "key"}).kind == Reply::Kind::Nil);
  CHECK(pings == 1);
}

TEST_CASE("a server that is late gets nothing more until it has replied") {
  std::atomic<bool> stands_still = false;
  std::atomic<bool> got_more = false;
  std::atomic<const FakeRedis*> known = nullptr;
  FakeRedis server([&](const FakeRedis::Words& words) {
    if (words[0] == "GET") {
      while (stands_still) std::this_thread::yield();
      got_more = known.load()->has_unread(0);
    }
    return FakeRedis::usual(words);
  });
  known = &server;
  auto options = options_for(server);
  options.reply_timeout = 20ms;
  Link link(std::move(options));
  CHECK(link.wait_for_first().empty());
  stands_still = true;
  for (int i = 0; i < 4; ++i) CHECK(ask(link, {"GET", "key"}).lost());
  stands_still = false;
  wait_until([&] { return ask(link, {"PING"}).text == "PONG"; });
  CHECK_FALSE(got_more);
}

TEST_CASE("a server that greets and then ends each connection is asked more and more rarely") {
  FakeRedis server([](const FakeRedis::Words& words) {
    // A reply too many after the greeting.
    return words[0] == "PING" ? "+PONG\r\n+PONG\r\n" : FakeRedis::usual(words);
  });
  std::mutex mutex;
  std::vector<Time> downs;
  std::promise<void> enough;
  auto options = options_for(server);
  options.first_wait = 1ms;
  options.on_change = [&](bool up, const std::string& /*why*/) {
    const std::lock_guard lock(mutex);
    if (!up) downs.push_back(std::chrono::steady_clock::now());
    if (downs.size() == 8 && !up) enough.set_value();
  };
  Link link(std::move(options));
  enough.get_future().wait();
  const std::lock_guard lock(mutex);
  // The waits are at least half of 1, 2, 4, 8, 16, 32, 64 ms.
  CHECK(downs[7] - downs[0] >= 63ms);
}

TEST_CASE("a MOVED is followed, but nodes that name themselves or each other are asked rarely") {
  // Each reply names a node by its port; 0 stands for a value.
  std::atomic<int> first_names = 0;
  std::atomic<int> second_names = 0;
  const auto respond = [](const std::atomic<int>& port) {
    return [&port](const FakeRedis::Words& words) -> std::string {
      if (words[0] != "GET") return FakeRedis::usual(words);
      return port == 0 ? "+value\r\n" : "-MOVED 1 127.0.0.1:" + std::to_string(port) + "\r\n";
    };
  };
  FakeRedis first(respond(first_names));
  FakeRedis second(respond(second_names));
  const auto port_of = [](const FakeRedis& server) { return server.address().port; };
  auto options = options_for(first);
  options.first_wait = 100ms;
  {
    first_names = port_of(second);
    Link link(options);
    CHECK(ask(link, {"GET", "key"}).text == "value");
    CHECK(ask(link, {"GET", "key"}).text == "value");
    CHECK(first.connections() + second.connections() == 2);
  }
  for (const auto* const named : {&first, &second}) {
    first_names = port_of(*named);
    second_names = port_of(first);
    const auto before = first.connections() + second.connections();
    Link link(options);
    for (int i = 0; i < 1000; ++i) CHECK(ask(link, {"GET", "key"}).failed());
    // The waits double.
    CHECK(first.connections() + second.connections() - before <= 50);
  }
}

TEST_CASE("a MOVED without a host names a port of the same host, and one without a port nothing") {
  FakeRedis second(
      [](const auto& words) { return words[0] == "GET" ? "+value\r\n" : FakeRedis::usual(words); });
  const auto port = std::to_string(second.address().port);
  struct Row {
    std::string moved;
    bool is_followed;
  };
  for (const auto& row : std::vector<Row>{{"MOVED 1 :" + port, true},
                                          {"MOVED 1 127.0.0.1:" + port, true},
                                          {"MOVED 1 127.0.0.1", false},
                                          {"MOVED 1 127.0.0.1:", false},
                                          {"MOVED 1 127.0.0.1:x", false},
                                          {"MOVED a:1 " + port, false},
                                          {"MOVED " + port, false}}) {
    CAPTURE(row.moved);
    FakeRedis first([&](const FakeRedis::Words& words) {
      return words[0] == "GET" ? "-" + row.moved + "\r\n" : FakeRedis::usual(words);
    });
    Link link(options_for(first));
    CHECK(ask(link, {"GET", "key"}).text == (row.is_followed ? "value" : row.moved));
    CHECK(first.connections() == 1);
  }
}

TEST_CASE("a command that waits to be sent to another node is lost when the link ends") {
  FakeRedis silent([](const auto& /*words*/) { return std::string(); });
  const auto port = std::to_string(silent.address().port);
  FakeRedis first([&](const FakeRedis::Words& words) {
    return words[0] == "GET" ? "-MOVED 1 127.0.0.1:" + port + "\r\n" : FakeRedis::usual(words);
  });
  auto options = options_for(first);
  options.connect_timeout = 1h;  // the link waits for the greeting of the silent node
  std::string why;
  {
    Link link(options);
    CHECK(link.wait_for_first().empty());
    link.post({.words = {"GET", "key"}}, [&](const Reply& reply) { why = reply.text; });
    wait_until([&] { return silent.connections() == 1; });
  }
  CHECK(why == "the program ends");
}

TEST_CASE("a connection on which no reply arrives for long is replaced") {
  std::atomic<bool> stands_still = false;
  std::atomic<const FakeRedis*> known = nullptr;
  FakeRedis server([&](const FakeRedis::Words& words) {
    return stands_still && known.load()->connections() == 1 ? "" : FakeRedis::usual(words);
  });
  known = &server;
  auto options = options_for(server);
  options.reply_timeout = 20ms;
  Link link(std::move(options));
  CHECK(link.wait_for_first().empty());
  // A time in which it was asked for nothing does not count.
  const auto began = now_is();
  wait_until([&] { return now_is() - began >= 1s; });
  const auto asked = now_is();
  stands_still = true;
  wait_until([&] {
    static_cast<void>(ask(link, {"GET", "key"}));
    return server.connections() >= 2;
  });
  CHECK(now_is() - asked >= 1s);
  wait_until([&] { return ask(link, {"PING"}).text == "PONG"; });
}

TEST_CASE("a write to a connection that the server has ended raises no signal") {
  // hiredis 0.14 writes with write(), so the thread of a link must block SIGPIPE.
  FakeRedis server(FakeRedis::usual);
  std::promise<bool> blocks;
  auto options = options_for(server);
  options.on_change = [&](bool up, const std::string& /*why*/) {
    sigset_t blocked{};
    ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    if (up) blocks.set_value(::sigismember(&blocked, SIGPIPE) == 1);
  };
  Link link(std::move(options));
  CHECK(blocks.get_future().get());
}

TEST_CASE("a script whose reply has another form counts as an error, and is not asked at once") {
  GuardPolicy policy;
  policy.rate.emplace();
  policy.rate->requests = 1'000'000;
  policy.rate->burst = 1000;
  for (const auto* bytes : {"$-1\r\n", ":1\r\n", "+OK\r\n", "*0\r\n", "*3\r\n+a\r\n+b\r\n+c\r\n"}) {
    CAPTURE(bytes);
    FakeRedis server([&](const FakeRedis::Words& words) {
      return FakeRedis::key_of(words).starts_with("{httpretry}:rate") ? bytes : usual(words);
    });
    Lines lines;
    const auto state = std::make_shared<FleetState>(options_for(server));
    Sender sender(state, policy);
    // They go out under the share of this process.
    for (int i = 0; i < 100; ++i) CHECK(sender.send());
    CHECK(server.commands("{httpretry}:rate") <= 3);
    CHECK(lines.wait_for("ODD the reply to a script has an unexpected form"));
    CHECK(lines.count("ODD") == 1);
  }
}

TEST_CASE("a server that never has a token, and says that it has one at once, is not asked so") {
  GuardPolicy policy;
  policy.rate.emplace();
  FakeRedis server([&](const FakeRedis::Words& words) {
    const bool is_rate = FakeRedis::key_of(words).starts_with("{httpretry}:rate");
    return is_rate ? FakeRedis::list({0, 0, 0}) : usual(words);
  });
  const auto state = std::make_shared<FleetState>(options_for(server));
  Sender sender(state, policy);
  CHECK(sender.begin(/*limit=*/300ms).refused());
  // One each 5 ms, and not one for each reply.
  CHECK(server.commands("{httpretry}:rate") <= 70);
}

TEST_CASE("a send rate is asked for again when the server said, and not before") {
  FakeRedis server([&](const FakeRedis::Words& words) {
    const bool is_rate = FakeRedis::key_of(words).starts_with("{httpretry}:sends");
    return is_rate ? FakeRedis::list({1, 0, 3'600'000'000}) : usual(words);
  });
  const auto state = std::make_shared<FleetState>(options_for(server));
  const auto account =
      state->account("budget https://h", BudgetPolicy(), std::chrono::steady_clock::now());
  const auto take = [&] { return account->take_send(std::chrono::steady_clock::now()); };
  account->count_attempt(/*throttled=*/true, std::chrono::steady_clock::now());
  wait_until([&] { return take() > 0s; });
  CHECK(take() > 59min);
  repeat_for_ticks(server, take);
  CHECK(server.commands("{httpretry}:sends") == 1);
}

TEST_CASE("a process requests a slot for each send that waits, and none ahead") {
  std::atomic<int> most_wanted = 0;
  FakeRedis server([&](const FakeRedis::Words& words) {
    if (!FakeRedis::key_of(words).starts_with("{httpretry}:slots")) return usual(words);
    const auto wanted = std::stoi(words[7]);  // see kHoldSlots
    most_wanted = std::max(most_wanted.load(), wanted);
    return FakeRedis::list({wanted, 1, 0});
  });
  GuardPolicy policy;
  policy.concurrency.emplace();
  Sender sender(std::make_shared<FleetState>(options_for(server)), policy);
  repeat_for_ticks(server, [&] { CHECK(sender.send()); });
  CHECK(most_wanted == 1);
  const auto first = sender.begin();
  const auto second = sender.begin();
  CHECK_FALSE(first.refused());
  CHECK_FALSE(second.refused());
  CHECK(most_wanted == 2);
}

TEST_CASE("numbers out of range are bounded") {
  for (const auto number : {kMost, kLeast, std::int64_t{-1}}) {
    CAPTURE(number);
    const auto three = FakeRedis::list({number, number, number});
    const auto tokens = reply_to<RedisState::Tokens>(
        "{httpretry}:rate", three,
        [](auto& state, auto done) { return state.take_tokens("a", {}, 5, 0, done); });
    CHECK(!tokens.away);
    CHECK(tokens.count == (number > 0 ? 5 : 0));
    const auto slots = reply_to<RedisState::Slots>(
        "{httpretry}:slots", three,
        [](auto& state, auto done) { return state.hold_slots("a", 8, 0, 8, done); });
    CHECK(slots.granted == (number > 0 ? 8 : 0));
    const auto view = reply_to<RedisState::CircuitView>(
        "{httpretry}:circuit", FakeRedis::list(std::vector<std::int64_t>(9, number)),
        [](auto& state, auto done) { return state.vote("a", BreakerPolicy(), {}, done); });
    CHECK(view.until - std::chrono::steady_clock::now() <= 366 * 24h);
    CHECK(view.openings >= 0);
    CHECK(view.openings < std::numeric_limits<int>::max());
    CHECK(view.generation < kMost);
    const auto budget = reply_to<RedisState::BudgetView>(
        "{httpretry}:budget", ":" + std::to_string(number) + "\r\n", [](auto& state, auto done) {
          BudgetPolicy policy;
          policy.kind = BudgetPolicy::Kind::Tokens;
          return state.change_budget("a", policy, {}, done);
        });
    CHECK(std::abs(budget.balance) <= 1'000'000'000'000);
    const auto sends = reply_to<RedisState::SendsView>(
        "{httpretry}:sends", three,
        [](auto& state, auto done) { return state.send_rate("a", {}, done); });
    CHECK(sends.granted >= 0);
    CHECK(sends.ask_again > std::chrono::steady_clock::now() - 1s);
  }
}

TEST_CASE("a circuit that is open for longer than time lasts refuses, with the time left") {
  GuardPolicy policy;
  policy.breaker.emplace();
  FakeRedis server([&](const FakeRedis::Words& words) {
    const bool is_circuit = FakeRedis::key_of(words).starts_with("{httpretry}:circuit");
    return is_circuit ? FakeRedis::list({1, kMost, kMost, kMost, kMost, kMost, kMost, kMost, 0})
                      : usual(words);
  });
  const auto state = std::make_shared<FleetState>(options_for(server));
  Sender sender(state, policy);
  const auto sent = sender.begin(/*limit=*/5s);
  CHECK(sent.grant.held == QueuedBy::Circuit);
  CHECK(sent.grant.until - std::chrono::steady_clock::now() <= 366 * 24h);
}

TEST_CASE("more processes, pauses and circuits than there can be leave the limits usable" *
          doctest::test_suite("large")) {
  std::string pauses;
  std::string circuits;
  for (int i = 0; i < 50'000; ++i) {
    pauses += FakeRedis::bulk("pause " + std::to_string(i)) + ":" + std::to_string(kMost) + "\r\n";
  }
  const auto snapshot = "*4\r\n:" + std::to_string(kMost) + "\r\n*100000\r\n" + pauses + "*0\r\n" +
                        FakeRedis::bulk("1");
  FakeRedis server([&](const FakeRedis::Words& words) {
    const bool is_snapshot = FakeRedis::key_of(words) == "{httpretry}:processes:all";
    return is_snapshot ? snapshot : FakeRedis::usual(words);
  });
  std::promise<int> workers;
  {
    RedisState state(options_for(server), [&, is_first = true](const auto& got, Time) mutable {
      if (!got.away && std::exchange(is_first, false)) workers.set_value(1);
    });
    CHECK(workers.get_future().get() == 1);
    CHECK(state.workers() == 100'000);
  }
  const auto state = std::make_shared<FleetState>(options_for(server));
  GuardPolicy policy;
  policy.rate.emplace();
  Sender sender(state, policy);
  CHECK(sender.wait_until([&] { return state->states("pause", {}).size() >= 9'999; }));
  CHECK(state->states("pause", {}).size() <= 10'000);
  CHECK(sender.send());
}

TEST_CASE("each cause why limits are not shared is logged once, until they are shared again") {
  std::mutex mutex;
  std::string snapshot_error = "-OOM command not allowed. script: 1\r\n";
  FakeRedis server([&](const FakeRedis::Words& words) -> std::string {
    const auto key = FakeRedis::key_of(words);
    if (key.starts_with("{httpretry}:rate")) return "-WRONGTYPE Operation against a key\r\n";
    if (key.starts_with("{httpretry}:slots")) return "-OOM command not allowed. script: 2\r\n";
    if (key.starts_with("{httpretry}:sends")) return "-ERR one\r\n";
    if (key.starts_with("{httpretry}:budget")) return "-ERR two\x1b\r\n";
    const std::lock_guard lock(mutex);
    return !snapshot_error.empty() && !key.empty() ? snapshot_error : usual(words);
  });
  Lines lines;
  RedisState state(options_for(server), nullptr);
  BudgetPolicy budget;
  budget.kind = BudgetPolicy::Kind::Tokens;
  for (int i = 0; i < 3; ++i) {
    state.take_tokens("a", {}, 1, 0, [](const auto&, Time) {});
    state.hold_slots("a", 1, 0, 1, [](const auto&, Time) {});
    state.send_rate("a", {}, [](const auto&, Time) {});
    state.change_budget("a", budget, {}, [](const auto&, Time) {});
  }
  state.flush(5s);
  CHECK(lines.count("not shared") == 4);
  for (const auto* cause : {"OOM command", "WRONGTYPE", "ERR one", "ERR two"}) {
    CAPTURE(cause);
    CHECK(lines.count(cause) == 1);
  }
  CHECK(lines.count("\x1b") == 0);
  {
    const std::lock_guard lock(mutex);
    snapshot_error.clear();
  }
  CHECK(lines.wait_for("shared again"));
  // It was over, so it is news.
  state.hold_slots("a", 1, 0, 1, [](const auto&, Time) {});
  CHECK(lines.wait_for("OOM command", /*count=*/2));
}

TEST_CASE("of errors that differ each time, only ten are logged") {
  std::atomic<int> errors = 0;
  FakeRedis server([&](const FakeRedis::Words& words) {
    const bool is_slots = FakeRedis::key_of(words).starts_with("{httpretry}:slots");
    return is_slots ? "-ERR number " + std::to_string(++errors) + "\r\n" : usual(words);
  });
  Lines lines;
  RedisState state(options_for(server), nullptr);
  for (int i = 0; i < 12; ++i) state.hold_slots("a", 1, 0, 1, [](const auto&, Time) {});
  state.flush(5s);
  CHECK(errors == 12);
  CHECK(lines.count("limits are not shared") == 10);
  CHECK(lines.count("ERR number 10;") == 1);
}

TEST_CASE("a server that comes back and refuses the password is told of, besides its absence") {
  std::atomic<bool> refuses = false;
  FakeRedis server([&](const FakeRedis::Words& words) -> std::string {
    if (refuses && words[0] == "PING") return "-NOAUTH Authentication required.\r\n";
    return usual(words);
  });
  Lines lines;
  RedisState state(options_for(server), nullptr);
  state.flush(5s);
  refuses = true;
  server.set_resets(/*resets=*/true);
  CHECK(lines.wait_for("limits are not shared"));
  server.set_resets(/*resets=*/false);
  CHECK(lines.wait_for("NOAUTH"));
  CHECK(lines.count("not shared") == 2);
}
