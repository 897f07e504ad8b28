#include "runner_work.hpp"

#include <algorithm>

namespace httpretry::batch {
namespace {

// The end of a job is committed within this time. One commit serves all jobs that ended in it.
constexpr Duration kCommitEvery = std::chrono::milliseconds(50);
// The longest time without a look at the store, because its wall clock may have been set.
constexpr Duration kLongestSleep = std::chrono::seconds(1);

}  // namespace

Jobs::~Jobs() = default;

// Adds the middlewares and the observer of a run.
ClientOptions Runner::Work::with_middlewares(ClientOptions options) {
  // They come before guards(), so that a send that waits for them does not occupy a place there.
  auto& chain = options.middlewares;
  const auto add = [&chain](MiddlewarePtr one) {
    const auto guards =
        std::ranges::find_if(chain, [](const auto& other) { return other->name() == "guards"; });
    chain.insert(guards, std::move(one));
  };
  if (options_.down_hosts) add(few_retries(watch_));
  if (limit_) add(limited_sends(limit_));
  options.middlewares.push_back(watched_sends());
  options.observers.push_back(watch_);
  const auto most = static_cast<int>(std::min<std::size_t>(options_.parallel, 1'000'000));
  if (options.max_in_flight == 0 || options.max_in_flight > most) options.max_in_flight = most;
  return options;
}

RunEnd Runner::Work::run() {
  for (const auto& held : store_.holds()) lanes_.hold(held.host, later(now(), held.time));
  for (;;) {
    handle_news(watch_->take(next_turn()));
    if (!failed_) with_store([this] { refill(); });
    if (!failed_) with_store([this] { start_jobs(); });
    send_ready();  // after a failure, this sends none, and handle_news() gives them back
    if (!failed_) with_store([this] { send_intended(); });
    if (!failed_) with_store([this] { commit_if_due(); });
    const auto end = find_end();
    if (!end) continue;
    // Even after a failure, because a full disk may have room again.
    with_store([this] { store_.commit(); });
    if (failed_) std::rethrow_exception(failed_);
    return *end;
  }
}

void Runner::Work::handle_news(CallWatch::News news) {
  for (const auto& asked : news.holds) hold(asked.host, asked.until);
  in_wait_ = news.in_wait;
  if (options_.down_hosts) lanes_.set_left_alone(news.left_alone);
  for (auto& [flight, outcome] : news.ended) call_ended(*flight, std::move(outcome));
  if (parallel_.lacks()) send_fewer();
  if (news.finish_up && ends_at_ == kNever) {
    ending_ = ending_.value_or(RunEnd::Stopped);
    ends_at_ = later(now(), options_.grace);
  }
  if (ending_) give_back_all_unsent();
  if (news.stop || now() >= ends_at_) stop_.request_stop();
  if (news.look_again) take_again_at_ = Time{};
  report_progress(news.progress_asked);
}

// Passes a verdict on to the store.
void Runner::Work::apply(const Job& job, Verdict verdict) {
  if (!commit_at_) commit_at_ = later(now(), kCommitEvery);
  take_again_at_ = std::min(take_again_at_, later(now(), kCommitEvery));
  switch (verdict.what) {
    case Verdict::What::Wait: return store_.wait(job, verdict.wait, verdict.attempts, verdict.why);
    case Verdict::What::GiveBack: return store_.give_back(job);
    case Verdict::What::End: break;
  }
  if (verdict.end.state == State::Dead && ++failures_ == options_.max_failures) {
    ending_ = RunEnd::Failures;
    watch_->ask(&CallWatch::News::finish_up);
  }
  store_.finish(job, std::move(verdict.end));
}

void Runner::Work::hold(const std::string& host, Time until) {
  for (const auto& job : lanes_.hold(host, until)) store_.give_back(job);
  give_back_unsent(
      watch_->withdraw([&host](const Flight& flight) { return flight.job.host == host; }));
  store_.hold(host, until - now());
  if (!commit_at_) commit_at_ = later(now(), kCommitEvery);
  take_again_at_ = Time{};
}

void Runner::Work::refill() {
  const auto turn = now();
  if (ending_ || turn < take_again_at_) return;
  const auto ready = lanes_.ready(turn);
  if (ready >= options_.parallel) return;
  std::vector<Job> taken;
  const auto most = options_.parallel * 4 - ready;
  store_.take(
      most, [&](std::string_view host) { return lanes_.wants(host, turn); }, taken);
  // The store has no job until a wait ends, or until a host is wanted again.
  if (taken.empty()) {
    const auto due = store_.next_due().value_or(kLongestSleep);
    take_again_at_ =
        later(turn, std::clamp(due, Duration(std::chrono::milliseconds(1)), kLongestSleep));
    if (const auto end = lanes_.next_end_of_hold(turn))
      take_again_at_ = std::min(take_again_at_, *end);
  }
  for (auto& job : taken) lanes_.add(std::move(job));
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

// Does the same if no call is in flight and the store had no job that may be sent now.
std::optional<RunEnd> Runner::Work::find_end_when_idle() {
  if (options_.until_stopped) return std::nullopt;
  const auto counts = store_.counts();
  if (counts.queued == 0 && counts.waiting == 0 && counts.sending == 0) return RunEnd::Finished;
  // `next_due` covers only the waits that are committed.
  with_store([this] { store_.commit(); });
  if (failed_) return std::nullopt;
  const auto turn = now();
  // A wait or the hold of a host may have ended during the commit.
  if (turn >= take_again_at_) return std::nullopt;
  auto next = store_.next_due().value_or(kForever);
  if (const auto hold = lanes_.next_end_of_hold(turn)) {
    next = std::min(next, *hold - turn);
  } else if (counts.queued > 0) {
    next = Duration::zero();  // the next look at the store finds a job
  }
  if (next <= options_.max_idle) return std::nullopt;
  return RunEnd::Idle;
}

Time Runner::Work::next_turn() const {
  const auto turn = now();
  auto next = std::min(later(turn, kLongestSleep), progress_at_);
  if (commit_at_) next = std::min(next, *commit_at_);
  if (const auto again = parallel_.again_at(); turn < again) next = std::min(next, again);
  if ((lanes_.queued() > 0 || watch_->ready() > 0) && !flights_.empty())
    next = std::min(next, look_again_at_);
  if (rate_allows_at_) next = std::min(next, *rate_allows_at_);
  if (const auto end = lanes_.next_end_of_hold(turn)) next = std::min(next, *end);
  if (ending_) return std::min(next, ends_at_);
  const bool room = lanes_.ready(turn) < options_.parallel;
  return room ? std::min(next, take_again_at_) : next;
}

RunProgress Runner::Work::progress() const {
  const auto turn = now();
  RunProgress progress;
  progress.counts = store_.counts();
  progress.ended = pace_.count();
  progress.in_flight = flights_.size() - intended_.size() - watch_->ready();
  progress.in_wait = in_wait_;
  progress.per_second = pace_.per_second(turn);
  progress.median = pace_.median();
  const auto left = progress.counts.queued + progress.counts.sending;
  if (progress.per_second > 0) {
    const std::chrono::duration<double> time(static_cast<double>(left) / progress.per_second);
    progress.time_left = std::chrono::duration_cast<Duration>(time);
  }
  for (const auto* lane : lanes_.held(turn)) {
    progress.paused.push_back({lane->host, lane->held_until - turn});
  }
  return progress;
}

void Runner::Work::report_progress(bool asked) {
  const auto turn = now();
  if (!options_.on_progress) {
    progress_at_ = kNever;
    return;
  }
  if (!asked && turn < progress_at_) return;
  progress_at_ = later(turn, options_.progress_every);
  options_.on_progress(progress());
}

Runner::Runner(ClientOptions options, Store& store, Jobs& jobs, RunnerOptions its)
    : work_(std::make_unique<Work>(std::move(options), store, jobs, std::move(its))) {}
Runner::~Runner() = default;

RunEnd Runner::run() { return work_->run(); }
void Runner::finish_up() { work_->watch().ask(&CallWatch::News::finish_up); }
void Runner::stop() {
  finish_up();
  work_->watch().ask(&CallWatch::News::stop);
}
void Runner::ask_progress() { work_->watch().ask(&CallWatch::News::progress_asked); }
void Runner::look_again() { work_->watch().ask(&CallWatch::News::look_again); }

}  // namespace httpretry::batch
