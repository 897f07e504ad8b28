// Runner::Work is a run. It decides on one thread which job is sent next. The calls run on the
// threads of its client, and CallWatch passes their outcomes back.
#pragma once

#include <httpretry/batch/runner.hpp>

#include "call_watch.hpp"
#include "lanes.hpp"
#include "pace.hpp"
#include "parallel_limit.hpp"
#include "send_limit.hpp"

#include <exception>
#include <stop_token>
#include <unordered_map>

namespace httpretry::batch {

class Runner::Work {
 public:
  Work(ClientOptions options, Store& store, Jobs& jobs, RunnerOptions its)
      : options_(std::move(its)),
        store_(store),
        jobs_(jobs),
        limit_(options_.rate ? std::make_shared<SendLimit>(*options_.rate) : nullptr),
        parallel_(options_.parallel, options_.max_shortage),
        watch_(std::make_shared<CallWatch>(options_.down_hosts)),
        lanes_(std::max<std::size_t>(options_.parallel, 16)),
        pace_(now()),
        client_(with_middlewares(std::move(options))) {}

  ~Work() { stop_.request_stop(); }

  RunEnd run();
  CallWatch& watch() { return *watch_; }

 private:
  static Time now() { return std::chrono::steady_clock::now(); }
  ClientOptions with_middlewares(ClientOptions options);
  void handle_updates(CallWatch::Updates updates);
  void handle_outcome(Flight& flight, Outcome outcome);
  bool must_hold_host(const Flight& flight, const Outcome& outcome);
  void note_shortage(const Flight& flight, const Outcome& outcome);
  void send_fewer();
  void hold(const std::string& host, Time until);
  void refill();
  void update_kept_counts();
  void start_jobs();
  bool may_start();
  void start(Job job);
  void send_ready();
  void send_intended();
  void send(Flight& flight);
  void apply(const Job& job, Verdict verdict);
  void schedule_commit();
  void commit_if_due();
  void give_back_all_unsent();
  void give_back_unsent(const std::vector<Flight*>& flights);
  [[nodiscard]] std::optional<RunEnd> find_end();
  [[nodiscard]] std::optional<RunEnd> find_end_when_idle();
  [[nodiscard]] Time wake_at() const;
  [[nodiscard]] RunProgress progress() const;
  enum class Report : std::uint8_t { IfDue, Now };
  void report_progress(Report when);
  template <class Action>
  void with_store(Action action);

  RunnerOptions options_;
  Store& store_;
  Jobs& jobs_;
  std::shared_ptr<SendLimit> limit_;
  ParallelLimit parallel_;
  std::shared_ptr<CallWatch> watch_;
  Lanes lanes_;
  Pace pace_;
  std::stop_source stop_;
  std::unordered_map<const Flight*, std::unique_ptr<Flight>> flights_;
  std::vector<Flight*> prepared_;  // since the last turn
  std::vector<Flight*> intended_;  // to be sent once the store has recorded them
  std::size_t in_wait_ = 0;        // calls between two attempts
  std::size_t kept_ = 0;           // calls that our own limits keep from the wire
  Time count_kept_at_{};           // when `kept_` is counted again
  std::uint64_t failures_ = 0;
  std::optional<RunEnd> ending_;   // why no more jobs are started
  std::exception_ptr failed_;      // the first exception of the store
  std::optional<Time> commit_at_;  // when the changes are committed; empty: there are no changes
  Time take_again_at_{};           // when the store, which had no jobs, may have some again
  bool ask_before_idle_ = false;   // a verdict was applied since find_end() last requested a take()
  Time ends_at_ = kNever;          // the end of the grace period
  std::optional<Time> rate_allows_at_;
  Time progress_at_ = now();
  Client client_;  // last: its callbacks use the other members
};

// Calls `action`, and keeps the first exception for the end of the run. After a failure, the calls
// in flight may end, and the store gets another chance to record their outcomes.
template <class Action>
void Runner::Work::with_store(Action action) {
  try {
    action();
  } catch (...) {
    if (!failed_) failed_ = std::current_exception();
    watch_->ask(&CallWatch::Updates::finish_up);
  }
}

}  // namespace httpretry::batch
