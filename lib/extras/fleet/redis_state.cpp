#include "redis_state.hpp"

#include "server_facts.hpp"

#include "lib/core/base/random.hpp"

#include <httpretry/http/headers.hpp>
#include <httpretry/log/log.hpp>

#include <algorithm>
#include <cmath>

namespace httpretry::fleet {
namespace {

// Longer durations count as this one. The scripts calculate with doubles, which would round them.
constexpr Duration kLongest = std::chrono::hours(24 * 365);

std::int64_t in_us(Duration duration) {
  const auto bounded = std::clamp<Duration>(duration, {}, kLongest);
  return std::chrono::ceil<std::chrono::microseconds>(bounded).count();
}

// The numbers of a reply may be any. They are clamped to what a working server may send, so that
// later sums do not overflow.
constexpr std::int64_t kMostCount = 1'000'000'000;
constexpr std::int64_t kMostThousandths = 1000 * kMostCount;     // of a budget
constexpr std::int64_t kMostGeneration = std::int64_t{1} << 53;  // exact in a double
constexpr std::int64_t kMostWorkers = 100'000;                   // as in the URL

Duration from_us(std::int64_t us) {
  constexpr std::int64_t most = kLongest / std::chrono::microseconds(1);
  return std::chrono::microseconds(std::clamp(us, -most, most));
}

int count_in(const Reply& reply, std::size_t index, std::int64_t most = kMostCount) {
  return static_cast<int>(std::clamp<std::int64_t>(reply.at(index), 0, most));
}

// Returns when to query again after a reply that has granted nothing. `index` is that of the wait.
// A wait of zero would make a query of each reply.
Time next_query(const Reply& reply, std::size_t index, Time now) {
  return later(now, std::max<Duration>(from_us(reply.at(index)), std::chrono::milliseconds(5)));
}

// All keys have the same hash tag, so that a cluster keeps them on one node.
std::string key_of(std::string_view kind, std::string_view scope) {
  return std::string("{httpretry}:").append(kind).append(":").append(scope);
}

std::string argument(const std::string& word) { return word; }
std::string argument(std::int64_t number) { return std::to_string(number); }
std::string argument(Duration duration) { return argument(in_us(duration)); }

// Returns the keys and arguments of a script, with durations in microseconds.
template <class... Word>
std::vector<std::string> words(const Word&... all) {
  return {argument(all)...};
}

std::string millionths(double number) { return argument(std::llround(number * 1e6)); }

// The index of the last integer in a reply to kVote: 1 if this process may send a probe. The eight
// integers before it are those that to_view() reads.
constexpr std::size_t kMayProbe = 8;

// The elements of a reply to kSnapshot: the number of processes; a list that alternates the names
// of pauses and the remaining times; a list with the name of a circuit, the eight integers that
// to_view() reads, the next name, and so on; the salt in decimal digits.
enum SnapshotElement : std::size_t { kProcesses, kPauses, kCircuits, kSalt, kSnapshotElements };
constexpr std::size_t kPauseSize = 2;
constexpr std::size_t kCircuitSize = 9;

bool is_integer(const Reply& reply) { return reply.kind == Reply::Kind::Integer; }

template <std::size_t size>
bool is_list_of(const Reply& reply) {
  return reply.list.size() == size && std::ranges::all_of(reply.list, is_integer);
}

bool is_snapshot(const Reply& reply) {
  const auto& parts = reply.list;
  return parts.size() == kSnapshotElements && is_integer(parts[kProcesses]) &&
         parts[kPauses].kind == Reply::Kind::List && parts[kCircuits].kind == Reply::Kind::List;
}

Reply unexpected_reply() {
  Reply reply;
  reply.kind = Reply::Kind::Error;
  reply.text = "ODD the reply to a script has an unexpected form. Is this a Redis server?";
  return reply;
}

// Returns what the people who run the server may have to act on. Each error code of Redis is such a
// cause: OOM, NOPERM, WRONGPASS. ERR says nothing by itself, so its whole text counts. A server
// that cannot be reached is one cause, whether it refuses connections or does not respond.
std::string cause_of(const std::string& why) {
  const auto code = why.substr(0, why.find(' '));
  const bool is_code = std::ranges::all_of(code, [](char c) { return 'A' <= c && c <= 'Z'; });
  if (!is_code) return "away";
  return code == "ERR" ? why : code;
}

// Reads the eight integers of a reply of kVote or kSnapshot that begin at `start`: state, time
// until it is no longer open, generation, openings in a row, counts (all, good, slow), failures in
// a row.
RedisState::CircuitView to_view(const Reply& reply, std::size_t start, Time now) {
  RedisState::CircuitView view;
  view.state = static_cast<Circuit>(std::clamp<std::int64_t>(reply.at(start), 0, 2));
  view.until = later(now, from_us(reply.at(start + 1)));
  view.generation = std::clamp<std::int64_t>(reply.at(start + 2), 0, kMostGeneration);
  view.openings = count_in(reply, start + 3);
  view.counts.all = static_cast<std::uint32_t>(count_in(reply, start + 4));
  view.counts.good = static_cast<std::uint32_t>(count_in(reply, start + 5));
  view.counts.slow = static_cast<std::uint32_t>(count_in(reply, start + 6));
  view.failed_in_a_row = count_in(reply, start + 7);
  return view;
}

// Returns the snapshot in a reply to kSnapshot, which must have kSnapshotElements. Times in a reply
// count from `now`. A salt that is not a number becomes 0.
RedisState::Snapshot to_snapshot(const Reply& reply, Time now) {
  RedisState::Snapshot snapshot;
  const auto& pauses = reply.list[kPauses].list;
  for (std::size_t i = 0; i + kPauseSize <= pauses.size(); i += kPauseSize) {
    snapshot.pauses.emplace_back(pauses[i].text, later(now, from_us(pauses[i + 1].integer)));
  }
  const auto& circuits = reply.list[kCircuits];
  for (std::size_t i = 0; i + kCircuitSize <= circuits.list.size(); i += kCircuitSize) {
    snapshot.circuits.emplace_back(circuits.list[i].text, to_view(circuits, i + 1, now));
  }
  snapshot.salt = to_number<std::uint64_t>(reply.list[kSalt].text).value_or(0);
  return snapshot;
}

// The numbers are part of the key, so a policy with other numbers begins a new budget.
std::string budget_key(const std::string& key, const BudgetPolicy& policy) {
  auto name = key + " " + argument(static_cast<std::int64_t>(policy.kind));
  for (const auto number :
       {policy.capacity, policy.retry_cost, policy.throttle_cost, policy.timeout_cost,
        policy.refill, policy.ratio, policy.min_per_second, in_us(policy.window)}) {
    name.append(",").append(argument(number));
  }
  return name;
}

// A budget of tokens that is not used for this time is full again.
constexpr Duration kBudgetLife = std::chrono::hours(1);

}  // namespace

RedisState::RedisState(Link::Options options, Done<Snapshot> on_snapshot)
    : options_(std::move(options)),
      on_snapshot_(std::move(on_snapshot)),
      process_(random_hex(8)),
      salt_(std::to_string(random_bits())),
      workers_(options_.address.workers),
      link_(link_options()) {}

Link::Options RedisState::link_options() {
  auto link = options_;
  link.scripts = limit_scripts();
  link.on_change = [this](bool up, const std::string& why) { on_change(up, why); };
  link.on_tick = [this] { request_snapshot(); };
  return link;
}

// Posts a call of the script. The first `keys` of `words` are its keys, the others its arguments.
// If `is_expected` rejects the form of the reply, `done` gets an error instead. Returns false and
// does not call `done` if the server is away.
bool RedisState::post(const Script& script, std::size_t keys, std::vector<std::string> words,
                      IsExpected is_expected, Done<Reply> done) {
  if (!link_.expects_reply()) return false;
  Command command;
  command.script = &script;
  command.keys = keys;
  command.words = std::move(words);
  // The reply handler of kSnapshot reports its errors itself.
  const bool logs_errors = &script != &kSnapshot;
  link_.post(std::move(command),
             [this, logs_errors, is_expected, done = std::move(done)](Reply reply) {
               if (!reply.failed() && !is_expected(reply)) reply = unexpected_reply();
               const bool is_error = reply.kind == Reply::Kind::Error;
               if (is_error && logs_errors) warn(reply.text, ", and tries again");
               done(reply, now_is());
             });
  return true;
}

// Replies to `done` with the tokens that kTakeTokens grants. After an error there are none, and
// `away` is set; the same in the functions below.
bool RedisState::take_tokens(const std::string& key, const RatePolicy& policy, std::int64_t wanted,
                             std::int64_t given_back, Done<Tokens> done) {
  const auto each = std::max<Duration>(policy.per / policy.requests, Duration(1));
  return post(kTakeTokens, /*keys=*/1,
              words(key_of("rate", key), policy.requests, policy.per, policy.burst, wanted,
                    given_back, kAhead),
              is_list_of<3>, [done = std::move(done), each, wanted](const Reply& reply, Time now) {
                Tokens tokens;
                tokens.away = reply.failed();
                tokens.count = std::clamp<std::int64_t>(reply.at(0), 0, wanted);
                tokens.first = now + from_us(reply.at(1));
                tokens.each = each;
                tokens.ask_again = next_query(reply, /*index=*/2, now);
                done(tokens, now);
              });
}

bool RedisState::reserve_tokens(const std::string& key, const RatePolicy& policy,
                                const Amounts& wanted, const Amounts& given_back,
                                Done<Reservation> done) {
  auto command = words(key_of("rate", key));
  const auto add = [&](const RatePolicy& rate) {
    const auto index = (command.size() - 1) / 5;  // the key, then five arguments for each rate
    for (auto& word :
         words(rate.requests, rate.per, rate.burst, wanted[index], given_back[index])) {
      command.push_back(std::move(word));
    }
  };
  add(policy);
  for (const auto& rate : policy.further) add(rate);
  return post(kReserveTokens, /*keys=*/1, std::move(command), is_list_of<1>,
              [done = std::move(done)](const Reply& reply, Time now) {
                done({.away = reply.failed(), .ready_at = now + from_us(reply.at(0))}, now);
              });
}

bool RedisState::hold_slots(const std::string& key, int max, int used, int wanted,
                            Done<Slots> done) {
  return post(kHoldSlots, /*keys=*/1,
              words(key_of("slots", key), max, process_, used, wanted, kLease), is_list_of<3>,
              [done = std::move(done), max](const Reply& reply, Time now) {
                Slots slots;
                slots.away = reply.failed();
                slots.granted = count_in(reply, /*index=*/0, max);
                slots.contended = reply.at(2) != 0;
                done(slots, now);
              });
}

// Adds the results of this process's sends to the circuit breaker that all processes share under
// `key`. The script kVote counts them, opens or closes the circuit, and replies with its state,
// which `done` gets. Returns false, and never calls `done`, if the server is away.
bool RedisState::vote(const std::string& key, const BreakerPolicy& policy, const Votes& votes,
                      Done<CircuitView> done) {
  const std::string kind = policy.kind == BreakerPolicy::Kind::Ratio ? "ratio" : "consecutive";
  const bool counts_slow = policy.slow_after != kForever;
  const std::string slow_ratio = counts_slow ? millionths(policy.slow_ratio) : "-1";  // -1: off
  return post(
      kVote, /*keys=*/2,
      words(
          // The keys: this circuit, and the list of all circuits that are not closed.
          key_of("circuit", key), key_of("circuits", "all"),
          // The policy, with ratios in millionths, because the script gets only integers.
          kind, millionths(policy.failure_ratio), policy.min_requests, policy.window,
          policy.failures, slow_ratio, policy.probes, policy.probe_timeout,
          // The votes. kVote ignores them if the circuit has changed since `generation`.
          votes.generation, votes.counts.all, votes.counts.good, votes.counts.slow, votes.leading,
          votes.trailing, votes.good_probes, votes.failed_probes, votes.open_for,
          // This process, whether it wants to send a probe, and the name of the circuit.
          process_, votes.wants_probe, key),
      is_list_of<kMayProbe + 1>, [done = std::move(done)](const Reply& reply, Time now) {
        auto view = to_view(reply, /*start=*/0, now);
        view.away = reply.failed();  // an error, or no reply
        view.probe = reply.at(kMayProbe) != 0;
        done(view, now);
      });
}

bool RedisState::pause(const std::string& key, Duration duration) {
  return post(kPause, /*keys=*/1, words(key_of("pauses", "all"), key, duration), is_integer,
              [](const Reply&, Time) {});
}

bool RedisState::change_budget(const std::string& key, const BudgetPolicy& policy,
                               const BudgetChange& change, Done<BudgetView> done) {
  const auto finish = [done = std::move(done)](const Reply& reply, Time now) {
    const auto balance = std::clamp(reply.integer, -kMostThousandths, kMostThousandths);
    done({.away = reply.failed(), .balance = balance}, now);
  };
  const auto name = budget_key(key, policy);
  if (policy.kind == BudgetPolicy::Kind::Ratio) {
    return post(kBudgetWindow, /*keys=*/1,
                words(key_of("window", name), policy.window, change.given - change.taken),
                is_integer, finish);
  }
  return post(
      kBudget, /*keys=*/1,
      words(key_of("budget", name), policy.capacity, change.taken, change.given, kBudgetLife),
      is_integer, finish);
}

// Sends the counts for an adaptive send rate. The script kSendRate replies with: 1 if a rate is in
// force, the number of granted sends, and the time until the next query.
bool RedisState::send_rate(const std::string& key, const Sends& sends, Done<SendsView> done) {
  return post(kSendRate, /*keys=*/1,
              words(key_of("sends", key), sends.ended, sends.throttled, sends.wanted),
              is_list_of<3>, [done = std::move(done)](const Reply& reply, Time now) {
                SendsView view;
                view.away = reply.failed();
                view.limited = reply.at(0) != 0;
                view.granted = count_in(reply, /*index=*/1);
                view.ask_again = next_query(reply, /*index=*/2, now);
                done(view, now);
              });
}

bool RedisState::forget(const std::string& key) {
  return post(kForget, /*keys=*/5,
              words(key_of("rate", key), key_of("slots", key), key_of("circuit", key),
                    key_of("circuits", "all"), key_of("pauses", "all"), key),
              is_integer, [](const Reply&, Time) {});
}

bool RedisState::open_circuit(const std::string& key, Duration duration) {
  return post(kOpenCircuit, /*keys=*/2,
              words(key_of("circuit", key), key_of("circuits", "all"), duration, key), is_integer,
              [](const Reply&, Time) {});
}

// --- on the link's thread ---

// Called when the server begins or ceases to reply in time, and when the reason why it does not
// reply has changed.
void RedisState::on_change(bool up, const std::string& why) {
  if (up) {
    check_server();
    request_snapshot();  // its reply ends the degraded state
  } else {
    set_degraded(/*degraded=*/true, why);
    notify({.away = true});
  }
}

// Logs the change, and records it for the observers of calls. Degraded means that limits are not
// shared now, because of `why`. While they are not, logs each other cause as well.
void RedisState::set_degraded(bool degraded, const std::string& why) {
  if (degraded) warn(why, " until it is back");
  if (change_.degraded == degraded) return;
  const auto place = options_.address.text();
  if (!degraded) {
    logged_causes_.clear();
    write_log(LogLevel::Info, "limits are shared again: " + place + " is back");
  }
  ++change_.number;
  change_.degraded = degraded;
  change_.place = place;
  change_.why = why;
}

// Logs the problems that the server's settings cause for limits, unless they were logged before.
// Called for each connection, because a new one may lead to another server.
void RedisState::check_server() {
  link_.post({.words = {"INFO"}}, [this](const Reply& reply) {
    if (reply.failed()) return;  // an ACL may forbid INFO
    auto problems = detail::problems_for_limits(detail::read_info(reply.text));
    if (problems == server_problems_) return;
    server_problems_ = std::move(problems);
    for (const auto& problem : server_problems_) {
      write_log(LogLevel::Warning, options_.address.text() + ": " + problem);
    }
  });
}

// Requests a snapshot of what all processes share: their number, the pauses and the open circuits.
// The request also tells the server that this process is alive: one that sends none for kLease no
// longer counts. on_snapshot_ gets the snapshot, or notice that the server is away. The snapshot
// also has the salt of the hashes in keys: the first `salt_` that any process has sent.
void RedisState::request_snapshot() {
  const bool posted = post(
      kSnapshot, /*keys=*/4,
      words(key_of("processes", "all"), key_of("pauses", "all"), key_of("circuits", "all"),
            key_of("salt", "all"), process_, kLease, salt_),
      is_snapshot, [this](const Reply& reply, Time now) {
        // Degraded: limits are not shared now. If there is no reply, on_change() sets this.
        if (reply.kind == Reply::Kind::Error) set_degraded(/*degraded=*/true, reply.text);
        if (reply.failed()) return notify({.away = true});
        set_degraded(/*degraded=*/false, {});
        // `workers` in the URL is the least number that the user expects.
        const auto processes = count_in(reply, kProcesses, kMostWorkers);
        workers_.store(std::max(processes, options_.address.workers), std::memory_order_relaxed);
        notify(to_snapshot(reply, now));
      });
  if (!posted) notify({.away = true});  // post() sends nothing while the server is away
}

void RedisState::notify(Snapshot snapshot) {
  snapshot.change = change_;
  if (on_snapshot_) on_snapshot_(snapshot, now_is());
}

// Logs why limits are not shared: each cause once, until they are shared again. An error may
// contain anything, so the number of lines is limited.
void RedisState::warn(const std::string& why, std::string_view until) {
  constexpr std::size_t most_causes = 10;
  if (logged_causes_.size() >= most_causes || !logged_causes_.insert(cause_of(why)).second) return;
  auto line = "limits are not shared: " + options_.address.text() + ": " + printable(why);
  line += "; this process continues with 1/" + argument(workers()) + " of each limit";
  write_log(LogLevel::Warning, line.append(until));
}

}  // namespace httpretry::fleet
