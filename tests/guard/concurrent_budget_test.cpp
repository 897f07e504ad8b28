// Budgets of kind concurrent through a client: whatever becomes of calls, retries and hedges, their
// places are free afterwards.
#include "hedging.hpp"

#include "lib/core/guard/detail/shared_budget.hpp"
#include "tests/client/heard.hpp"
#include "tests/policy/temporary.hpp"
#include "tests/rounds.hpp"

#include <httpretry/guard/local_state.hpp>
#include <httpretry/policy/policy_set.hpp>
#include <httpretry/policy/policy_source.hpp>

#include <doctest/doctest.h>

#include <set>

#include "tests/retry/concurrent_budget.hpp"
#include "tests/retry/random.hpp"

using namespace httpretry;  // NOLINT
using namespace std::chrono_literals;
using httpretry_test::concurrent;
using httpretry_test::Random;

namespace {

RetryPolicy policy_with(const BudgetPolicy& budget) {
  auto policy = hedged_policy();
  policy.budget = budget;
  return policy;
}

// What the calls to http://x with that budget have under way.
class Tally {
 public:
  Tally(SharedState& state, const BudgetPolicy& policy)
      : account_(state.account("budget http://x", policy, Time())) {}
  [[nodiscard]] std::int64_t calls() const { return read(&Budget::calls); }
  [[nodiscard]] std::int64_t extras() const { return read(&Budget::extras); }
  [[nodiscard]] std::int64_t most() const { return read(&Budget::most_extras); }

 private:
  [[nodiscard]] std::int64_t read(std::int64_t (Budget::*what)() const) const {
    const auto& shared = static_cast<const SharedBudget&>(*account_);
    const std::lock_guard lock(shared.mutex);
    return (shared.budget.*what)();
  }
  std::shared_ptr<RetryAccount> account_;
};

struct Calls : Conversation {
  std::shared_ptr<SharedState> state = local_state();

  [[nodiscard]] ClientOptions options_of(MiddlewarePtr retries) const {
    ClientOptions options;
    options.middlewares = {redirect(), std::move(retries), hedge()};
    options.scheduler = clock;
    options.transport = network;
    options.random = fixed_random(0.5);
    options.shared_state = state;
    return options;
  }
  [[nodiscard]] Client client_of(const RetryPolicy& policy) const {
    return Client(options_of(retry(policy)));
  }
};

std::string file_with(const BudgetPolicy& budget) {
  return R"({"version": 1, "default": {"preset": "none", "max_attempts": 2, "retry_on": {"statuses":
      [503]}, "backoff": {"kind": "constant", "interval": "1s"}, "budget": {"kind": "concurrent",
      "ratio": 0, "min": )" +
         std::to_string(budget.min) + "}}}";
}

// A client that has sent once by the first numbers of its policy file and once by the second. All
// requests get a 503, and are to be retried in a second.
class ChangedFile {
 public:
  ChangedFile(const Calls& calls, const BudgetPolicy& first, const BudgetPolicy& second)
      : calls_(calls),
        file_(file_with(first)),
        source_(PolicySource::watch(file_.path()).value()),
        client_(calls.options_of(retry(source_))) {
    calls.network->say(Response(503));
    send();
    file_.replace(file_with(second));
    REQUIRE(source_.reload().has_value());
    send();
  }
  void send() const {
    client_.send_then(Request::get("http://x/"), [](const Outcome&) {});
    calls_.clock->run();
  }

 private:
  const Calls& calls_;
  const Heard log_;
  const TemporaryFile file_;
  const PolicySource source_;
  mutable Client client_;
};

std::vector<std::int64_t> left_after(const History& history) {
  std::vector<std::int64_t> left;
  for (const auto& attempt : history.attempts) left.push_back(attempt.budget_left.value_or(-1));
  return left;
}

// Tally the retries and hedges that are on the wire: all sends of a call but its first. Each send
// ends by chance.
class RandomServer final : public Transport {
 public:
  RandomServer(Random& random, const Tally& counts) : random_(random), counts_(counts) {}

  Task<Outcome> send(Request request, Call& call) override {
    const std::string name(*request.headers().get("X-Call"));
    const bool extra = !seen_.insert(name).second;
    const UnderWay under_way(extra ? extras_ : firsts_);
    CHECK(extras_ <= counts_.extras());
    auto [outcome, after] = next();
    auto& scheduler = call.scheduler();
    const auto end = scheduler.now() + after;
    const bool whole = co_await scheduler.sleep_until(std::min(end, call.deadline()), call.stop());
    if (!whole) co_return Error(Errc::Canceled, "stopped");
    if (end > scheduler.now()) co_return Error(Errc::Timeout, "no response");
    if (outcome && outcome->status == 202) seen_.erase(name);  // a poll follows, which is none
    co_return std::move(outcome);
  }
  [[nodiscard]] int on_the_wire() const { return extras_ + firsts_; }

 private:
  struct UnderWay {
    explicit UnderWay(int& count) : count_(count) { ++count_; }
    ~UnderWay() { --count_; }
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;
    int& count_;
  };
  std::pair<Outcome, Duration> next() {
    const auto after = std::chrono::milliseconds(random_.between(1, 400));
    switch (random_.between(0, 7)) {
      case 0: return {Response(503), after};
      case 1: return {Response(202), after};
      case 2: return {Error(Errc::Receive, "reset"), after};
      case 3: return {Error(Errc::Connect, "refused"), after};
      case 4: return {Response(404), after};
      case 5: return {Response(200), 1h};
      default: return {Response(200), after};
    }
  }

  Random& random_;
  const Tally& counts_;
  std::set<std::string, std::less<>> seen_;
  int extras_ = 0;
  int firsts_ = 0;
};

// At each grant there are no more than are allowed.
class Grants final : public Observer {
 public:
  explicit Grants(const Tally& counts) : counts_(counts) {}

  void attempt_ended(const Call& /*call*/, const Request& /*request*/,
                     const Attempt& attempt) noexcept override {
    if (!attempt.retried || attempt.cls == Class::Pending) return;
    ++retries;
    CHECK(counts_.extras() <= counts_.most());
  }
  void hedge_started(const Call& /*call*/, const Request& /*request*/, int /*number*/,
                     Duration /*after*/) noexcept override {
    ++hedges;
    CHECK(counts_.extras() <= counts_.most());
  }
  void hedge_refused(const Call& /*call*/, HedgeRefused why) noexcept override {
    if (why == HedgeRefused::RetryBudget) ++hedges_refused;
  }
  void call_ended(const Call& /*call*/, const Outcome& outcome) noexcept override {
    if (history_of(outcome).stop_reason == Reason::BudgetExhausted) ++retries_refused;
  }

  int retries = 0;
  int hedges = 0;
  int hedges_refused = 0;
  int retries_refused = 0;

 private:
  const Tally& counts_;
};

}  // namespace

TEST_CASE("a retry is under way from its grant until its attempt has ended") {
  Calls calls;
  const auto policy = policy_with(concurrent(0, 1));
  const Tally counts(*calls.state, policy.budget);
  calls.network->say(Response(503)).say(Response(503)).say(Response(200));
  auto client = calls.client_of(policy);
  std::optional<Outcome> ended;
  client.send_then(Request::get("http://x/"), [&](Outcome outcome) { ended = std::move(outcome); });
  calls.clock->run();
  CHECK(counts.calls() == 1);
  CHECK(counts.extras() == 1);  // it waits

  const auto other = client.get("http://x/");
  CHECK(other->status == 503);
  CHECK(other->history.stop_reason == Reason::BudgetExhausted);
  CHECK(other->history.detail == "the budget is too low for a retry");
  CHECK(left_after(other->history) == std::vector<std::int64_t>{0});

  calls.clock->advance(10s);
  REQUIRE(ended);
  CHECK((*ended)->status == 200);
  CHECK(left_after((*ended)->history) == std::vector<std::int64_t>{0, 1});
  CHECK(counts.calls() == 0);
  CHECK(counts.extras() == 0);
}

TEST_CASE("a hedge is refused where no place is left, and one that loses frees its own") {
  Calls calls;
  const auto policy = policy_with(concurrent(0, 1));
  const Tally counts(*calls.state, policy.budget);
  calls.network->say(Response(200), 300ms).say(Response(200), 1h);
  auto client = calls.client_of(policy);
  std::optional<Outcome> ended;
  client.send_then(Request::get("http://x/"), [&](Outcome outcome) { ended = std::move(outcome); });
  calls.clock->advance(250ms);
  CHECK(counts.extras() == 1);
  calls.clock->advance(50ms);
  REQUIRE(ended);
  CHECK((*ended)->history.attempts[1].race == Race::Lost);
  CHECK(counts.extras() == 0);

  BudgetClaim other;
  const auto account = calls.state->account("budget http://x", policy.budget, Time());
  account->begin_call(Time());
  CHECK(account->take_hedge(other, Time()));
  calls.network->say(Response(200), 300ms);
  const auto refused = client.get("http://x/");
  CHECK(refused->history.hedge_refused == HedgeRefused::RetryBudget);
  CHECK(refused->history.attempts.size() == 1);
  account->cancel(other, false, Time());
  CHECK(counts.calls() == 0);
}

TEST_CASE("a budget of one's own is asked instead, and nothing is counted") {
  struct Own final : RetryBudget {
    bool take(const Request& /*request*/, const Classified& /*classified*/, Time /*now*/) override {
      return true;
    }
    void give_back(const Request& /*request*/, Time /*now*/) override {}
    void settle(const Request& /*request*/, bool /*success*/, Time /*now*/) override {}
  };
  Calls calls;
  RetryOptions retries;
  auto policy = policy_with(concurrent(0, 0));
  policy.adaptive = true;  // the account is there for the send rate
  ResolvedPolicy resolved;
  resolved.policy = std::make_shared<const RetryPolicy>(policy);
  retries.policies = PolicySet(std::move(resolved));
  retries.budget = std::make_shared<Own>();
  const Tally counts(*calls.state, policy.budget);
  calls.network->say(Response(503)).say(Response(200), 300ms).say(Response(200), 1h);
  CHECK(Client(calls.options_of(retry(retries))).get("http://x/")->history.attempts.size() == 3);
  CHECK(counts.calls() == 0);
  CHECK(counts.extras() == 0);
}

TEST_CASE("a client whose budget is another never tells its account that a hedge has ended") {
  // The account of a budget of tokens, which counts what it is told.
  class Watched final : public RetryAccount {
   public:
    void begin_call(Time now) override { budget_.begin_call(now); }
    Duration take_send(Time now) override { return budget_.take_send(now); }
    void count_attempt(bool throttled, Time now) override { budget_.count_attempt(throttled, now); }
    RetryPermit end_attempt(BudgetClaim& claim, const Classified& classified, AfterAttempt next,
                            Time now) override {
      return budget_.end_attempt(claim, classified, next, now);
    }
    void cancel(BudgetClaim& claim, bool paid, Time now) override {
      budget_.cancel(claim, paid, now);
    }
    bool take_hedge(BudgetClaim& claim, Time now) override {
      ++hedges;
      return budget_.take_hedge(claim, now);
    }
    void give_back_hedge(BudgetClaim& claim, Time now) override {
      budget_.give_back_hedge(claim, now);
    }
    void end_hedge(BudgetClaim& /*claim*/, Time /*now*/) override { ++ended_hedges; }
    [[nodiscard]] std::optional<std::int64_t> left(Time now) const override {
      return budget_.left(now);
    }
    int hedges = 0;
    int ended_hedges = 0;

   private:
    SharedBudget budget_{thrifty_policy(100).budget, Time()};
  };
  class State final : public SharedState {
   public:
    std::shared_ptr<SendLimits> limits(LimitKeys keys, Time now) override {
      return local->limits(std::move(keys), now);
    }
    std::shared_ptr<RetryAccount> account(const std::string& /*key*/,
                                          const BudgetPolicy& /*policy*/, Time /*now*/) override {
      ++accounts;
      return watched;
    }
    std::shared_ptr<HedgeAccount> hedges(const std::string& key, Time now) override {
      return local->hedges(key, now);
    }
    [[nodiscard]] std::vector<ScopeState> states(std::string_view /*prefix*/,
                                                 Time /*now*/) const override {
      return {};
    }
    bool reset(std::string_view /*key*/, Time /*now*/) override { return false; }
    bool open_circuit(std::string_view /*key*/, Time /*until*/, Time /*now*/) override {
      return false;
    }
    bool close_circuit(std::string_view /*key*/, Time /*now*/) override { return false; }

    std::shared_ptr<SharedState> local = local_state();
    std::shared_ptr<Watched> watched = std::make_shared<Watched>();
    int accounts = 0;
  };
  Calls calls;
  const auto state = std::make_shared<State>();
  calls.state = state;
  calls.network->say(Response(200), 300ms).say(Response(200), 1h);
  CHECK(calls.client_of(policy_with(thrifty_policy(100).budget)).get("http://x/"));
  CHECK(state->watched->hedges == 1);
  CHECK(state->watched->ended_hedges == 0);
  CHECK(state->accounts == 1);

  calls.network->say(Response(200), 300ms).say(Response(200), 1h);
  CHECK(calls.client_of(hedged_policy()).get("http://x/"));  // without a budget
  CHECK(state->watched->hedges == 1);
  CHECK(state->accounts == 1);
}

TEST_CASE("what is under way counts also by the numbers of a file that is read again") {
  Calls calls;
  const auto changed = concurrent(0, 2);
  const ChangedFile file(calls, concurrent(0, 1), changed);
  const Tally counts(*calls.state, changed);
  CHECK(counts.calls() == 2);
  CHECK(counts.extras() == 2);
  file.send();  // there is no place left, so it has ended
  CHECK(counts.calls() == 2);
  CHECK(counts.extras() == 2);

  calls.clock->advance(1s);
  CHECK(counts.calls() == 0);
  CHECK(counts.extras() == 0);
}

TEST_CASE(
    "where the new numbers are those of another budget, what is under way by the old is freed") {
  Calls calls;
  const auto old = concurrent(0, 1);
  const auto changed = concurrent(0, 2);
  const Tally before(*calls.state, old);
  const Tally after(*calls.state, changed);
  const ChangedFile file(calls, old, changed);
  file.send();
  CHECK(before.extras() == 1);
  CHECK(after.extras() == 2);

  calls.clock->advance(1s);
  CHECK(before.calls() == 0);
  CHECK(before.extras() == 0);
  CHECK(after.calls() == 0);
  CHECK(after.extras() == 0);
}

TEST_CASE("after random calls with faults, hedges and cancellations nothing is under way") {
  Random random(4711);
  INFO("HTTPRETRY_SEED=", random.seed());
  int retries = 0;
  int hedges = 0;
  int retries_refused = 0;
  int hedges_refused = 0;
  for (int round = 0; round < rounds(40); ++round) {
    Calls calls;
    auto policy =
        policy_with(concurrent(random.between(0, 400), static_cast<int>(random.between(0, 4))));
    policy.hedge->after = 100ms;
    policy.hedge->max_hedges = 2;
    policy.attempt_timeout = 500ms;
    policy.backoff = doubling(50ms);
    policy.retry_on.pending.emplace().statuses = {202};
    policy.retry_on.pending->max = 3;
    policy.guards.pause.enabled = false;
    const Tally counts(*calls.state, policy.budget);
    const auto server = std::make_shared<RandomServer>(random, counts);
    const auto grants = std::make_shared<Grants>(counts);
    auto options = calls.options_of(retry(policy));
    options.transport = server;
    options.observers = {grants};
    Client client(options);
    std::vector<std::stop_source> stops(200);
    std::vector<std::optional<Task<Outcome>>> tasks;
    int begun = 0;
    int ended = 0;
    for (auto& stop : stops) {
      auto request = Request::get("http://x/");
      request.set_header("X-Call", std::to_string(begun++));
      CallOptions how;
      how.stop = stop.get_token();
      if (random.between(0, 3) == 0) how.timeout = 1ms * random.between(1, 800);
      if (random.between(0, 9) == 0) {  // a task that is destroyed later
        auto& task = tasks.emplace_back(client.co_send(std::move(request), how));
        (void)(*task).operator co_await().await_suspend(std::noop_coroutine());
        ++ended;
      } else {
        client.send_then(
            std::move(request), [&](const Outcome&) { ++ended; }, how);
      }
      calls.clock->advance(1ms * random.between(0, 10));
      if (random.between(0, 4) == 0) {
        stops[static_cast<std::size_t>(random.between(0, begun - 1))].request_stop();
      }
      if (!tasks.empty() && random.between(0, 9) == 0) {
        tasks[static_cast<std::size_t>(
                  random.between(0, static_cast<std::int64_t>(tasks.size()) - 1))]
            .reset();
      }
    }
    tasks.clear();
    calls.clock->advance(1h);
    CHECK(ended == begun);
    CHECK(server->on_the_wire() == 0);
    CHECK(counts.calls() == 0);
    CHECK(counts.extras() == 0);
    retries += grants->retries;
    hedges += grants->hedges;
    retries_refused += grants->retries_refused;
    hedges_refused += grants->hedges_refused;
  }
  CHECK(retries > rounds(500));
  CHECK(hedges > rounds(500));
  CHECK(retries_refused > rounds(500));
  CHECK(hedges_refused > rounds(500));
}
