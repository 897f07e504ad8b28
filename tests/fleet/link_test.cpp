// A link against a real server: what is lost, and how it comes back.
#include "redis_server.hpp"

#include <doctest/doctest.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

using namespace httpretry;
using fleet::Link;
using fleet::Reply;
using namespace std::chrono_literals;

namespace {

const fleet::Script kAdd = {"return tonumber(ARGV[1]) + tonumber(ARGV[2])"};

// What a link tells of its server.
class Changes {
 public:
  void add(bool up, const std::string& why) {
    const std::lock_guard lock(mutex_);
    all_.push_back((up ? "up" : "down") + (why.empty() ? "" : ": " + why));
    changed_.notify_all();
  }
  // Waits until there are as many.
  std::vector<std::string> first(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return all_.size() >= count; });
    return all_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> all_;
};

Link::Options link_options(const fleet::Address& address, Changes* changes = nullptr) {
  Link::Options options;
  options.address = address;
  options.scripts = {&kAdd};
  options.reply_timeout = 250ms;  // this machine may be busy
  options.connect_timeout = 5s;
  options.first_wait = 5ms;
  options.longest_wait = 50ms;
  if (changes != nullptr) {
    options.on_change = [changes](bool up, const std::string& why) { changes->add(up, why); };
  }
  return options;
}

fleet::Command add(int a, int b) {
  fleet::Command command;
  command.script = &kAdd;
  command.words = {std::to_string(a), std::to_string(b)};
  return command;
}

}  // namespace

TEST_CASE("commands and scripts are replied to") {
  RedisServer server;
  Changes changes;
  Link link(link_options(server.address(), &changes));
  CHECK(link.wait_for_first().empty());
  CHECK(link.up());
  CHECK(ask(link, {"SET", "key", std::string("a\0b", 3)}).text == "OK");
  CHECK(ask(link, {"GET", "key"}).text == std::string("a\0b", 3));
  CHECK(ask(link, {"GET", "none"}).kind == Reply::Kind::Nil);
  CHECK(ask(link, {"GET"}).kind == Reply::Kind::Error);
  CHECK(ask(link, {"MGET", "key", "none"}).list.size() == 2);
  CHECK(ask(link, add(2, 3)).integer == 5);
  CHECK(changes.first(1) == std::vector<std::string>{"up"});
}

TEST_CASE("a script that the server has forgotten is sent whole") {
  RedisServer server;
  Link link(link_options(server.address()));
  CHECK(ask(link, add(1, 1)).integer == 2);
  CHECK(ask(link, {"SCRIPT", "FLUSH"}).text == "OK");
  CHECK(ask(link, add(1, 2)).integer == 3);
  // It is known again.
  const auto before = ask(link, {"INFO", "commandstats"}).text;
  CHECK(ask(link, add(1, 3)).integer == 4);
  const auto after = ask(link, {"INFO", "commandstats"}).text;
  CHECK(before.find("cmdstat_eval:calls=1,") != std::string::npos);
  CHECK(after.find("cmdstat_eval:calls=1,") != std::string::npos);
}

TEST_CASE("a password, a user and a database") {
  RedisServer server({"--requirepass", "hush", "--user", "ann", "on", ">secret", "~*", "+@all"});
  auto address = server.address();
  struct Row {
    const char* user;
    const char* password;
    const char* problem;
  };
  const std::vector<Row> rows = {
      {"", "hush", ""}, {"ann", "secret", ""}, {"", "wrong", "WRONGPASS"}, {"", "", "NOAUTH"}};
  for (const auto& row : rows) {
    CAPTURE(row.password);
    address.user = row.user;
    address.password = row.password;
    address.database = 3;
    Link link(link_options(address));
    const auto problem = link.wait_for_first();
    CHECK(problem.substr(0, std::string(row.problem).size()) == row.problem);
    CHECK(problem.empty() == (std::string(row.problem).empty()));
    if (problem.empty()) {
      CHECK(ask(link, {"CLIENT", "INFO"}).text.find(" db=3 ") != std::string::npos);
    } else {
      CHECK(ask(link, {"PING"}).lost());
    }
  }
}

TEST_CASE("a server that is not there is told at once, and found when it comes") {
  RedisServer server;
  server.kill();
  Changes changes;
  Link link(link_options(server.address(), &changes));
  CHECK(link.wait_for_first() == "Connection refused");
  CHECK(ask(link, {"PING"}).text == "Connection refused");
  server.start();
  CHECK(changes.first(2) == std::vector<std::string>{"down: Connection refused", "up"});
  CHECK(ask(link, {"PING"}).text == "PONG");
  // Its scripts are gone with it.
  server.kill();
  CHECK(changes.first(3).back().substr(0, 4) == "down");
  server.start();
  // Before that, there may be one more change: the reason, from a broken connection to a refused
  // one.
  std::size_t count = 4;
  if (changes.first(count).back().starts_with("down")) ++count;
  CHECK(changes.first(count).back() == "up");
  CHECK(ask(link, add(4, 4)).integer == 8);
}

TEST_CASE("a server that stands still is away after the limit, and back when it goes on") {
  RedisServer server;
  Changes changes;
  Link link(link_options(server.address(), &changes));
  CHECK(link.wait_for_first().empty());
  server.suspend();
  const auto reply = ask(link, {"INCR", "counter"});
  CHECK(reply.lost());
  CHECK(reply.text == "no response within 250 ms");
  CHECK(!link.up());
  CHECK(ask(link, {"INCR", "counter"}).lost());
  server.resume();
  CHECK(changes.first(3) ==
        std::vector<std::string>{"up", "down: no response within 250 ms", "up"});
  // The first was carried out later; the second was never sent.
  CHECK(ask(link, {"GET", "counter"}).text == "1");
}

TEST_CASE("what has no reply is lost when the link ends") {
  RedisServer server;
  Reply last;
  {
    Link link(link_options(server.address()));
    CHECK(link.wait_for_first().empty());
    server.suspend();
    fleet::Command command;
    command.words = {"PING"};
    link.post(command, [&](Reply reply) { last = std::move(reply); });
  }
  CHECK(last.text == "the program ends");
  server.resume();
}

TEST_CASE("a node of a cluster that has the keys elsewhere is left for the right one") {
  RedisServer first({"--cluster-enabled", "yes"});
  RedisServer second({"--cluster-enabled", "yes"});
  Link to_second(link_options(second.address()));
  {
    Link to_first(link_options(first.address()));
    CHECK(ask(to_first, {"CLUSTER", "ADDSLOTSRANGE", "0", "16383"}).text == "OK");
    const auto bus = std::to_string(second.port() + 10000);
    CHECK(
        ask(to_first, {"CLUSTER", "MEET", "127.0.0.1", std::to_string(second.port()), bus}).text ==
        "OK");
  }
  // It takes the second a moment to learn of the slots. Until then it refuses.
  fleet::Reply reply;
  do {
    reply = ask(to_second, {"SET", "{a}", "x"});
  } while (reply.kind == Reply::Kind::Error && reply.begins_with("CLUSTERDOWN"));
  CHECK(reply.text == "OK");
  Link to_first(link_options(first.address()));
  CHECK(ask(to_first, {"GET", "{a}"}).text == "x");
  CHECK(ask(to_second, add(3, 4)).integer == 7);
}
