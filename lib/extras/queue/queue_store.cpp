#include "queue_store.hpp"

#include "lib/core/base/random.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace httpretry::queue {
namespace {

using batch::Job;
using batch::JobEnd;
using batch::State;
using batch::StoreError;
using fleet::Reply;

// A job that has to wait longer waits on the server.
constexpr Duration kLongestWaitHere = std::chrono::seconds(10);
constexpr std::size_t kMostHolds = 1000;

std::string consumer_name() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  std::string name = host.data();
  std::ranges::replace_if(
      name, [](char c) { return c <= ' ' || c == '|'; }, '-');
  return name + ":" + std::to_string(::getpid()) + ":" + random_hex(4);
}

// Returns the letter of a final state in the scripts.
std::string_view letter_of(State state) {
  if (state == State::Unknown) return "u";
  return state == State::Dead ? "x" : "d";
}

std::string without_line_end(std::string line) {
  if (line.ends_with('\n')) line.pop_back();
  return line;
}

}  // namespace

RemoteOptions QueueStore::remote_link_options() {
  auto remote = options_.remote;
  remote.on_change = [this](bool up, const std::string& why) { on_change(up, why); };
  remote.on_tick = [this] { on_tick(); };
  return remote;
}

// Connects to the server, opens the queue, and reads how many jobs are in each state. Then opens a
// second connection, the taker, which waits for jobs. Throws StoreError if any of this fails.
// Passes warnings to options_.tell.
QueueStore::QueueStore(StoreOptions options)
    : options_(std::move(options)),
      consumer_(consumer_name()),
      // Besides the jobs that are being sent, this many more may wait here for a short time.
      most_taken_(options_.parallel + std::max<std::size_t>(4 * options_.parallel, 256)),
      remote_(remote_link_options()) {
  const auto warning = remote_.connect();
  if (!warning.empty()) options_.tell(warning);
  if (options_.drain) {
    remote_.open_existing();  // a worker that ends when no job is left creates no queue
  } else {
    remote_.open_or_make(options_.policy);
  }
  // Both are hashes: of the policies that the queue was created with, and of this worker's.
  if (remote_.policy() != options_.policy) {
    options_.tell(
        remote_.name() +
        " was started with other policies: requests to one host may be handled in two ways");
  }
  const auto totals = remote_.must(kReadTotals, {kNoConsumer});
  if (!read_totals(totals)) throw remote_.error(unexpected_reply());
  handle_totals(totals, now_is());
  auto taker = std::make_unique<fleet::Link>(taker_options());
  const std::lock_guard lock(mutex_);  // the threads of the connections run already
  taker_ = std::move(taker);
  // From now on, on_tick() takes jobs, and on_change() reports when the server is away.
  open_ = true;
}

QueueStore::~QueueStore() { close_taker(); }

void QueueStore::close_taker() {
  // Is destroyed after the lock is released, because the link's thread may need the lock to end.
  std::unique_ptr<fleet::Link> taker;
  const std::lock_guard lock(mutex_);
  closing_ = true;
  taker = std::move(taker_);
}

fleet::Link::Options QueueStore::taker_options() const {
  fleet::Link::Options link = options_.remote;
  link.reply_timeout += kLongestTake;
  return link;
}

void QueueStore::on_jobs(std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
}

QueueStore::TakenJob QueueStore::taken(const Job& job) const {
  const std::lock_guard lock(mutex_);
  return taken_.at(job.number);
}

WallTime QueueStore::date() const {
  const std::lock_guard lock(mutex_);
  return WallTime(
      std::chrono::duration_cast<WallTime::duration>(now_is().time_since_epoch() + server_offset_));
}

std::uint64_t QueueStore::late() const {
  const std::lock_guard lock(mutex_);
  return late_;
}

// --- called by the Runner ---

// Throws StoreError if the queue cannot be used any more.
void QueueStore::throw_if_gone() const {
  const std::lock_guard lock(mutex_);
  if (!gone_.empty()) throw StoreError(gone_);
}

// Appends up to `most` jobs that may be sent now to `jobs`, only of hosts for which `wants` returns
// true. Does not wait for jobs to arrive: requests more in the background, for the next calls.
// Throws StoreError if the queue cannot be used any more, for example because it was deleted.
void QueueStore::take(std::size_t most, const WantsHost& wants, std::vector<Job>& jobs) {
  throw_if_gone();
  take_ready(jobs.size() + most, wants, jobs);
  bool is_idle = false;
  {
    const std::lock_guard lock(mutex_);
    // The commands that the server has not carried out yet, most of which record results of jobs.
    // counts() uses their number.
    unfiled_ = filings_.size();
    // This worker has no job, not even one that it has just appended, and all its results are
    // recorded.
    is_idle = taken_.empty() && unfiled_ == 0;
    ask_for_jobs();
  }
  // The Runner ends the run of an idle worker if the counts of the whole queue say that no job is
  // left. The background reads these counts once a second, so this reads the present ones.
  if (is_idle && remote_.up()) read_totals_now();
  throw_if_gone();  // the totals may have shown that the queue was deleted or is damaged
}

// Reads how many jobs of the queue are in each state. Blocks until the server replies.
void QueueStore::read_totals_now() {
  const auto totals = remote_.ask(kReadTotals, {kNoConsumer});
  const std::lock_guard lock(mutex_);
  if (totals.failed()) return on_error(totals);
  handle_totals(totals, now_is());
}

// Moves jobs that may be sent now from ready_ to `jobs`, until `jobs` has `most_jobs` in total.
// ready_ has the jobs that arrived from the server; first adds those whose short wait here has
// ended. A job stays in ready_ if `wants` returns false for its host. It goes back to the server if
// its host has asked for a pause (hold_ends_), so that this worker has a place for another job.
void QueueStore::take_ready(std::size_t most_jobs, const WantsHost& wants, std::vector<Job>& jobs) {
  const auto now = now_is();
  std::vector<std::pair<Job, Duration>> paused;  // each with the remaining time of the pause
  {
    const std::lock_guard lock(mutex_);
    while (!short_waits_.empty() && short_waits_.begin()->first <= now) {
      ready_.push_back(std::move(short_waits_.extract(short_waits_.begin()).mapped()));
    }
    for (auto next = ready_.begin(); next != ready_.end() && jobs.size() < most_jobs;) {
      const auto hold = hold_ends_.find(next->host);
      const bool is_paused = hold != hold_ends_.end() && hold->second > now;
      if (!is_paused && !wants(next->host)) {
        ++next;  // stays in ready_
        continue;
      }
      if (is_paused) {
        paused.emplace_back(std::move(*next), hold->second - now);
      } else {
        jobs.push_back(std::move(*next));
      }
      next = ready_.erase(next);
    }
  }
  // Without the mutex, because wait_remotely() locks it.
  for (const auto& [job, time] : paused) wait_remotely(job, time, job.attempts);
}

// Called before jobs are sent that must not be sent twice. Blocks until the server has recorded
// their intended sends, so that no other worker repeats them if this one dies. Returns the jobs
// that must not be sent, because another worker has them or the record failed; they are given back.
std::vector<const Job*> QueueStore::intend(std::span<const Job* const> jobs) {
  std::vector<std::string> arguments{consumer_};  // then three for each job
  {
    const std::lock_guard lock(mutex_);
    for (const auto* job : jobs) {
      auto& taken = taken_.at(job->number);
      // Before the command is sent, because it may be carried out although its reply is lost.
      taken.intended = true;
      arguments.insert(arguments.end(), {taken.entry, std::to_string(taken.deliveries), taken.id});
    }
  }
  auto reply = remote_.ask(kIntend, std::move(arguments));
  if (!reply.failed() && reply.list.size() != jobs.size()) reply = unexpected_reply();
  if (reply.failed()) {
    const std::lock_guard lock(mutex_);
    // Before the jobs are given back. Otherwise this worker would request them again at once. If
    // the reply was lost, this worker requests none anyway until the server is back.
    if (!reply.lost()) take_at_ = later(now_is(), kTryAgain);
    on_error(reply);
  }
  std::vector<const Job*> refused;
  // The reply has an integer for each job, which is 1 if the job may be sent.
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const bool may_be_sent = !reply.failed() && reply.at(i) == 1;
    if (may_be_sent) continue;
    refused.push_back(jobs[i]);
    give_back(*jobs[i]);
  }
  return refused;
}

// Returns the first arguments of kFinish and kWait. `expected` is the state that the job should
// have on the server: "q" (queued), "s" (being sent), or "*" for either of them.
std::vector<std::string> QueueStore::owner_arguments(const TakenJob& taken,
                                                     std::string_view expected) const {
  return {consumer_, taken.entry, std::to_string(taken.deliveries), taken.id,
          std::string(expected)};
}

QueueStore::TakenJob QueueStore::release(const Job& job) {
  const std::lock_guard lock(mutex_);
  return std::move(taken_.extract(job.number).mapped());
}

// Keeps a job that has to wait only for a moment, without a command to the server. Any other job
// waits on the server, where another worker may take it. So does a job whose send the server has
// recorded, because it would become unknown if this worker died.
void QueueStore::wait(const Job& job, Duration time, int attempts, std::string_view /*why*/) {
  if (time < kLongestWaitHere) {
    const std::lock_guard lock(mutex_);
    const auto& taken = taken_.at(job.number);
    if (!taken.intended && !closing_) {
      taken.lease->set_idle(true);
      auto waiting_job = job;
      waiting_job.attempts = attempts;
      short_waits_.emplace(later(now_is(), time), std::move(waiting_job));
      return;
    }
  }
  wait_remotely(job, time, attempts);
}

void QueueStore::wait_remotely(const Job& job, Duration time, int attempts) {
  const auto taken = release(job);
  auto arguments = owner_arguments(taken, taken.intended ? "*" : "q");
  arguments.push_back(std::to_string(attempts));
  arguments.push_back(std::to_string(to_ms(time)));
  file(taken.id, kWait, std::move(arguments), nullptr);
}

// Files the result of a job in the background. Counts it as late if another worker has the job.
void QueueStore::finish(const Job& job, JobEnd end) {
  const auto taken = release(job);
  auto arguments = owner_arguments(taken, taken.intended ? "s" : "q");
  arguments.insert(arguments.end(),
                   {std::string(letter_of(end.state)), std::to_string(end.attempts),
                    without_line_end(std::move(end.result)),
                    without_line_end(std::move(end.dead_letter)), end.reason});
  file(taken.id, kFinish, std::move(arguments), [this](const Reply& reply, Time /*posted*/) {
    const std::lock_guard lock(mutex_);
    if (reply.integer == 0) ++late_;  // 0: another worker has the job
  });
}

void QueueStore::give_back(const Job& job) {
  const auto hold = hold_ends_.find(job.host);
  if (hold != hold_ends_.end() && hold->second > now_is()) {
    return wait_remotely(job, hold->second - now_is(), job.attempts);
  }
  const auto taken = release(job);
  file(taken.id, kWait, owner_arguments(taken, taken.intended ? "*" : "q"), nullptr);
}

void QueueStore::hold(std::string_view host, Duration time) {
  const auto until = later(now_is(), time);
  auto& hold_end = hold_ends_[std::string(host)];
  hold_end = std::max(hold_end, until);
  if (hold_ends_.size() < kMostHolds) return;
  std::erase_if(hold_ends_, [](const auto& entry) { return entry.second <= now_is(); });
}

void QueueStore::commit() { throw_if_gone(); }

batch::Counts QueueStore::counts() const {
  const std::lock_guard lock(mutex_);
  auto counts = counts_;
  // The server does not count these results yet, and some of these jobs may be queued again.
  counts.sending += unfiled_;
  return counts;
}

// Returns how long the run may have to wait for its next job, or nullopt if no job is left.
// Considers the short waits here, the waits on the server, and jobs that other workers may give
// back.
std::optional<Duration> QueueStore::next_due() {
  const std::lock_guard lock(mutex_);
  const auto now = now_is();
  auto due = due_at_.value_or(kNever);
  if (!short_waits_.empty()) due = std::min(due, short_waits_.begin()->first);
  // A queued job is about to be given to a worker, and an unfiled one may be queued again.
  if (counts_.queued > 0 || unfiled_ > 0) due = now;
  // Other workers may give back the jobs that they send.
  if (counts_.sending > 0) due = std::min(due, later(now, options_.lease));
  if (due == kNever) return std::nullopt;
  // A job arrives only a moment after it is due.
  return std::max<Duration>(due - now, std::chrono::milliseconds(100));
}

void QueueStore::stop_taking() {
  close_taker();
  std::deque<Job> rest;
  {
    const std::lock_guard lock(mutex_);
    rest.swap(ready_);
  }
  for (const auto& job : rest) give_back(job);
}

}  // namespace httpretry::queue
