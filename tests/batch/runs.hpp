// Shared by the tests of Runner: a store in memory, its jobs, and a machine that lacks
// descriptors.
#pragma once

#include <httpretry/batch/runner.hpp>
#include <httpretry/guard/guards.hpp>
#include <httpretry/middleware/retry.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace httpretry::batch {

using namespace std::chrono_literals;

class MemoryStore final : public Store {
 public:
  void add(std::string url, std::string host = "a") {
    Job job;
    job.number = ++counts_.queued;
    job.text = std::move(url);
    job.host = std::move(host);
    queue.push_back(std::move(job));
  }

  void add_waiting(std::string url, Duration time) {
    Job job;
    job.number = ++counts_.waiting;
    job.text = std::move(url);
    job.host = "a";
    committed_waits_.push_back({job, later(std::chrono::steady_clock::now(), time)});
  }

  void take(std::size_t most, const WantsHost& wants, std::vector<Job>& jobs) override {
    if (fails_at_take) throw StoreError("the disk is broken");
    if (queue.empty() && when_empty) when_empty(++empty_takes);
    looked_at_ = std::chrono::steady_clock::now();
    std::erase_if(committed_waits_, [&](const auto& wait) {
      if (wait.due > looked_at_ || !wants(wait.job.host)) return false;
      queue.push_back(wait.job);
      --counts_.waiting;
      ++counts_.queued;
      return true;
    });
    for (auto next = queue.begin(); next != queue.end() && most > 0;) {
      if (!wants(next->host)) {
        ++next;
        continue;
      }
      jobs.push_back(*next);
      next = queue.erase(next);
      --most;
    }
  }
  std::vector<const Job*> intend(std::span<const Job* const> jobs) override {
    if (fails_at_intend) throw StoreError("the disk is full");
    largest_intent = std::max(largest_intent, jobs.size());
    std::vector<const Job*> refused;
    for (const auto* job : jobs) {
      intended.insert(job->number);
      if (refuses.erase(job->number) == 0) continue;
      give_back(*job);
      refused.push_back(job);
    }
    return refused;
  }
  void wait(const Job& job, Duration time, int /*attempts*/, std::string_view /*why*/) override {
    waits[job.number] = time;
    new_waits_.push_back({job, later(std::chrono::steady_clock::now(), time)});
    --counts_.queued;
    ++counts_.waiting;
  }
  void finish(const Job& job, JobEnd end) override {
    ended[job.number] = end.state;
    --counts_.queued;
    ++counts_.of(end.state);
  }
  void give_back(const Job& job) override { queue.push_front(job); }
  void stop_taking() override { stopped_taking = true; }
  void hold(std::string_view host, Duration time) override {
    held[std::string(host)] = time;
    if (on_hold) on_hold();
  }
  std::vector<HeldHost> holds() override { return holds_before; }
  void commit() override {
    if (on_commit) on_commit();
    ++commits;
    std::ranges::move(new_waits_, std::back_inserter(committed_waits_));
    new_waits_.clear();
  }
  [[nodiscard]] Counts counts() const override { return counts_; }
  std::optional<Duration> next_due() override {
    std::optional<Duration> next;
    for (const auto& wait : committed_waits_) {
      if (wait.due <= looked_at_) continue;
      const auto time = wait.due - std::chrono::steady_clock::now();
      if (!next || time < *next) next = time;
    }
    return next;
  }

  std::deque<Job> queue;
  std::set<std::uint64_t> intended;
  std::set<std::uint64_t> refuses;  // once
  std::size_t largest_intent = 0;
  std::map<std::uint64_t, State> ended;
  std::map<std::uint64_t, Duration> waits;
  std::map<std::string, Duration> held;
  std::function<void()> on_hold;
  std::function<void()> on_commit;
  std::vector<HeldHost> holds_before;
  int commits = 0;
  std::function<void(int times)> when_empty;
  int empty_takes = 0;
  bool stopped_taking = false;
  bool fails_at_take = false;
  bool fails_at_intend = false;

 private:
  struct Wait {
    Job job;
    Time due;
  };
  Time looked_at_{};
  std::vector<Wait> new_waits_;
  std::vector<Wait> committed_waits_;
  Counts counts_;
};

struct SimpleJobs : Jobs {
  std::variant<Prepared, JobEnd> prepare(const Job& job) override {
    Prepared prepared(unsafe ? Request::post(job.text, "x") : Request::get(job.text));
    prepared.unsafe = unsafe;
    return prepared;
  }
  Verdict judge(const Job& /*job*/, const Prepared& /*sent*/, Outcome outcome) override {
    Verdict verdict;
    if (fails) throw StoreError("the body cannot be written");
    const bool lacking = !outcome && outcome.error().code == Errc::LocalShortage;
    if (lacking || history_of(outcome).stop_reason == Reason::Canceled) {
      verdict.what = Verdict::What::GiveBack;
    }
    const bool held_back = !outcome && outcome.error().held_back();
    if (held_back || history_of(outcome).stop_reason == Reason::ServerDelayTooLong) {
      verdict.what = Verdict::What::Wait;
      verdict.wait = 1h;
    }
    if (std::exchange(first_waits, false)) {
      verdict.what = Verdict::What::Wait;
      verdict.wait = 10ms;
    }
    verdict.end.state = succeeded(outcome) ? State::Done : State::Dead;
    return verdict;
  }
  bool unsafe = false;
  bool fails = false;
  bool first_waits = false;
};

inline RetryPolicy quick_policy() {
  RetryPolicy policy;
  policy.backoff.initial = 1ms;
  policy.throttle_backoff->initial = 1ms;
  return policy;
}

inline ClientOptions client_options(const RetryPolicy& policy = quick_policy()) {
  ClientOptions options;
  options.middlewares.clear();
  options.middlewares.push_back(retry(policy));
  options.middlewares.push_back(guards());
  return options;
}

inline std::string date_in(std::chrono::seconds time) {
  const auto when = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now() + time);
  std::array<char, 64> text{};
  std::tm parts{};
  ::gmtime_r(&when, &parts);
  const auto size = std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return {text.data(), size};
}

// A machine whose descriptors limit the number of sends at once.
struct Scarce final : Transport {
  explicit Scarce(int most) : places(most) {}

  Task<Outcome> send(Request /*request*/, Call& call) override {
    ++asked;
    if (in_use >= places) {
      ++refused;
      if (refused == refusals_until_one) places = 1;
      co_return Error(Errc::LocalShortage, "no descriptor");
    }
    ++in_use;
    const Time end = call.scheduler().now() + 1ms;
    const bool slept = co_await call.scheduler().sleep_until(end, call.stop());
    --in_use;
    if (!slept) co_return Error(Errc::Canceled);
    co_return Response(200);
  }

  std::atomic<int> places;
  std::atomic<int> in_use = 0;
  std::atomic<int> asked = 0;
  std::atomic<int> refused = 0;
  int refusals_until_one = -1;
};

struct Fixture {
  MemoryStore store;
  SimpleJobs jobs;
  RunnerOptions options;
  RunEnd run() { return Runner(client_options(), store, jobs, options).run(); }
  RunEnd run_with(const std::shared_ptr<Scarce>& machine) {
    options.on_shortage = [this](const std::string& what) { shortages.push_back(what); };
    auto client = client_options();
    client.transport = machine;
    return Runner(std::move(client), store, jobs, options).run();
  }
  std::vector<std::string> shortages;
};

}  // namespace httpretry::batch
