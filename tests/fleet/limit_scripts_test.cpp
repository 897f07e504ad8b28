// The scripts of shared limits, on a real server.
#include "redis_server.hpp"

#include "lib/extras/fleet/limit_scripts.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

using namespace httpretry;
using fleet::Link;
using fleet::Reply;
using namespace std::chrono_literals;

namespace {

constexpr std::int64_t kSecond = 1'000'000;

class Scripts {
 public:
  Scripts() : link_(options()) {}

  Reply run(const fleet::Script& script, std::vector<std::string> keys,
            const std::vector<std::string>& arguments) {
    fleet::Command command;
    command.script = &script;
    command.keys = keys.size();
    command.words = std::move(keys);
    command.words.insert(command.words.end(), arguments.begin(), arguments.end());
    auto reply = ask(link_, std::move(command));
    CAPTURE(reply.text);
    REQUIRE(!reply.failed());
    return reply;
  }
  Reply run(const fleet::Script& script, const std::vector<std::int64_t>& arguments) {
    std::vector<std::string> words;
    for (const auto argument : arguments) words.push_back(std::to_string(argument));
    return run(script, {"{t}:key"}, words);
  }
  Link& link() { return link_; }

 private:
  Link::Options options() {
    Link::Options options;
    options.address = server_.address();
    options.scripts = fleet::limit_scripts();
    options.reply_timeout = 10s;
    return options;
  }
  RedisServer server_;
  Link link_;
};

}  // namespace

TEST_CASE("tokens: a burst at once, then one each interval, none further ahead than asked for") {
  Scripts scripts;
  // 1 an hour, burst 5, ahead 0: the time that passes here is of no account.
  const std::int64_t hour = 3600 * kSecond;
  const auto take = [&](std::int64_t wanted, std::int64_t back = 0, std::int64_t ahead = 0) {
    return scripts.run(fleet::kTakeTokens, {1, hour, 5, wanted, back, ahead});
  };
  CHECK(take(3).at(0) == 3);
  CHECK(take(9).at(0) == 2);
  const auto none = take(1);
  CHECK(none.at(0) == 0);
  CHECK(none.at(1) > hour - 60 * kSecond);
  CHECK(none.at(1) <= hour);
  CHECK(none.at(2) == none.at(1));  // when to ask again
  // One that may be used within two hours.
  const auto later = take(5, 0, hour * 3 / 2);
  CHECK(later.at(0) == 1);
  CHECK(later.at(1) > hour - 60 * kSecond);
  // What is given back can be taken.
  CHECK(take(0, 4, hour * 3 / 2).at(0) == 0);
  CHECK(take(9).at(0) == 3);
  // More than was ever taken makes it as new, and no more.
  CHECK(take(0, 100).at(0) == 0);
  CHECK(take(100).at(0) == 5);
}

TEST_CASE("tokens: rates whose interval is no whole number of microseconds keep their rate") {
  Scripts scripts;
  // 300 000/s: 3.33 us each. Taken one by one, the last is due when it should be.
  Reply last;
  for (int count = 0; count < 300; ++count) {
    last = scripts.run(fleet::kTakeTokens, {3, kSecond * 3600, 1, 1, 0, 1000 * 3600 * kSecond});
  }
  // 299 intervals of 1200 s after the first.
  const auto due = 299 * 1200 * kSecond;
  CHECK(last.at(0) == 1);
  CHECK(last.at(1) <= due);
  CHECK(last.at(1) > due - 60 * kSecond);
}

TEST_CASE("tokens: a key from a future that cannot be, for the clock was set back, is bounded") {
  Scripts scripts;
  const auto full = std::to_string(4'000'000'000LL * kSecond);
  CHECK(ask(scripts.link(), {"SET", "{t}:key", full}).text == "OK");
  const auto reply = scripts.run(fleet::kTakeTokens, {10, kSecond, 5, 1, 0, 100'000});
  CHECK(reply.at(0) == 0);
  CHECK(reply.at(2) <= 100'000);
}

TEST_CASE("reserved tokens: all rates or none, in the order of the queries") {
  Scripts scripts;
  // 60 requests and 600 tokens in 60 hours; the time that passes here is of no account.
  const std::int64_t hour = 3600 * kSecond;
  const auto reserve = [&](std::int64_t requests, std::int64_t cost, std::int64_t requests_back = 0,
                           std::int64_t cost_back = 0) {
    const auto reply =
        scripts.run(fleet::kReserveTokens, {60, 60 * hour, 2, requests, requests_back,  //
                                            600, 60 * hour, 600, cost, cost_back});
    return (reply.at(0) + hour / 20) / (hour / 10);  // in tenths of an hour, rounded
  };
  CHECK(reserve(1, 600) == 0);
  CHECK(reserve(1, 0) == 0);      // takes no tokens, so it need not wait for them
  CHECK(reserve(1, 100) == 100);  // 10 tokens an hour
  CHECK(reserve(1, 10) == 110);
  CHECK(reserve(1, 10, 1, 10) == 110);  // exchanged
  CHECK(reserve(0, 0, 1, 10) == 0);     // given back
  CHECK(reserve(1, 10) == 110);
  CHECK(reserve(1, 0) == 30);  // one request an hour
  // A policy with a single rate uses the same key.
  const auto single = scripts.run(fleet::kTakeTokens, {60, 60 * hour, 2, 1, 0, 0});
  CHECK(single.at(0) == 0);
  CHECK(single.at(2) > 0);
  // More than was ever reserved makes it as new.
  CHECK(reserve(0, 0, 100, 1000) == 0);
  CHECK(ask(scripts.link(), {"EXISTS", "{t}:key"}).integer == 0);
}

TEST_CASE("tokens: the key goes when it is as new") {
  Scripts scripts;
  scripts.run(fleet::kTakeTokens, {1, kSecond, 5, 1, 0, 0});
  const auto life = ask(scripts.link(), {"PTTL", "{t}:key"}).integer;
  CHECK(life > 0);
  CHECK(life <= 2000);
  scripts.run(fleet::kTakeTokens, {1, kSecond, 5, 0, 1, 0});
  CHECK(ask(scripts.link(), {"EXISTS", "{t}:key"}).integer == 0);
}

TEST_CASE("slots: the sum of all processes stays within the limit, and each has its share") {
  Scripts scripts;
  struct Step {
    const char* process;
    int used, wanted, granted, contended;
  };
  // Of 10, in this order.
  const std::vector<Step> steps = {
      {"a", 0, 4, 4, 0},                      // enough for all
      {"b", 0, 20, 6, 1},                     // what is left
      {"a", 4, 20, 4, 1},                     // its share is 5, but b uses 6
      {"b", 6, 20, 5, 1},                     // it may use only its share from here on
      {"b", 3, 20, 5, 1},                     // it has shrunk to its share
      {"a", 4, 20, 5, 1}, {"c", 0, 5, 0, 1},  // all are held
      {"a", 3, 20, 3, 1},                     // three shares now
      {"c", 0, 5, 2, 1},  {"b", 0, 0, 0, 1},  // it needs none
      {"c", 2, 5, 5, 1},
  };
  for (std::size_t index = 0; index < steps.size(); ++index) {
    CAPTURE(index);
    const auto& step = steps[index];
    const auto reply = scripts.run(
        fleet::kHoldSlots, {"{t}:key"},
        {"10", step.process, std::to_string(step.used), std::to_string(step.wanted), "60000000"});
    CHECK(reply.at(0) == step.granted);
    CHECK(reply.at(2) == step.contended);
  }
}

TEST_CASE("slots: at no time may processes that follow their grants have more than the limit") {
  Scripts scripts;
  const auto seed = 20261124U;
  CAPTURE(seed);
  std::mt19937 random(seed);
  std::vector<int> used(4, 0);
  std::vector<int> granted(4, 0);
  int most = 0;
  for (int step = 0; step < 2000; ++step) {
    const auto who = random() % 4;
    auto& its = used[who];
    if (its > 0 && random() % 2 == 0)
      its -= static_cast<int>(random() % static_cast<unsigned>(its + 1));
    const auto wanted = its + static_cast<int>(random() % 12);
    granted[who] = static_cast<int>(scripts
                                        .run(fleet::kHoldSlots, {"{t}:key"},
                                             {"10", std::to_string(who), std::to_string(its),
                                              std::to_string(wanted), "60000000"})
                                        .at(0));
    its = std::max(its, std::min(wanted, granted[who]));
    int sum = 0;
    for (const auto one : used) sum += one;
    REQUIRE(sum <= 10);
    most = std::max(most, sum);
  }
  CHECK(most == 10);
}

TEST_CASE("slots: those of a process that says nothing more are free") {
  Scripts scripts;
  const std::vector<std::string> keys = {"{t}:key"};
  CHECK(scripts.run(fleet::kHoldSlots, keys, {"2", "a", "2", "2", "1"}).at(0) == 2);
  CHECK(scripts.run(fleet::kHoldSlots, keys, {"2", "b", "0", "2", "60000000"}).at(0) == 2);
}

namespace {

struct Ballot {
  int generation = 0;
  int all = 0;
  int good = 0;
  int slow = 0;
  int leading = 0;
  int trailing = 0;
  int good_probes = 0;
  int failed_probes = 0;
  std::int64_t open_for = 3600 * kSecond;
  const char* process = "a";
  bool wants_probe = false;
};

struct BreakerRule {
  const char* kind = "ratio";
  const char* failure_ratio = "500000";  // in millionths, like slow_ratio
  int min_requests = 20;
  int failures = 0;
  int probes = 1;
  const char* slow_ratio = "-1";
};

Reply vote(Scripts& scripts, const BreakerRule& rule, const Ballot& ballot) {
  const auto text = [](auto number) { return std::to_string(number); };
  return scripts.run(fleet::kVote, {"{t}:key", "{t}:all"},
                     {rule.kind,
                      rule.failure_ratio,
                      text(rule.min_requests),
                      text(3600 * kSecond),
                      text(rule.failures),
                      rule.slow_ratio,
                      text(rule.probes),
                      text(60 * kSecond),
                      text(ballot.generation),
                      text(ballot.all),
                      text(ballot.good),
                      text(ballot.slow),
                      text(ballot.leading),
                      text(ballot.trailing),
                      text(ballot.good_probes),
                      text(ballot.failed_probes),
                      text(ballot.open_for),
                      ballot.process,
                      ballot.wants_probe ? "1" : "0",
                      "name"});
}

// state, generation, openings, all, good, failures in a row, probe
std::string in_words(const Reply& reply) {
  static const char* const kStates[] = {"closed", "open", "half-open"};
  std::string words = kStates[reply.at(0)];
  for (const std::size_t index : {2U, 3U, 4U, 5U, 7U, 8U}) {
    words += " " + std::to_string(reply.at(index));
  }
  return words;
}

Ballot votes(int generation, int all, int good, int leading, int trailing) {
  Ballot ballot;
  ballot.generation = generation;
  ballot.all = all;
  ballot.good = good;
  ballot.leading = leading;
  ballot.trailing = trailing;
  return ballot;
}

}  // namespace

TEST_CASE("circuit: the votes of all processes open it, and a probe closes it") {
  Scripts scripts;
  const BreakerRule rule;
  CHECK(in_words(vote(scripts, rule, votes(0, 10, 5, 0, 5))) == "closed 0 0 10 5 5 0");
  CHECK(in_words(vote(scripts, rule, votes(0, 9, 5, 1, 3))) == "closed 0 0 19 10 3 0");
  auto last = votes(0, 1, 0, 1, 1);
  const auto opened = vote(scripts, rule, last);
  CHECK(in_words(opened) == "open 1 1 20 10 4 0");  // 10 of 20
  CHECK(opened.at(1) > 3590 * kSecond);
  // Those that were on their way when it opened do not count, and it does not open twice.
  CHECK(in_words(vote(scripts, rule, votes(0, 50, 0, 50, 50))) == "open 1 1 20 10 4 0");
  // It is too early for a probe.
  Ballot probe;
  probe.generation = 1;
  probe.wants_probe = true;
  CHECK(in_words(vote(scripts, rule, probe)) == "open 1 1 20 10 4 0");
}

TEST_CASE("circuit: one process probes, and its probe decides") {
  Scripts scripts;
  const BreakerRule rule;
  auto trip = votes(0, 20, 0, 20, 20);
  trip.open_for = 0;
  CHECK(in_words(vote(scripts, rule, trip)) == "open 1 1 20 0 20 0");
  Ballot wish;
  wish.generation = 1;
  wish.wants_probe = true;
  CHECK(in_words(vote(scripts, rule, wish)) == "half-open 2 1 20 0 20 1");
  // The probe is not over because its process asks for the state.
  Ballot question;
  question.generation = 2;
  CHECK(in_words(vote(scripts, rule, question)) == "half-open 2 1 20 0 20 0");
  wish.process = "b";
  CHECK(in_words(vote(scripts, rule, wish)) == "half-open 2 1 20 0 20 0");
  // Nor does a process that has no probe decide.
  Ballot other;
  other.generation = 2;
  other.good_probes = 1;
  other.process = "b";
  CHECK(in_words(vote(scripts, rule, other)) == "half-open 2 1 20 0 20 0");
  Ballot failed;
  failed.generation = 2;
  failed.failed_probes = 1;
  failed.open_for = 0;
  const auto reopened = vote(scripts, rule, failed);
  CHECK(in_words(reopened) == "open 3 2 1 0 1 0");
  CHECK(reopened.at(1) == 0);
  CHECK(reopened.at(6) == 0);  // none was slow
  CHECK(in_words(vote(scripts, rule, wish)) == "half-open 4 2 1 0 1 1");
  Ballot good;
  good.generation = 4;
  good.good_probes = 1;
  good.process = "b";
  CHECK(in_words(vote(scripts, rule, good)) == "closed 5 2 0 0 0 0");
  // The vote of a probe of an older generation is none.
  CHECK(in_words(vote(scripts, rule, failed)) == "closed 5 2 0 0 0 0");
}

TEST_CASE("circuit: failures in a row are counted over the votes of several processes") {
  struct Row {
    std::vector<std::vector<int>> all_good_leading_trailing;
    const char* expected;
  };
  const std::vector<Row> rows = {
      {{{3, 0, 3, 3}, {3, 0, 3, 3}}, "closed 0 0 6 0 6 0"},
      {{{3, 0, 3, 3}, {4, 0, 4, 4}}, "open 1 1 7 0 7 0"},
      {{{5, 0, 5, 5}, {3, 1, 1, 1}}, "closed 0 0 8 1 1 0"},
      {{{5, 0, 5, 5}, {3, 1, 2, 0}}, "open 1 1 8 1 7 0"},
      {{{5, 0, 5, 5}, {1, 1, 0, 0}, {6, 0, 6, 6}}, "closed 0 0 12 1 6 0"},
      {{{9, 1, 0, 7}}, "open 1 1 9 1 7 0"},
  };
  for (std::size_t index = 0; index < rows.size(); ++index) {
    CAPTURE(index);
    Scripts scripts;
    BreakerRule rule;
    rule.kind = "consecutive";
    rule.failures = 7;
    Reply reply;
    for (const auto& one : rows[index].all_good_leading_trailing) {
      reply = vote(scripts, rule, votes(0, one[0], one[1], one[2], one[3]));
    }
    CHECK(in_words(reply) == rows[index].expected);
  }
}

TEST_CASE("circuit: slow responses open it, where the policy says so") {
  Scripts scripts;
  BreakerRule rule;
  auto ballot = votes(0, 20, 20, 0, 0);
  ballot.slow = 10;
  const auto closed = vote(scripts, rule, ballot);
  CHECK(closed.at(0) == 0);
  CHECK(closed.at(6) == 10);
  rule.slow_ratio = "250000";
  const auto opened = vote(scripts, rule, ballot);
  CHECK(opened.at(0) == 1);
  CHECK(opened.at(6) == 20);
}

TEST_CASE("circuit: a share of failed or slow sends opens it at its value, and not below") {
  struct Row {
    const char* failure_ratio;
    const char* slow_ratio;
    int min_requests, all, failed, slow;
    bool opens;
  };
  const std::vector<Row> rows = {
      {"500000", "-1", 4, 4, 1, 0, false},      {"500000", "-1", 4, 4, 2, 0, true},
      {"500000", "-1", 5, 4, 4, 0, false},      {"666666", "-1", 3, 3, 2, 0, true},
      {"666667", "-1", 3, 3, 2, 0, false},      {"666667", "-1", 3, 3, 3, 0, true},
      {"1000000", "500000", 4, 4, 0, 1, false}, {"1000000", "500000", 4, 4, 0, 2, true},
      {"1000000", "500000", 5, 4, 0, 4, false}, {"1000000", "666666", 3, 3, 0, 2, true},
      {"1000000", "666667", 3, 3, 0, 2, false}, {"1000000", "666667", 3, 3, 0, 3, true},
      {"1000000", "0", 3, 3, 0, 0, true},       {"1000000", "-1", 3, 3, 2, 3, false},
  };
  for (std::size_t index = 0; index < rows.size(); ++index) {
    CAPTURE(index);
    const auto& row = rows[index];
    Scripts scripts;
    BreakerRule rule;
    rule.failure_ratio = row.failure_ratio;
    rule.slow_ratio = row.slow_ratio;
    rule.min_requests = row.min_requests;
    auto ballot = votes(0, row.all, row.all - row.failed, 0, 0);
    ballot.slow = row.slow;
    CHECK(vote(scripts, rule, ballot).at(0) == (row.opens ? 1 : 0));
  }
}

TEST_CASE("circuit: votes count for ten tenths of the window") {
  Scripts scripts;
  CHECK(in_words(vote(scripts, {}, votes(0, 1, 1, 0, 0))) == "closed 0 0 1 1 0 0");
  std::int64_t tenth = 0;  // the current one
  for (const auto& field : ask(scripts.link(), {"HKEYS", "{t}:key"}).list) {
    if (field.text.starts_with("w:")) tenth = std::stoll(field.text.substr(2));
  }
  const auto name = [&](std::int64_t later) { return "w:" + std::to_string(tenth + later); };
  CHECK(!ask(scripts.link(),
             {"HSET", "{t}:key", name(-9), "2 2 1", name(-10), "4 4 4", name(1), "8 8 8"})
             .failed());
  const auto reply = vote(scripts, {}, votes(0, 0, 0, 0, 0));
  CHECK(in_words(reply) == "closed 0 0 3 3 0 0");
  CHECK(reply.at(6) == 1);
  for (const auto later : {-9, -10, 1}) {
    const auto exists = ask(scripts.link(), {"HEXISTS", "{t}:key", name(later)}).integer;
    CHECK(exists == (later == -9 ? 1 : 0));
  }
}

TEST_CASE("circuit: each window without an opening makes the openings in a row one fewer") {
  struct Row {
    int openings, quiet_windows, openings_after;
  };
  const std::vector<Row> rows = {{1, 0, 2}, {1, 1, 1}, {1, 9, 1}, {2, 1, 2},
                                 {3, 1, 3}, {3, 2, 2}, {3, 3, 1}, {0, 5, 1}};
  for (const auto& row : rows) {
    CAPTURE(row.openings);
    CAPTURE(row.quiet_windows);
    Scripts scripts;
    auto trip = votes(0, 20, 0, 20, 20);
    trip.open_for = 0;
    vote(scripts, {}, trip);
    Ballot probe;
    probe.generation = 1;
    probe.wants_probe = true;
    vote(scripts, {}, probe);
    Ballot good;
    good.generation = 2;
    good.good_probes = 1;
    CHECK(in_words(vote(scripts, {}, good)) == "closed 3 1 0 0 0 0");
    // Moves the time at which it closed into the past.
    const auto closed_at = std::stoll(ask(scripts.link(), {"HGET", "{t}:key", "closed_at"}).text);
    const auto earlier = closed_at - row.quiet_windows * 3600 * kSecond;
    CHECK(!ask(scripts.link(), {"HSET", "{t}:key", "closed_at", std::to_string(earlier), "openings",
                                std::to_string(row.openings)})
               .failed());
    trip.generation = 3;
    CHECK(vote(scripts, {}, trip).at(3) == row.openings_after);
  }
}

TEST_CASE("pauses and circuits are in the snapshot for all processes") {
  Scripts scripts;
  const std::vector<std::string> keys = {"{t}:who", "{t}:pauses", "{t}:all", "{t}:salt"};
  const auto snapshot = [&](const char* process, const char* salt = "7") {
    return scripts.run(fleet::kSnapshot, keys, {process, "60000000", salt});
  };
  auto nothing = snapshot("a");
  CHECK(nothing.at(0) == 1);
  CHECK(nothing.list[1].list.empty());
  CHECK(nothing.list[2].list.empty());
  const auto pause = [&](const char* name, std::int64_t duration) {
    return scripts.run(fleet::kPause, {"{t}:pauses"}, {name, std::to_string(duration)}).integer;
  };
  CHECK(pause("x", 60 * kSecond) == 60 * kSecond);
  CHECK(pause("x", 10 * kSecond) > 50 * kSecond);  // the later end counts
  CHECK(pause("y", 1) <= 1);
  vote(scripts, {}, votes(0, 20, 0, 20, 20));
  const auto something = snapshot("b", "8");
  CHECK(something.list[3].text == "7");  // the first salt stays
  CHECK(something.at(0) == 2);
  const auto& pauses = something.list[1].list;
  REQUIRE(pauses.size() == 2);
  CHECK(pauses[0].text == "x");
  CHECK(pauses[1].integer > 50 * kSecond);
  const auto& circuits = something.list[2].list;
  REQUIRE(circuits.size() == 9);
  CHECK(circuits[0].text == "name");
  CHECK(circuits[1].integer == 1);
  CHECK(circuits[2].integer > 3500 * kSecond);
  CHECK(circuits[3].integer == 1);
  CHECK(circuits[4].integer == 1);
  CHECK(circuits[5].integer == 20);  // of which
  CHECK(circuits[6].integer == 0);   // were good
  CHECK(circuits[7].integer == 0);   // and as many were slow
  CHECK(circuits[8].integer == 20);
  // A circuit that has expired is not in it, and is deleted.
  CHECK(!ask(scripts.link(), {"HSET", "{t}:all", "old", "1 5 1 1 0 0 0 0 5"}).failed());
  CHECK(snapshot("a").list[2].list.size() == 9);
  CHECK(ask(scripts.link(), {"HLEN", "{t}:all"}).integer == 1);
}

TEST_CASE("a circuit that a program opens is open for all, and one that it forgets is new") {
  Scripts scripts;
  const BreakerRule rule;
  vote(scripts, rule, votes(0, 5, 0, 5, 5));
  scripts.run(fleet::kOpenCircuit, {"{t}:key", "{t}:all"}, {std::to_string(60 * kSecond), "name"});
  const auto open = vote(scripts, rule, votes(0, 50, 0, 50, 50));
  CHECK(in_words(open) == "open 1 0 0 0 0 0");
  CHECK(open.at(6) == 0);
  CHECK(open.at(1) > 50 * kSecond);
  CHECK(open.at(1) <= 60 * kSecond);
  CHECK(ask(scripts.link(), {"HLEN", "{t}:all"}).integer == 1);
  scripts.run(fleet::kForget, {"{t}:rate", "{t}:slots", "{t}:key", "{t}:all", "{t}:pauses"},
              {"name"});
  CHECK(in_words(vote(scripts, rule, votes(0, 0, 0, 0, 0))) == "closed 0 0 0 0 0 0");
  CHECK(ask(scripts.link(), {"HLEN", "{t}:all"}).integer == 0);
}

TEST_CASE("the send rate: no limit until a throttle, then a few tokens") {
  Scripts scripts;
  const auto sends = [&](std::int64_t ended, std::int64_t throttled, std::int64_t wanted) {
    return scripts.run(fleet::kSendRate, {ended, throttled, wanted});
  };
  CHECK(sends(50, 0, 5).at(0) == 0);
  CHECK(sends(1, 1, 0).at(0) == 1);
  CHECK(!ask(scripts.link(), {"HSET", "{t}:key", "fill", "0.001", "capacity", "3.2", "most", "9"})
             .failed());
  CHECK(sends(0, 0, 2).at(1) == 2);
  CHECK(sends(0, 0, 9).at(1) == 1);
  const auto none = sends(0, 0, 9);
  CHECK(none.at(1) == 0);
  CHECK(none.at(2) > 600 * kSecond);
  CHECK(none.at(2) <= 1000 * kSecond);
  CHECK(ask(scripts.link(), {"PTTL", "{t}:key"}).integer > 500'000);
}

// The numbers are those of SendRate: see budget.cpp.
TEST_CASE(
    "the send rate: measured in half seconds, lowered by a throttle, and grown along a curve") {
  Scripts scripts;
  const auto sends = [&](std::int64_t ended, std::int64_t throttled) {
    return scripts.run(fleet::kSendRate, {ended, throttled, 0});
  };
  const auto field = [&](const char* name) {
    return std::stod(ask(scripts.link(), {"HGET", "{t}:key", name}).text);
  };
  const auto set = [&](const char* name, double value) {
    CHECK(!ask(scripts.link(), {"HSET", "{t}:key", name, std::to_string(value)}).failed());
  };
  sends(0, 0);
  const auto before = field("bucket") - 10;
  set("bucket", before);
  set("count", 300);
  set("measured", 40);
  sends(50, 0);
  const auto bucket = field("bucket");
  CHECK(std::fmod(bucket, 0.5) == 0);
  CHECK(bucket <= field("refilled"));
  CHECK(bucket > field("refilled") - 0.5);
  const auto measured = 0.8 * 350 / (bucket - before) + 0.2 * 40;
  CHECK(field("measured") == doctest::Approx(measured));
  CHECK(field("count") == 0);

  // The next half second is far away, so the rate is not measured again.
  set("bucket", 1e12);
  sends(1, 1);
  CHECK(field("last_max") == doctest::Approx(measured));
  CHECK(field("fill") == doctest::Approx(0.7 * measured));
  sends(1, 1);
  CHECK(field("last_max") == doctest::Approx(0.7 * measured));
  CHECK(field("fill") == doctest::Approx(0.49 * measured));
  // The curve reaches `last_max` again after this time, and is steep a minute later.
  set("throttled_at", field("refilled") - std::cbrt(0.75 * field("last_max")));
  sends(1, 0);
  CHECK(field("fill") == doctest::Approx(0.7 * measured).epsilon(0.2));
  const auto last_max = field("last_max");
  const auto throttled_at = field("refilled") - std::cbrt(0.75 * last_max) - 2;
  set("throttled_at", throttled_at);
  sends(1, 0);
  const auto since = field("refilled") - throttled_at - std::cbrt(0.75 * last_max);
  CHECK(field("fill") ==
        doctest::Approx(std::min(0.4 * since * since * since + last_max, 2 * measured)));
  set("throttled_at", field("refilled") - 60);
  sends(1, 0);
  CHECK(field("fill") == doctest::Approx(2 * measured));
  CHECK(field("most") == doctest::Approx(2 * measured));
}

TEST_CASE(
    "the send rate: at least one send in two seconds, and the tokens of the time since then") {
  Scripts scripts;
  const auto sends = [&](std::int64_t ended, std::int64_t throttled, std::int64_t wanted) {
    return scripts.run(fleet::kSendRate, {ended, throttled, wanted});
  };
  const auto field = [&](const char* name) {
    return std::stod(ask(scripts.link(), {"HGET", "{t}:key", name}).text);
  };
  const auto set = [&](const char* name, double value) {
    CHECK(!ask(scripts.link(), {"HSET", "{t}:key", name, std::to_string(value)}).failed());
  };
  set("bucket", 1e12);  // so nothing is measured
  const auto first = sends(1, 1, 1);
  CHECK(first.at(0) == 1);
  CHECK(first.at(1) == 0);
  CHECK(first.at(2) == 2 * kSecond);
  CHECK(field("fill") == 0.5);
  CHECK(field("most") == 1);
  // A thousand seconds give ten tokens.
  set("fill", 0.01);
  set("capacity", 2);
  set("most", 100);
  set("refilled", field("refilled") - 1000);
  const auto second = sends(0, 0, 20);
  CHECK(second.at(1) == 12);
  CHECK(second.at(2) == 0);
  set("most", 4);
  set("refilled", field("refilled") - 1000);
  CHECK(sends(0, 0, 20).at(1) == 4);
}

TEST_CASE("budgets: taken and given, within their bounds") {
  Scripts scripts;
  struct Row {
    std::int64_t taken, given, left;
  };
  const std::vector<Row> rows = {{0, 0, 500'000},      {5'000, 0, 495'000}, {0, 1'000, 496'000},
                                 {0, 9'000, 500'000},  {600'000, 0, 0},     {0, 5'000, 5'000},
                                 {6'000, 2'000, 2'000}};
  for (std::size_t index = 0; index < rows.size(); ++index) {
    CAPTURE(index);
    const auto& row = rows[index];
    CHECK(scripts.run(fleet::kBudget, {500'000, row.taken, row.given, 60 * kSecond}).integer ==
          row.left);
  }
}

TEST_CASE("budgets of a window: the sum of what came and went") {
  Scripts scripts;
  const auto change = [&](std::int64_t amount) {
    return scripts.run(fleet::kBudgetWindow, {3600 * kSecond, amount}).integer;
  };
  CHECK(change(0) == 0);
  CHECK(change(200) == 200);
  CHECK(change(-1000) == -800);
  CHECK(change(0) == -800);
  // The sums of ten tenths of the window count.
  const auto fields = ask(scripts.link(), {"HKEYS", "{t}:key"}).list;
  REQUIRE(fields.size() == 1);
  const auto tenth = std::stoll(fields[0].text);
  CHECK(!ask(scripts.link(), {"HSET", "{t}:key", std::to_string(tenth - 9), "30",
                              std::to_string(tenth - 10), "400", std::to_string(tenth + 1), "5000"})
             .failed());
  CHECK(change(0) == -770);
  CHECK(ask(scripts.link(), {"HLEN", "{t}:key"}).integer == 2);
}

TEST_CASE("each key expires when its state would be the initial one again") {
  Scripts scripts;
  const auto hour = 3600 * kSecond;
  const auto hour_text = std::to_string(hour);
  // Also deletes the key.
  const auto expires_in = [&](std::int64_t seconds) {
    CAPTURE(seconds);
    const auto life = ask(scripts.link(), {"PTTL", "{t}:key"}).integer;
    CHECK(life <= seconds * 1000);
    CHECK(life > (seconds - 60) * 1000);  // this machine may be busy
    CHECK(ask(scripts.link(), {"DEL", "{t}:key"}).integer == 1);
  };
  scripts.run(fleet::kTakeTokens, {1, hour, 1, 1, 0, 0});
  expires_in(3601);
  scripts.run(fleet::kReserveTokens, {1, hour, 1, 1, 0});
  expires_in(3601);
  scripts.run(fleet::kHoldSlots, {"{t}:key"}, {"10", "a", "0", "1", hour_text});
  expires_in(3601);
  scripts.run(fleet::kPause, {"{t}:key"}, {"x", hour_text});
  expires_in(3601);
  scripts.run(fleet::kBudget, {500'000, 5'000, 0, hour});
  expires_in(3600);
  scripts.run(fleet::kBudgetWindow, {hour, 5});
  expires_in(3601);
  scripts.run(fleet::kSendRate, {1, 1, 0});
  expires_in(601);
  // The window is an hour. A circuit is kept for one more window than it needs to forget its
  // openings in a row.
  vote(scripts, {}, votes(0, 1, 1, 0, 0));
  expires_in(7201);
  vote(scripts, {}, votes(0, 20, 0, 20, 20));
  expires_in(10801);
  scripts.run(fleet::kOpenCircuit, {"{t}:key", "{t}:all"}, {hour_text, "name"});
  expires_in(90001);
  scripts.run(fleet::kSnapshot, {"{t}:key", "{t}:pauses", "{t}:all", "{t}:salt"},
              {"a", hour_text, "7"});
  expires_in(3601);
}
