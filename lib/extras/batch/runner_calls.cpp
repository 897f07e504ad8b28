// The part of Runner::Work that starts calls, sends them, and handles their outcomes.
#include "runner_work.hpp"

#include <httpretry/retry/longest_pause.hpp>

#include <algorithm>
#include <map>
#include <string>

namespace httpretry::batch {
namespace {

// The most jobs that the store records in one step, before sends that must not be repeated.
constexpr std::size_t kIntentsAtOnce = 64;
// A send that is not on the wire this long after its attempt began counts as kept from it.
constexpr Duration kKeptAfter = std::chrono::milliseconds(50);
// A call is started this long before the rate of the run allows its first send, so that the time
// that this thread takes to wake up does not lower a high rate.
constexpr Duration kWakeUpTime = std::chrono::milliseconds(10);
// A job that has to wait longer for its host waits in the store.
constexpr Duration kLongestWaitHere = std::chrono::seconds(10);

// Returns whether a rate or a limit has kept the call from the wire for some time. A call whose
// attempt has not begun is only delayed, for example by a busy loop.
bool is_kept(const Flight& flight, Time now) {
  const auto began = flight.attempt_began.load();
  return began != Time{} && now - began >= kKeptAfter && !flight.on_wire;
}

// Returns how many calls may exist. A call between two attempts does not count toward `parallel`,
// so that it does not delay others, but it does need memory.
std::size_t most_calls(const RunnerOptions& options) {
  return options.parallel + std::max<std::size_t>(options.parallel * 4, 256);
}

}  // namespace

// Gives all jobs that were not sent back to the store, because the run ends.
void Runner::Work::give_back_all_unsent() {
  store_.stop_taking();
  for (const auto& job : lanes_.take_all()) store_.give_back(job);
  const auto every_call = [](const Flight&) { return true; };
  give_back_unsent(watch_->withdraw(every_call));
  give_back_unsent(std::exchange(intended_, {}));
}

// Gives the jobs of these calls, which were not sent, back to the store.
void Runner::Work::give_back_unsent(const std::vector<Flight*>& flights) {
  for (const auto* const flight : flights) {
    lanes_.note_job_ended(flight->job.host);
    store_.give_back(flight->job);
    flights_.erase(flight);
  }
}

// Lets `jobs_` judge the outcome of a call: its job has ended, must wait, or is given back. Passes
// this verdict on to the store. If the other jobs of the host would meet the same refusal, holds
// the host, which means that none of its jobs starts, for as long as this job waits. Destroys the
// flight, which is the job with its call.
void Runner::Work::handle_outcome(Flight& flight, Outcome outcome) {
  const bool hold_host = must_hold_host(flight, outcome);
  note_shortage(flight, outcome);  // whether the call lacked a resource, such as a descriptor
  lanes_.note_job_ended(flight.job.host);
  const auto current_time = now();
  pace_.ended(current_time, current_time - flight.started.load());
  std::optional<Verdict> verdict;
  with_store([&] { verdict = jobs_.judge(flight.job, flight.prepared, std::move(outcome)); });
  // Without a verdict, `judge` threw. with_store() keeps the exception, which ends the run. The
  // store has recorded whether the job may have been sent.
  if (verdict) {
    if (hold_host && verdict->what == Verdict::What::Wait) {
      hold(flight.job.host, later(now(), verdict->wait));
    }
    apply(flight.job, *std::move(verdict));
  }
  flights_.erase(&flight);
}

// Returns whether the other jobs of the host must be held for as long as this job has to wait.
bool Runner::Work::must_hold_host(const Flight& flight, const Outcome& outcome) {
  const bool refused = !outcome && outcome.error().held_back();  // by guards()
  // Called for every outcome, because refuses_all() counts the refusals in a row.
  const bool refuses_all = lanes_.refuses_all(flight.job.host, refused);
  if (!refused) {
    return flight.paused_host && history_of(outcome).stop_reason == Reason::ServerDelayTooLong;
  }
  // A pause may concern only some of the host's requests, so one refusal is not enough.
  return refuses_all || outcome.error().code != Errc::Paused;
}

// Notes whether the call lacked a resource of this machine. Reports the first shortage of a run.
void Runner::Work::note_shortage(const Flight& flight, const Outcome& outcome) {
  if (outcome || outcome.error().code != Errc::LocalShortage) return parallel_.ended(now());
  parallel_.lacked(flight.started.load());
  if (options_.on_shortage) std::exchange(options_.on_shortage, nullptr)(outcome.error().message);
}

// Lowers the limit on calls to the number of calls that have what they need. Ends the run if a
// shortage has lasted too long.
void Runner::Work::send_fewer() {
  const auto current_time = now();
  const auto has_resources = [current_time](const auto& entry) {
    const auto& flight = *entry.second;
    return flight.started.load() != Time{} && !flight.in_wait && !is_kept(flight, current_time);
  };
  const auto others = static_cast<std::size_t>(std::ranges::count_if(flights_, has_resources));
  if (parallel_.send_fewer(others, current_time)) return;  // the shortage may end soon
  ending_ = ending_.value_or(RunEnd::Shortage);
  watch_->ask(&CallWatch::Updates::finish_up);
}

// Returns whether another job may be prepared. Calls between two attempts, and calls that a limit
// keeps from the wire, do not count toward `parallel`.
bool Runner::Work::may_start() {
  if (ending_ || flights_.size() >= most_calls(options_)) return false;
  const auto ahead = limit_ ? 0 : options_.ahead;
  return flights_.size() - in_wait_ - kept_ < parallel_.at(now()) + ahead;
}

// Counts the calls that a rate or a limit of their host has kept from the wire for some time. They
// do not count toward `parallel`, so that other hosts can use their places.
void Runner::Work::update_kept_counts() {
  const auto current_time = now();
  if (current_time < count_kept_at_) return;
  count_kept_at_ = later(current_time, kKeptAfter);
  std::map<std::string, std::size_t> counts;
  kept_ = 0;
  for (const auto& [flight, owned] : flights_) {
    if (flight->in_wait || !is_kept(*flight, current_time)) continue;
    ++counts[flight->job.host];
    ++kept_;
  }
  lanes_.set_kept(counts);
}

// Prepares the calls of queued jobs while the limits allow more calls. If the rate of the run does
// not allow one yet, sets `rate_allows_at_`, the time at which run() must call this again.
void Runner::Work::start_jobs() {
  // may_start() does not count the calls that limits of their hosts keep from the wire.
  update_kept_counts();
  rate_allows_at_.reset();
  // A call that has just ended may have reached max_failures.
  if (watch_->is_finishing()) return;
  while (may_start() && lanes_.queued() > 0) {
    const auto current_time = now();
    if (limit_) {
      // Calls that are prepared but not sent come first. They reserve their first sends in send().
      const auto unsent = prepared_.size() + watch_->ready();
      const auto start_at = limit_->ready_after(unsent, current_time) - kWakeUpTime;
      if (start_at > current_time) {
        rate_allows_at_ = start_at;
        return;
      }
    }
    auto job = lanes_.start(current_time);
    if (!job) return;  // no host of a queued job may start one now
    start(*std::move(job));
  }
}

// Prepares the call of a job that lanes_.start() has chosen, for send_ready() to send. If the job
// must not be sent, for example because its deadline has passed, records its end instead. If
// `prepare` throws, gives the job back to the store and throws the same exception.
void Runner::Work::start(Job job) {
  auto prepared = [&] {
    try {
      return jobs_.prepare(job);
    } catch (...) {
      // Since lanes_.start(), the job has counted as running.
      lanes_.note_job_ended(job.host);
      store_.give_back(job);
      throw;
    }
  }();
  if (auto* const end = std::get_if<JobEnd>(&prepared)) {
    lanes_.note_job_ended(job.host);
    Verdict verdict;  // by default, that the job has ended
    verdict.end = std::move(*end);
    return apply(job, std::move(verdict));
  }
  auto new_flight =
      std::make_unique<Flight>(std::move(job), std::get<Prepared>(std::move(prepared)));
  auto& flight = *new_flight;
  auto& context = flight.prepared.request.edit_options().context;
  // With this link, the middlewares and the observer of the run find the flight of a call.
  context.set(FlightOfCall{&flight});
  // If the host asks for a longer pause, the call ends, and the job waits in the store.
  context.set(LongestPause{kLongestWaitHere});
  // `flights_` owns the flight until the outcome of its call has been judged.
  flights_.emplace(&flight, std::move(new_flight));
  prepared_.push_back(&flight);
}

// Sends as many prepared calls as the limits allow. A call that must not be repeated is left to
// send_intended(). The rest stays with CallWatch: the client's threads send one when another ends.
void Runner::Work::send_ready() {
  if (prepared_.empty() && watch_->ready() == 0) return;
  const auto to_send = watch_->send_ready(std::exchange(prepared_, {}), flights_.size(),
                                          parallel_.at(now()) + kept_);
  for (auto* const flight : to_send) {
    if (flight->prepared.unsafe) {
      intended_.push_back(flight);
    } else {
      send(*flight);
    }
  }
}

// Sends the calls of `intended_`, which must not be sent twice. The store durably records each call
// before it is sent, so that after a crash it is not sent again. Drops the calls that the store
// refuses, because it has taken back their jobs: in a queue, another worker may have them now.
void Runner::Work::send_intended() {
  while (!intended_.empty()) {
    const auto count = std::min(intended_.size(), kIntentsAtOnce);
    std::vector<const Job*> jobs;
    for (std::size_t i = 0; i < count; ++i) jobs.push_back(&intended_[i]->job);
    const auto refused_jobs = store_.intend(jobs);
    const auto batch_end = intended_.begin() + std::ssize(jobs);
    // If intend() throws, the calls stay in `intended_`, and their jobs are given back.
    const std::vector<Flight*> batch(intended_.begin(), batch_end);
    intended_.erase(intended_.begin(), batch_end);
    for (auto* const flight : batch) {
      const bool is_refused = std::ranges::find(refused_jobs, &flight->job) != refused_jobs.end();
      if (!is_refused) {
        send(*flight);
      } else {
        lanes_.note_job_ended(flight->job.host);
        flights_.erase(flight);
      }
    }
  }
}

// Gives the call to the client. When the call has ended, the client calls the lambda below, which
// passes the outcome to `watch_` and sends the next ready call. So this function runs on the thread
// of `run`, or on the client's thread of a call that has ended.
void Runner::Work::send(Flight& flight) {
  flight.started = now();
  watch_->on_call_begins(flight);  // if there is a rule for outages, counts the send
  auto request = flight.prepared.request;
  if (limit_) {
    // Reserves the first send under the rate of the run, so that start_jobs() knows when it allows
    // the next one. The middleware of the rate reserves the retries.
    request.edit_options().context.set(FirstSendTaken{limit_->reserve(flight.started)});
  }
  auto options = flight.prepared.options;
  options.stop = stop_.get_token();  // cancels the call at the end of the run
  client_.send_then(
      std::move(request),
      [this, &flight](Outcome outcome) {
        // `next` is null if no call is ready, or if only the thread of `run` may send it.
        if (auto* const next = watch_->on_call_ended(flight, std::move(outcome))) send(*next);
      },
      std::move(options));
}

}  // namespace httpretry::batch
