#include "queue_store.hpp"

#include "lib/core/base/random.hpp"

#include <httpretry/http/headers.hpp>

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
constexpr Duration kTryAgain = std::chrono::seconds(1);
constexpr std::size_t kMostHolds = 1000;
// How long `close` waits for replies after `hurry`.
constexpr Duration kHurriedWait = std::chrono::seconds(1);

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

// Connects and opens the queue, and only then the second connection, which takes jobs. A worker
// that drains needs an existing queue. Throws StoreError.
QueueStore::QueueStore(StoreOptions options)
    : options_(std::move(options)),
      consumer_(consumer_name()),
      most_held_(options_.parallel + std::max<std::size_t>(4 * options_.parallel, 256)),
      remote_([this] {
        auto remote = options_.remote;
        remote.on_change = [this](bool up, const std::string& why) { on_change(up, why); };
        remote.on_tick = [this] { on_tick(); };
        return remote;
      }()) {
  const auto warning = remote_.connect();
  if (!warning.empty()) options_.tell(warning);
  if (options_.drain) {
    remote_.open_existing();
  } else {
    remote_.open_or_make(options_.policy);
  }
  if (remote_.policy() != options_.policy) {
    options_.tell(remote_.name() +
                  " was begun with other policies: requests to one host may be sent in two ways");
  }
  const auto news = remote_.must(kNews, {kNoConsumer});
  if (!read_news(news)) throw remote_.error(unexpected_reply());
  handle_news(news, now_is());
  auto taker = std::make_unique<fleet::Link>(taker_options());
  const std::lock_guard lock(mutex_);
  taker_ = std::move(taker);
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

QueueStore::Held QueueStore::held(const Job& job) const {
  const std::lock_guard lock(mutex_);
  return held_.at(job.number);
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

// Appends jobs that have arrived from the server, or whose short wait has ended. Jobs of hosts that
// ask for a pause go back to the server, so that this worker can take jobs of other hosts. Requests
// more jobs in the background. Throws StoreError if the queue cannot be used any more.
void QueueStore::take(std::size_t most, const WantsHost& wants, std::vector<Job>& jobs) {
  throw_if_gone();
  const auto turn = now_is();
  const auto jobs_before = jobs.size();
  const auto most_jobs = jobs_before + most;
  std::vector<std::pair<Job, Duration>> held_back;  // each with the rest of its host's pause
  bool is_idle = false;
  {
    const std::lock_guard lock(mutex_);
    while (!later_.empty() && later_.begin()->first <= turn) {
      ready_.push_back(std::move(later_.extract(later_.begin()).mapped()));
    }
    for (auto next = ready_.begin(); next != ready_.end() && jobs.size() < most_jobs;) {
      const auto hold = holds_.find(next->host);
      if (hold != holds_.end() && hold->second > turn) {
        held_back.emplace_back(std::move(*next), hold->second - turn);
      } else if (wants(next->host)) {
        jobs.push_back(std::move(*next));
      } else {
        ++next;
        continue;
      }
      next = ready_.erase(next);
    }
  }
  for (const auto& [job, time] : held_back) wait_remotely(job, time, job.attempts);
  {
    const std::lock_guard lock(mutex_);
    unfiled_ = filings_.size();
    is_idle = held_.empty() && unfiled_ == 0;
    ask_for_jobs();
  }
  // Nothing is left here. The counts must be current, because they decide whether the run ends.
  if (is_idle && jobs.size() == jobs_before && remote_.up()) {
    const auto news = remote_.ask(kNews, {kNoConsumer});
    const std::lock_guard lock(mutex_);
    news.failed() ? on_error(news) : handle_news(news, now_is());
  }
  throw_if_gone();
}

// Blocks until the server has recorded that the jobs are about to be sent. Returns those that must
// not be sent, because another worker has them or the record failed, and gives them back. kIntend
// replies with 1 for each job that may be sent.
std::vector<const Job*> QueueStore::intend(std::span<const Job* const> jobs) {
  std::vector<std::string> arguments{consumer_};
  {
    const std::lock_guard lock(mutex_);
    for (const auto* job : jobs) {
      auto& held = held_.at(job->number);
      held.intended = true;
      arguments.insert(arguments.end(), {held.entry, std::to_string(held.deliveries), held.id});
    }
  }
  const auto reply = remote_.ask(kIntend, std::move(arguments));
  std::vector<const Job*> refused;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!reply.failed() && reply.at(i) == 1) continue;  // it may be sent
    refused.push_back(jobs[i]);
    give_back(*jobs[i]);
  }
  if (reply.failed()) {
    const std::lock_guard lock(mutex_);
    on_error(reply);
  }
  return refused;
}

// Returns the first arguments of kFinish and kWait. `expected` is the state that the job should
// have on the server: "q" (queued), "s" (being sent), or "*" for either of them.
std::vector<std::string> QueueStore::owner_arguments(const Held& held,
                                                     std::string_view expected) const {
  return {consumer_, held.entry, std::to_string(held.deliveries), held.id, std::string(expected)};
}

QueueStore::Held QueueStore::release(const Job& job) {
  const std::lock_guard lock(mutex_);
  return std::move(held_.extract(job.number).mapped());
}

// Keeps a job that has to wait only for a moment, without a command to the server. Any other waits
// on the server, where another worker may take it.
void QueueStore::wait(const Job& job, Duration time, int attempts, std::string_view /*why*/) {
  if (time < kLongestWaitHere) {
    const std::lock_guard lock(mutex_);
    const auto& held = held_.at(job.number);
    if (!held.intended && !closing_) {
      held.lease->set_idle(true);
      auto waiting_job = job;
      waiting_job.attempts = attempts;
      later_.emplace(later(now_is(), time), std::move(waiting_job));
      return;
    }
  }
  wait_remotely(job, time, attempts);
}

void QueueStore::wait_remotely(const Job& job, Duration time, int attempts) {
  const auto held = release(job);
  auto arguments = owner_arguments(held, held.intended ? "*" : "q");
  arguments.push_back(std::to_string(attempts));
  arguments.push_back(std::to_string(to_ms(time)));
  file(held.id, kWait, std::move(arguments), nullptr);
}

// Files the result of a job in the background. Counts it as late if another worker has the job.
void QueueStore::finish(const Job& job, JobEnd end) {
  const auto held = release(job);
  auto arguments = owner_arguments(held, held.intended ? "s" : "q");
  arguments.insert(arguments.end(),
                   {std::string(letter_of(end.state)), std::to_string(end.attempts),
                    without_line_end(std::move(end.result)),
                    without_line_end(std::move(end.dead_letter)), end.reason});
  file(held.id, kFinish, std::move(arguments), [this](const Reply& reply, Time /*posted*/) {
    const std::lock_guard lock(mutex_);
    if (reply.integer == 0) ++late_;  // 0: another worker has the job
  });
}

void QueueStore::give_back(const Job& job) {
  const auto hold = holds_.find(job.host);
  if (hold != holds_.end() && hold->second > now_is()) {
    return wait_remotely(job, hold->second - now_is(), job.attempts);
  }
  const auto held = release(job);
  file(held.id, kWait, owner_arguments(held, held.intended ? "*" : "q"), nullptr);
}

void QueueStore::hold(std::string_view host, Duration time) {
  const auto until = later(now_is(), time);
  auto& hold_end = holds_[std::string(host)];
  hold_end = std::max(hold_end, until);
  if (holds_.size() < kMostHolds) return;
  std::erase_if(holds_, [](const auto& entry) { return entry.second <= now_is(); });
}

void QueueStore::commit() { throw_if_gone(); }

batch::Counts QueueStore::counts() const {
  const std::lock_guard lock(mutex_);
  auto counts = counts_;
  // The server does not count these results yet, and some of these jobs may be queued again.
  counts.sending += unfiled_;
  return counts;
}

// Considers the short waits here, the waits on the server, and jobs that other workers may give
// back.
std::optional<Duration> QueueStore::next_due() {
  const std::lock_guard lock(mutex_);
  const auto turn = now_is();
  auto due = due_at_.value_or(kNever);
  if (!later_.empty()) due = std::min(due, later_.begin()->first);
  // Queued jobs are about to be given to a worker. None of them waits for a host.
  if (counts_.queued > 0 || unfiled_ > 0) due = turn;
  // Other workers may give back the jobs that they send.
  if (counts_.sending > 0) due = std::min(due, later(turn, options_.lease));
  if (due == kNever) return std::nullopt;
  // A job arrives only a moment after it is due.
  return std::max<Duration>(due - turn, std::chrono::milliseconds(100));
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

// Waits for the replies to all filings, for up to `limit`, or only for a moment after hurry(). If
// the server has carried out all of them, also gives back jobs that have arrived in the meantime.
std::vector<std::string> QueueStore::close(Duration limit) {
  stop_taking();
  for (const auto& [due, job] : later_) {
    wait_remotely(job, std::max(due - now_is(), Duration::zero()), job.attempts);
  }
  later_.clear();
  std::vector<std::string> unfiled_ids;
  {
    std::unique_lock lock(mutex_);
    const auto is_over = [this] { return filings_.empty() || !gone_.empty(); };
    filed_.wait_for(lock, limit, [&] { return is_over() || hurry_; });
    // After hurry(), a server that is up carries out the last commands in a moment.
    filed_.wait_for(lock, kHurriedWait,
                    [&] { return is_over() || !hurry_ || !remote_.up() || failing_ > 0; });
    for (const auto& [number, filing] : filings_) {
      if (!filing.id.empty()) unfiled_ids.push_back(filing.id);
    }
    if (!filings_.empty() || !remote_.up()) return unfiled_ids;
    report_ended_errors(kNever);
  }
  // Gives back jobs that arrived while closing. They may be delivered to this worker once more
  // until the server notices that the taker is closed, so this is repeated. If the command is lost,
  // other workers take the jobs over.
  while (remote_.ask(kLeave, {consumer_}).integer > 0) continue;
  const auto news = remote_.ask(kNews, {kNoConsumer});
  const std::lock_guard lock(mutex_);
  if (!news.failed()) handle_news(news, now_is());
  return unfiled_ids;
}

void QueueStore::hurry() {
  const std::lock_guard lock(mutex_);
  hurry_ = true;
  filed_.notify_all();
}

// --- filing ---

// Posts a command about the job `id`, and again until it has a reply that is not an error. Then
// calls `done` with the reply, on the link's thread.
void QueueStore::file(const std::string& id, const Script& script,
                      std::vector<std::string> arguments,
                      std::function<void(const Reply&, Time posted)> done) {
  const std::lock_guard lock(mutex_);
  auto& filing = filings_[++last_filing_];
  filing.id = id;
  filing.command = remote_.command(script, std::move(arguments));
  filing.done = std::move(done);
  post_filing(last_filing_, now_is());
}

void QueueStore::post_filing(std::uint64_t number, Time now) {
  auto& filing = filings_.at(number);
  filing.awaits_reply = true;
  remote_.post(filing.command,
               [this, number, now](const Reply& reply) { on_filed(number, reply, now); });
}

// Handles the reply to a filing. After a failure, on_tick() posts the command again: at once if the
// reply was lost, or after kTryAgain if the server returned an error.
void QueueStore::on_filed(std::uint64_t number, const Reply& reply, Time posted) {
  Filing filing;
  {
    const std::lock_guard lock(mutex_);
    auto& pending = filings_.at(number);
    const bool has_failed_before = pending.retry_at != Time{};
    if (reply.failed()) {
      if (!has_failed_before) ++failing_;
      pending.awaits_reply = false;
      pending.retry_at = reply.lost() ? posted : later(now_is(), kTryAgain);
      return on_error(reply);
    }
    if (has_failed_before) --failing_;
    filing = std::move(filings_.extract(number).mapped());
  }
  if (filing.done) filing.done(reply, posted);
  const std::lock_guard lock(mutex_);
  filed_.notify_all();
  ask_for_jobs();
}

// Reports an error, but not again until it is over. An error is identified by its first word. Does
// not report a lost reply, because on_change reports that the server is away. The caller must hold
// the mutex.
void QueueStore::on_error(const Reply& reply) {
  filed_.notify_all();
  if (says_gone(reply)) return give_up("was deleted: what its jobs came to is not known any more");
  if (reply.lost()) return;
  if (options_.drain && says_damaged(reply)) return on_damage(printable(reply.text));
  const auto [entry, is_new] = errors_.try_emplace(reply.text.substr(0, reply.text.find(' ')));
  entry->second = now_is();
  if (!is_new) return;
  options_.tell(std::string(remote_.error(reply).what()) + "; results are kept, and filed later");
}

// Notes that the queue cannot be used any more, which ends the run.
void QueueStore::give_up(const std::string& why) {
  if (gone_.empty()) gone_ = remote_.name() + " " + why;
  if (wake_) wake_();
}

// Ends the run of a worker that drains. Others continue after a warning, because there may be other
// jobs, and more may be added.
void QueueStore::on_damage(const std::string& why) {
  const auto text = "is damaged: " + why + ". --results and --dead still write what is there";
  if (options_.drain) return give_up(text);
  if (!std::exchange(damage_told_, true)) options_.tell(remote_.name() + " " + text);
}

// Reports that errors are over which have not occurred since `before`.
void QueueStore::report_ended_errors(Time before) {
  for (auto error = errors_.begin(); error != errors_.end();) {
    if (error->second >= before) {
      ++error;
      continue;
    }
    options_.tell(remote_.name() + ": " + printable(error->first) + " is over");
    error = errors_.erase(error);
  }
}

// Reports that the server is away or back, unless it was so before.
void QueueStore::on_change(bool up, const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (!open_ || up == std::exchange(was_up_, up)) return;
  filed_.notify_all();
  options_.tell(remote_.name() + (up ? ": it is back"
                                     : " cannot be reached: " + printable(why) +
                                           "; nothing is taken, and results are kept until then"));
}

}  // namespace httpretry::queue
