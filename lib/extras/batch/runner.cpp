#include "runner_work.hpp"

#include <algorithm>
#include <utility>

namespace httpretry::batch {
namespace {

// The end of a job is committed within this time. One commit serves all jobs that ended in it.
constexpr Duration kCommitEvery = std::chrono::milliseconds(50);
// The limits on the time without a look at the store. The wall clock of the store may be set.
constexpr Duration kShortestSleep = std::chrono::milliseconds(1);
constexpr Duration kLongestSleep = std::chrono::seconds(1);
// refill() takes this many times more jobs than may be in flight.
constexpr std::size_t kTakeFactor = 4;
constexpr Time kAtOnce{};  // a time in the past

}  // namespace

Jobs::~Jobs() = default;

// Returns the options of the client with the middlewares and the observer (`watch_`) of a run. The
// client may have no more requests in flight than the run.
ClientOptions Runner::Work::with_middlewares(ClientOptions options) {
  auto& chain = options.middlewares;
  // Sends wait in the added middlewares. Behind guards(), a waiting send would count as in flight
  // toward its limits. Without guards(), the order does not matter.
  const auto add_before_guards = [&chain](MiddlewarePtr added) {
    const auto guards =
        std::ranges::find_if(chain, [](const auto& other) { return other->name() == "guards"; });
    chain.insert(guards, std::move(added));
  };
  if (options_.down_hosts) add_before_guards(few_retries_in_outages(watch_));
  if (limit_) add_before_guards(rate_limited_sends(limit_));  // the rate of the whole run
  options.attempt_middlewares.push_back(mark_sends_on_wire());
  options.observers.push_back(watch_);
  // The upper bound only makes the number fit into an int.
  const auto most = static_cast<int>(std::min<std::size_t>(options_.parallel, 1'000'000));
  // 0 means that the options set no limit.
  if (options.max_in_flight == 0 || options.max_in_flight > most) options.max_in_flight = most;
  return options;
}

// Runs the jobs of the store and returns why the run ended. After an exception of the store, which
// with_store() keeps in `failed_`, starts no more jobs, waits for the calls in flight, and throws
// the exception.
RunEnd Runner::Work::run() {
  // The pauses that hosts asked for in earlier runs, and that have not ended yet.
  for (const auto& held : store_.holds()) lanes_.hold(held.host, later(now(), held.time));
  for (;;) {
    handle_updates(watch_->take(wake_at()));             // blocks until there is something to do
    if (!failed_) with_store([this] { refill(); });      // takes jobs from the store
    if (!failed_) with_store([this] { start_jobs(); });  // prepares the calls of some
    // After a failure, this sends none, but passes the prepared calls on to `watch_`, from which
    // handle_updates() gives their jobs back.
    send_ready();
    // The calls that must not be sent twice, so the store records them first.
    if (!failed_) with_store([this] { send_intended(); });
    if (!failed_) with_store([this] { commit_if_due(); });
    const auto end = find_end();
    if (!end) continue;  // the run goes on
    // Even after a failure, because a full disk may have space again.
    with_store([this] { store_.commit(); });
    if (failed_) std::rethrow_exception(failed_);
    return *end;
  }
}

// Applies what the client's threads have reported since the last time, and the requests to end the
// run. After `finish_up`, no more calls start, and those in flight have a grace period to end.
// `stop`, or the end of that period, cancels them.
void Runner::Work::handle_updates(CallWatch::Updates updates) {
  for (const auto& pause : updates.holds) hold(pause.host, pause.until);  // hosts asked for these
  in_wait_ = updates.in_wait;  // the number of calls between two attempts
  // During an outage of a host, no further calls may begin there.
  if (options_.down_hosts) lanes_.set_blocked(updates.blocked_hosts);
  for (auto& [flight, outcome] : updates.ended) handle_outcome(*flight, std::move(outcome));
  // A call lacked a resource of this machine, such as a descriptor.
  if (parallel_.has_new_shortage()) send_fewer();
  if (updates.finish_up && ends_at_ == kNever) {  // the grace period has not begun
    ending_ = ending_.value_or(RunEnd::Stopped);  // an earlier reason, such as Failures, stays
    ends_at_ = later(now(), options_.grace);
  }
  if (ending_) give_back_all_unsent();
  if (updates.stop || now() >= ends_at_) stop_.request_stop();
  if (updates.store_has_jobs) take_again_at_ = kAtOnce;  // refill() takes some
  report_progress(updates.progress_asked ? Report::Now : Report::IfDue);
}

// Passes a verdict on to the store. Ends the run once max_failures jobs have died in it.
void Runner::Work::apply(const Job& job, Verdict verdict) {
  schedule_commit();
  ask_before_idle_ = true;
  // The store may have jobs again once the change is committed.
  take_again_at_ = std::min(take_again_at_, later(now(), kCommitEvery));
  switch (verdict.what) {
    case Verdict::What::Wait: return store_.wait(job, verdict.wait, verdict.attempts, verdict.why);
    case Verdict::What::GiveBack: return store_.give_back(job);
    case Verdict::What::End: break;
  }
  if (verdict.end.state == State::Dead) ++failures_;
  if (options_.max_failures != 0 && failures_ >= options_.max_failures) {
    ending_ = ending_.value_or(RunEnd::Failures);  // an earlier reason, such as Stopped, stays
    watch_->ask(&CallWatch::Updates::finish_up);
  }
  store_.finish(job, std::move(verdict.end));
}

// Starts no job of the host until `until`, even in the next run. Gives its jobs that were not sent
// back to the store.
void Runner::Work::hold(const std::string& host, Time until) {
  for (const auto& job : lanes_.hold(host, until)) store_.give_back(job);
  give_back_unsent(
      watch_->withdraw([&host](const Flight& flight) { return flight.job.host == host; }));
  store_.hold(host, until - now());
  schedule_commit();
  take_again_at_ = kAtOnce;  // jobs of other hosts can take their places
}

// Fills the queues of the hosts (`lanes_`) with jobs from the store if fewer than `parallel` jobs
// can start now. If the store has none, notes when to ask it again (`take_again_at_`).
void Runner::Work::refill() {
  const auto current_time = now();
  if (ending_ || current_time < take_again_at_) return;
  const auto ready = lanes_.ready(current_time);
  if (ready >= options_.parallel) return;
  lanes_.forget_idle(current_time);
  std::vector<Job> taken;
  // More than may be in flight, so that the store is asked less often.
  const auto most = options_.parallel * kTakeFactor - ready;
  // A host with a full queue, or whose jobs are held back, gets no more of them.
  const auto wants_host = [&](std::string_view host) { return lanes_.wants(host, current_time); };
  store_.take(most, wants_host, taken);
  if (taken.empty()) {
    // The store has a job again when a wait ends, or when the hold of a host ends.
    const auto time_to_due = store_.next_due().value_or(kLongestSleep);
    take_again_at_ = later(current_time, std::clamp(time_to_due, kShortestSleep, kLongestSleep));
    if (const auto end = lanes_.next_end_of_hold(current_time))
      take_again_at_ = std::min(take_again_at_, *end);
  }
  for (auto& job : taken) lanes_.add(std::move(job));
}

// Notes that there are changes to commit.
void Runner::Work::schedule_commit() {
  if (!commit_at_) commit_at_ = later(now(), kCommitEvery);
}

void Runner::Work::commit_if_due() {
  if (!commit_at_ || now() < *commit_at_) return;
  store_.commit();
  commit_at_.reset();
}

// Returns why the run has ended, or nullopt if it goes on.
std::optional<RunEnd> Runner::Work::find_end() {
  if (!flights_.empty()) return std::nullopt;
  if (ending_) return ending_;
  if (lanes_.queued() > 0 || now() >= take_again_at_) return std::nullopt;
  return find_end_when_idle();
}

// Returns Finished if each job has ended or is unknown, Idle if the next job can only be sent after
// more than max_idle, and nullopt if the run goes on. Called only if no call is in flight, and if
// the store had no job that may be sent when it was last asked.
std::optional<RunEnd> Runner::Work::find_end_when_idle() {
  if (options_.until_stopped) return std::nullopt;  // other programs may add jobs
  const auto counts = store_.counts();
  // In a queue, `sending` includes the jobs of other workers, which they may give back.
  if (counts.queued == 0 && counts.waiting == 0 && counts.sending == 0) return RunEnd::Finished;
  // next_due() may know only the waits that are committed.
  with_store([this] { store_.commit(); });
  if (failed_) return std::nullopt;  // run() ends with the exception of the store
  // Since take() found no job, one may have been given back, or the queue of its host may have got
  // a place.
  if (std::exchange(ask_before_idle_, false)) {
    take_again_at_ = kAtOnce;
    return std::nullopt;
  }
  const auto current_time = now();
  // A wait or the hold of a host may have ended during the commit: refill() must ask again first.
  if (current_time >= take_again_at_) return std::nullopt;
  auto time_to_next = store_.next_due().value_or(kForever);
  if (const auto hold_end = lanes_.next_end_of_hold(current_time)) {
    // Counts all queued jobs as those of held hosts, because take() found no others.
    time_to_next = std::min<Duration>(time_to_next, *hold_end - current_time);
  } else if (counts.queued > 0) {
    // No host is held, so the queued jobs can be sent now: the next take() finds one.
    time_to_next = Duration::zero();
  }
  if (time_to_next <= options_.max_idle) return std::nullopt;
  return RunEnd::Idle;
}

// Returns until when run() may wait for updates: the first time at which there is something to do.
// At that time, the functions that run() calls find out what it is.
Time Runner::Work::wake_at() const {
  const auto current_time = now();
  auto next = std::min(later(current_time, kLongestSleep), progress_at_);
  if (commit_at_) next = std::min(next, *commit_at_);
  // After a shortage, nothing is sent for a moment.
  if (const auto again = parallel_.again_at(); current_time < again) next = std::min(next, again);
  // Calls that a limit keeps from the wire leave their places to unsent jobs once they are counted.
  const bool has_unsent_jobs = lanes_.queued() > 0 || watch_->ready() > 0;
  if (has_unsent_jobs && !flights_.empty()) next = std::min(next, count_kept_at_);
  if (rate_allows_at_) next = std::min(next, *rate_allows_at_);
  if (const auto end = lanes_.next_end_of_hold(current_time)) next = std::min(next, *end);
  if (ending_) return std::min(next, ends_at_);
  const bool wants_jobs = lanes_.ready(current_time) < options_.parallel;
  return wants_jobs ? std::min(next, take_again_at_) : next;
}

// Returns a snapshot of the run for a progress display: counts, rates, and the hosts that are
// paused. Estimates the time that is left from the rate at which jobs have ended in the last
// seconds, unless jobs wait or hosts are paused.
RunProgress Runner::Work::progress() const {
  const auto current_time = now();
  RunProgress progress;
  progress.counts = store_.counts();
  // pace_ counts the calls that have ended in this run, and measures their rate and durations.
  progress.ended = pace_.count();
  // Some calls are only prepared: they wait until others end.
  progress.in_flight = flights_.size() - watch_->ready();
  progress.in_wait = in_wait_;
  progress.per_second = pace_.per_second(current_time);
  progress.median = pace_.median();
  for (const auto* lane : lanes_.held(current_time)) {
    progress.paused.push_back({.name = lane->host, .paused = lane->held_until - current_time});
  }
  // Waits and pauses decide when the jobs that they hold back are sent, and not the rate.
  const bool is_held_back = progress.counts.waiting > 0 || !progress.paused.empty();
  if (progress.per_second > 0 && !is_held_back) {
    const auto jobs_left = progress.counts.queued + progress.counts.sending;
    const std::chrono::duration<double> seconds(static_cast<double>(jobs_left) /
                                                progress.per_second);
    progress.time_left = Duration(seconds);
  }
  return progress;
}

// Calls on_progress if it is set, and if a report is due or was requested.
void Runner::Work::report_progress(Report when) {
  const auto current_time = now();
  if (!options_.on_progress) {
    progress_at_ = kNever;
    return;
  }
  if (when == Report::IfDue && current_time < progress_at_) return;
  progress_at_ = later(current_time, options_.progress_every);
  options_.on_progress(progress());
}

Runner::Runner(ClientOptions options, Store& store, Jobs& jobs, RunnerOptions its) {
  const auto& rate = its.rate;
  if (rate && (rate->counts != RatePolicy::Counts::Requests || !rate->further.empty())) {
    throw std::invalid_argument("the rate of a run counts requests, and has no further rates");
  }
  work_ = std::make_unique<Work>(std::move(options), store, jobs, std::move(its));
}
Runner::~Runner() = default;

RunEnd Runner::run() { return work_->run(); }
void Runner::finish_up() { work_->watch().ask(&CallWatch::Updates::finish_up); }
void Runner::stop() {
  finish_up();
  work_->watch().ask(&CallWatch::Updates::stop);
}
void Runner::ask_progress() { work_->watch().ask(&CallWatch::Updates::progress_asked); }
void Runner::look_again() { work_->watch().ask(&CallWatch::Updates::store_has_jobs); }

}  // namespace httpretry::batch
