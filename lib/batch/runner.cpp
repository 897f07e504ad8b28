#include <httpretry/batch/runner.hpp>
#include <httpretry/retry/longest_pause.hpp>

#include "lib/batch/call_watch.hpp"
#include "lib/batch/lanes.hpp"
#include "lib/batch/pace.hpp"
#include "lib/batch/send_limit.hpp"

#include <algorithm>
#include <exception>
#include <stop_token>
#include <unordered_map>

namespace httpretry::batch {
namespace {

// What ended is durable after this time. One commit serves all that ended meanwhile.
constexpr Duration kCommitEvery = std::chrono::milliseconds(50);
// How many sends that must not be repeated are committed together.
constexpr std::size_t kIntentsAtOnce = 64;
// A call that is not on the wire after this time is kept from it.
constexpr Duration kKeptAfter = std::chrono::milliseconds(50);
// The longest time without a look at the store: its wall clock may have been changed.
constexpr Duration kLongestSleep = std::chrono::seconds(1);
// After a shortage with no other call on the wire, whose end could change it.
constexpr Duration kTryAgainAfter = std::chrono::milliseconds(200);
// After a shortage, one more call is made at once when that many times all of them have ended.
constexpr std::size_t kRoundsToGrow = 10;
// A job that has to wait longer for its host is given to the store.
constexpr Duration kLongestWaitHere = std::chrono::seconds(10);

Time now() { return std::chrono::steady_clock::now(); }

// Calls that wait between two attempts do not count, so that they hold up nobody; but each needs
// memory.
std::size_t most_calls(const RunnerOptions& options) {
  return options.parallel + std::max<std::size_t>(options.parallel * 4, 256);
}

}  // namespace

Jobs::~Jobs() = default;

class Runner::Work {
 public:
  Work(ClientOptions options, Store& store, Jobs& jobs, RunnerOptions its)
      : options_(std::move(its)),
        store_(store),
        jobs_(jobs),
        limit_(options_.rate ? std::make_shared<SendLimit>(*options_.rate) : nullptr),
        parallel_(options_.parallel),
        watch_(std::make_shared<CallWatch>(options_.down_hosts)),
        lanes_(std::max<std::size_t>(options_.parallel, 16)),
        pace_(now()),
        client_(with_ours(std::move(options))) {}

  ~Work() { stop_.request_stop(); }

  RunEnd run();
  CallWatch& watch() { return *watch_; }

 private:
  ClientOptions with_ours(ClientOptions options);
  void learn(CallWatch::News news);
  void call_ended(Flight& flight, Outcome outcome);
  bool host_waits_with(const Flight& flight, const Outcome& outcome);
  void note_shortage(const Flight& flight, const Outcome& outcome);
  void send_fewer();
  void hold(const std::string& host, Time until);
  void refill();
  void look_for_kept();
  void start_jobs();
  bool may_start();
  [[nodiscard]] std::size_t most_on_wire() const;
  void start(Job job);
  void send_ready();
  void send_intended();
  void send(Flight& flight);
  void take_in(const Job& job, Verdict verdict);
  void commit_if_due();
  void drop_unsent();
  void take_back(const std::vector<Flight*>& flights);
  [[nodiscard]] std::optional<RunEnd> over();
  [[nodiscard]] std::optional<RunEnd> over_when_idle();
  [[nodiscard]] Time next_turn() const;
  [[nodiscard]] RunProgress progress() const;
  void report_progress(bool asked);
  template <class Action>
  void with_store(Action action);

  RunnerOptions options_;
  Store& store_;
  Jobs& jobs_;
  std::shared_ptr<SendLimit> limit_;
  std::size_t parallel_;         // fewer than options_.parallel after a shortage
  std::size_t ended_since_ = 0;  // calls, since parallel_ changed
  // Calls of this turn lacked something: when the last of them began.
  std::optional<Time> lacking_;
  Time last_end_{};                    // of a call that lacked nothing
  std::optional<Time> lacking_since_;  // that nothing could be sent
  Time send_again_at_{};
  std::shared_ptr<CallWatch> watch_;
  Lanes lanes_;
  Pace pace_;
  std::stop_source stop_;
  std::unordered_map<const Flight*, std::unique_ptr<Flight>> flights_;
  std::vector<Flight*> prepared_;  // since the last turn
  std::vector<Flight*> intended_;  // to be sent when the store knows
  std::size_t in_wait_ = 0;        // calls between two attempts
  std::size_t kept_ = 0;           // calls that our own limits keep from the wire
  Time look_again_at_{};           // for these
  std::uint64_t failures_ = 0;
  std::optional<RunEnd> ending_;
  std::exception_ptr failed_;      // what the store threw
  std::optional<Time> commit_at_;  // something is to be committed
  Time take_again_at_{};           // the store had nothing
  Time ends_at_ = kNever;          // of the grace
  std::optional<Time> rate_allows_at_;
  Time progress_at_ = now();
  Client client_;  // last: its callbacks use the other members
};

ClientOptions Runner::Work::with_ours(ClientOptions options) {
  // A send must not hold what guards() gave it while it waits for an outage or the rate of the run.
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
    learn(watch_->take(next_turn()));
    if (!failed_) with_store([this] { refill(); });
    if (!failed_) with_store([this] { start_jobs(); });
    send_ready();  // after a failure none is sent, and `learn` gives them back
    if (!failed_) with_store([this] { send_intended(); });
    if (!failed_) with_store([this] { commit_if_due(); });
    const auto end = over();
    if (!end) continue;
    // Also after a failure: a disk may have room again.
    with_store([this] { store_.commit(); });
    if (failed_) std::rethrow_exception(failed_);
    return *end;
  }
}

// Where something cannot be written, calls under way may end, and their ends are offered to the
// store once more.
template <class Action>
void Runner::Work::with_store(Action action) {
  try {
    action();
  } catch (...) {
    if (!failed_) failed_ = std::current_exception();
    watch_->ask(&CallWatch::News::finish_up);
  }
}

void Runner::Work::learn(CallWatch::News news) {
  for (const auto& asked : news.holds) hold(asked.host, asked.until);
  in_wait_ = news.in_wait;
  if (options_.down_hosts) lanes_.leave_alone(news.left_alone);
  for (auto& [flight, outcome] : news.ended) call_ended(*flight, std::move(outcome));
  if (lacking_) send_fewer();
  if (news.finish_up && ends_at_ == kNever) {
    ending_ = ending_.value_or(RunEnd::Stopped);
    ends_at_ = later(now(), options_.grace);
  }
  if (ending_) drop_unsent();
  if (news.stop || now() >= ends_at_) stop_.request_stop();
  if (news.look_again) take_again_at_ = Time{};
  report_progress(news.progress_asked);
}

// Nothing that is not on its way will be started.
void Runner::Work::drop_unsent() {
  store_.stop_taking();
  for (const auto& job : lanes_.take_all()) store_.give_back(job);
  take_back(watch_->withdraw([](const Flight&) { return true; }));
  take_back(std::exchange(intended_, {}));
}

// For calls that were not sent.
void Runner::Work::take_back(const std::vector<Flight*>& flights) {
  for (const auto* const flight : flights) {
    lanes_.ended(flight->job.host);
    store_.give_back(flight->job);
    flights_.erase(flight);
  }
}

void Runner::Work::call_ended(Flight& flight, Outcome outcome) {
  const bool host_waits = host_waits_with(flight, outcome);
  note_shortage(flight, outcome);
  lanes_.ended(flight.job.host);
  const auto turn = now();
  pace_.ended(turn, turn - flight.started.load());
  std::optional<Verdict> judged;
  with_store([&] { judged = jobs_.judge(flight.job, flight.prepared, std::move(outcome)); });
  if (!judged) {
    // The store knows whether it may have been sent.
    flights_.erase(&flight);
    return;
  }
  auto& verdict = *judged;
  if (host_waits && verdict.what == Verdict::What::Wait) {
    hold(flight.job.host, later(now(), verdict.wait));
  }
  take_in(flight.job, std::move(verdict));
  flights_.erase(&flight);
}

// Whether the host of a job is left alone for as long as the job has to wait.
bool Runner::Work::host_waits_with(const Flight& flight, const Outcome& outcome) {
  const bool refused = !outcome && outcome.error().held_back();
  const bool refuses_all = lanes_.refuses_all(flight.job.host, refused);
  if (!refused) {
    return flight.paused_host && history_of(outcome).stop_reason == Reason::ServerDelayTooLong;
  }
  // A pause may be for a part of the host's requests.
  return refuses_all || outcome.error().code != Errc::Paused;
}

void Runner::Work::note_shortage(const Flight& flight, const Outcome& outcome) {
  if (outcome || outcome.error().code != Errc::LocalShortage) {
    last_end_ = now();
    lacking_since_.reset();
    if (parallel_ == options_.parallel || ++ended_since_ < kRoundsToGrow * parallel_) return;
    ++parallel_;
    ended_since_ = 0;
    return;
  }
  lacking_ = std::max(lacking_.value_or(Time{}), flight.started.load());
  if (options_.on_shortage) std::exchange(options_.on_shortage, nullptr)(outcome.error().message);
}

// The calls in flight have what they need. If there are none, and none has ended since the
// shortage, only another program can free what is lacking.
void Runner::Work::send_fewer() {
  const auto turn = now();
  const auto began = *std::exchange(lacking_, std::nullopt);
  const auto has_place = [turn](const auto& entry) {
    const auto started = entry.second->started.load();
    const bool kept = !entry.second->on_wire && turn - started >= kKeptAfter;
    return started != Time{} && !entry.second->in_wait && !kept;
  };
  const auto others = static_cast<std::size_t>(std::ranges::count_if(flights_, has_place));
  parallel_ = std::clamp<std::size_t>(others, 1, parallel_);
  ended_since_ = 0;
  if (others > 0 || began <= last_end_) return;
  if (!lacking_since_) lacking_since_ = turn;
  send_again_at_ = later(turn, kTryAgainAfter);
  if (turn - *lacking_since_ < options_.max_shortage) return;
  ending_ = ending_.value_or(RunEnd::Shortage);
  watch_->ask(&CallWatch::News::finish_up);
}

void Runner::Work::take_in(const Job& job, Verdict verdict) {
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
  take_back(watch_->withdraw([&host](const Flight& flight) { return flight.job.host == host; }));
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
  // Nothing: until a host is wanted again, or a wait ends.
  if (taken.empty()) {
    const auto due = store_.next_due().value_or(kLongestSleep);
    take_again_at_ =
        later(turn, std::clamp(due, Duration(std::chrono::milliseconds(1)), kLongestSleep));
    if (const auto end = lanes_.next_end_of_hold(turn))
      take_again_at_ = std::min(take_again_at_, *end);
  }
  for (auto& job : taken) lanes_.add(std::move(job));
}

bool Runner::Work::may_start() {
  if (ending_ || flights_.size() >= most_calls(options_)) return false;
  const auto ahead = limit_ ? 0 : options_.ahead;
  return flights_.size() - in_wait_ - kept_ < most_on_wire() + ahead;
}

std::size_t Runner::Work::most_on_wire() const { return now() < send_again_at_ ? 0 : parallel_; }

// Finds calls that a rate or a limit of their host keeps from the wire for some time already. They
// do not count, so that other hosts have their places.
void Runner::Work::look_for_kept() {
  const auto turn = now();
  if (turn < look_again_at_) return;
  look_again_at_ = later(turn, kKeptAfter);
  std::map<std::string, std::size_t> counts;
  kept_ = 0;
  for (const auto& [flight, owned] : flights_) {
    const auto started = flight->started.load();
    const bool old = started != Time{} && turn - started >= kKeptAfter;
    if (!old || flight->in_wait || flight->on_wire) continue;
    ++counts[flight->job.host];
    ++kept_;
  }
  lanes_.set_kept(counts);
}

void Runner::Work::start_jobs() {
  look_for_kept();
  rate_allows_at_.reset();
  // It may be one of the calls that ended just now after which there shall be no other.
  if (watch_->asked_to_end()) return;
  while (may_start() && lanes_.queued() > 0) {
    const auto turn = now();
    if (limit_ && limit_->ready_at() > turn) {
      rate_allows_at_ = limit_->ready_at();
      return;
    }
    auto job = lanes_.start(turn);
    if (!job) return;
    start(*std::move(job));
  }
}

void Runner::Work::start(Job job) {
  auto prepared = [&] {
    try {
      return jobs_.prepare(job);
    } catch (...) {
      lanes_.ended(job.host);
      store_.give_back(job);
      throw;
    }
  }();
  if (auto* const end = std::get_if<JobEnd>(&prepared)) {
    lanes_.ended(job.host);
    Verdict verdict;
    verdict.end = std::move(*end);
    return take_in(job, std::move(verdict));
  }
  auto owned = std::make_unique<Flight>(std::move(job), std::get<Prepared>(std::move(prepared)));
  auto& flight = *owned;
  auto& context = flight.prepared.request.edit_options().context;
  context.set(FlightOfCall{&flight});
  context.set(LongestPause{kLongestWaitHere});
  flights_.emplace(&flight, std::move(owned));
  prepared_.push_back(&flight);
}

// Those for which there is room are sent, or noted in the store before. The others are left for the
// threads of the client.
void Runner::Work::send_ready() {
  if (prepared_.empty() && watch_->ready() == 0) return;
  const auto now_sent =
      watch_->send_ready(std::exchange(prepared_, {}), flights_.size(), most_on_wire() + kept_);
  for (auto* const flight : now_sent) {
    if (flight->prepared.unsafe) {
      intended_.push_back(flight);
    } else {
      send(*flight);
    }
  }
}

void Runner::Work::send_intended() {
  while (!intended_.empty()) {
    const auto count = std::min(intended_.size(), kIntentsAtOnce);
    std::vector<const Job*> jobs;
    for (std::size_t i = 0; i < count; ++i) jobs.push_back(&intended_[i]->job);
    const auto refused = store_.intend(jobs);
    const std::vector<Flight*> noted(intended_.begin(), intended_.begin() + std::ssize(jobs));
    intended_.erase(intended_.begin(), intended_.begin() + std::ssize(jobs));
    for (auto* const flight : noted) {
      if (std::ranges::find(refused, &flight->job) == refused.end()) {
        send(*flight);
      } else {
        lanes_.ended(flight->job.host);
        flights_.erase(flight);
      }
    }
  }
}

// On the thread of `run`, or on the one of a call that ended.
void Runner::Work::send(Flight& flight) {
  flight.started = now();
  watch_->begins(flight);
  auto request = flight.prepared.request;
  if (limit_) {
    request.edit_options().context.set(FirstSendTaken{limit_->reserve(flight.started)});
  }
  auto options = flight.prepared.options;
  options.stop = stop_.get_token();
  client_.send_then(
      std::move(request),
      [this, &flight](Outcome outcome) {
        if (auto* const next = watch_->ended(flight, std::move(outcome))) send(*next);
      },
      std::move(options));
}

void Runner::Work::commit_if_due() {
  if (!commit_at_ || now() < *commit_at_) return;
  store_.commit();
  commit_at_.reset();
}

std::optional<RunEnd> Runner::Work::over() {
  if (!flights_.empty()) return std::nullopt;
  if (ending_) return ending_;
  if (lanes_.queued() > 0 || now() >= take_again_at_) return std::nullopt;
  return over_when_idle();
}

// No call is under way, and the store had nothing that may be sent now.
std::optional<RunEnd> Runner::Work::over_when_idle() {
  if (options_.until_stopped) return std::nullopt;
  const auto counts = store_.counts();
  if (counts.queued == 0 && counts.waiting == 0 && counts.sending == 0) return RunEnd::Finished;
  // A store knows of waits that it committed.
  with_store([this] { store_.commit(); });
  if (failed_) return std::nullopt;
  const auto turn = now();
  // A wait or the hold of a host may have ended during the commit.
  if (turn >= take_again_at_) return std::nullopt;
  auto next = store_.next_due().value_or(kForever);
  if (const auto hold = lanes_.next_end_of_hold(turn)) {
    next = std::min(next, *hold - turn);
  } else if (counts.queued > 0) {
    next = Duration::zero();  // it comes with the next look at the store
  }
  if (next <= options_.max_idle) return std::nullopt;
  return RunEnd::Idle;
}

Time Runner::Work::next_turn() const {
  const auto turn = now();
  auto next = std::min(later(turn, kLongestSleep), progress_at_);
  if (commit_at_) next = std::min(next, *commit_at_);
  if (turn < send_again_at_) next = std::min(next, send_again_at_);
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
