#include "journal.hpp"

#include "text.hpp"

#include <time.h>

#include <algorithm>
#include <cstdlib>

namespace httpretry::batch {
namespace {

// The stored ends of waits are corrected if the clock was set, or has drifted, by this many ms.
constexpr std::int64_t kClockChange = 500;
// take_due() ends after this many due jobs whose hosts are not wanted now.
constexpr std::size_t kMostSkipped = 10'000;
// The limits on how many jobs of one host are taken at once.
constexpr std::size_t kLeastOfLane = 4;
constexpr std::size_t kMostOfLane = 64;

WallTime wall_time(std::int64_t ms) { return WallTime(std::chrono::milliseconds(ms)); }

}  // namespace

Duration boot_clock() {
  ::timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

State state_of(std::int64_t stored) {
  if (stored < 0 || stored > static_cast<std::int64_t>(StoredState::Scheduled)) {
    throw StoreError("the journal is damaged: no state has the number " + std::to_string(stored));
  }
  return static_cast<StoredState>(stored) == StoredState::Scheduled ? State::Waiting
                                                                    : static_cast<State>(stored);
}

Priority priority_of(std::int64_t stored) {
  if (stored < 0 || stored > static_cast<std::int64_t>(Priority::Low)) {
    throw StoreError("the journal is damaged: no priority has the number " +
                     std::to_string(stored));
  }
  return static_cast<Priority>(stored);
}

std::string id_at(const Statement& row, int column, std::uint64_t line) {
  return row.is_null(column) ? std::to_string(line) : std::string(row.text(column));
}

std::string key_at(const Statement& row, int column, const std::string& token, std::uint64_t line) {
  return row.is_number(column) ? made_key(token, line) : std::string(row.text(column));
}

std::int64_t Journal::wall_ms() const { return ms_of(clocks_.wall_now()); }

std::int64_t Journal::clock_offset() const { return wall_ms() - uptime_ms(); }

std::int64_t Journal::uptime_ms() const {
  return std::chrono::floor<std::chrono::milliseconds>(clocks_.uptime()).count();
}

// If the clock was set while this process runs, moves the ends of the waits that servers asked for.
// Such a wait (state 4, StoredState::Waiting) is a duration, but is stored as the date of its end.
// `not_before` is a date, and stays.
void Journal::follow_clock() {
  const auto change_ms = clock_offset() - clock_offset_;
  if (std::abs(change_ms) < kClockChange) return;
  database_->prepare("UPDATE state SET until = until + ? WHERE state = 4").run(change_ms);
  database_->prepare("UPDATE host SET held_until = held_until + ?").run(change_ms);
  for (auto& [host, until] : new_holds_) until += change_ms;
  for (auto& change : changes_) {
    if (change.state == StoredState::Waiting) change.until += change_ms;
  }
  clock_offset_ += change_ms;
  due_read_at_ += change_ms;
  due_place_.reset();
  if (earliest_unseen_due_) *earliest_unseen_due_ += change_ms;
}

// Appends up to `most` jobs: those whose wait has ended, and then queued ones, high priority first.
void Journal::take(std::size_t most, const WantsHost& wants, std::vector<Job>& jobs) {
  follow_clock();
  const auto most_jobs = jobs.size() + most;
  take_due(most_jobs, wants, jobs);
  // The lanes are sorted by priority, so those of one priority are next to each other.
  for (std::size_t first = 0; first < lanes_.size() && open_lanes_ > 0;) {
    auto end = first;
    while (end < lanes_.size() && lanes_[end].priority == lanes_[first].priority) ++end;
    take_queued(first, end, most_jobs, wants, jobs);
    first = end;
  }
  ++take_count_;
}

// Takes some jobs of each host from the lanes of one priority, which are `first` to `end` - 1,
// until `jobs` has `most_jobs`. Each call of take() begins at another lane.
void Journal::take_queued(std::size_t first, std::size_t end, std::size_t most_jobs,
                          const WantsHost& wants, std::vector<Job>& jobs) {
  const auto share =
      std::clamp(most_jobs / std::max<std::size_t>(open_lanes_, 1), kLeastOfLane, kMostOfLane);
  for (std::size_t i = 0; i < end - first && jobs.size() < most_jobs; ++i) {
    const auto lane_index = first + (take_count_ + i) % (end - first);
    if (lanes_[lane_index].at_end || !wants(lanes_[lane_index].name)) continue;
    take_from(lane_index, std::min(share, most_jobs - jobs.size()), jobs);
  }
}

// Appends the next queued jobs of a lane (the jobs of one host with one priority) to `jobs`, at
// most `most`, in the order of the input, and notes that they are taken. If the lane has no more
// jobs, notes that it is at its end.
void Journal::take_from(std::size_t lane_index, std::size_t most, std::vector<Job>& jobs) {
  auto& lane = lanes_[lane_index];
  // The query returns the queued jobs behind line `read_to`, the last one that was read. If a job
  // is given back without being sent, give_back() moves `read_to` back, so the query returns taken
  // jobs a second time. The loop skips at most taken_.size() rows, so this limit leaves `most`.
  const auto most_rows = static_cast<std::uint64_t>(most + taken_.size());
  auto& row = queued_jobs_.with(lane.read_to, most_rows, lane.priority, lane.host);
  std::size_t count = 0;
  while (count < most) {
    if (!row.step()) {
      lane.at_end = true;
      --open_lanes_;
      break;
    }
    lane.read_to = static_cast<std::uint64_t>(row.number(kLine));
    if (taken_.contains(lane.read_to)) continue;
    jobs.push_back(job_of(row, lane_index));
    // An earlier run may have sent this job before it crashed. The journal records a send in
    // advance only if repeating it may do harm, so a job that was sent without a record is still
    // queued.
    jobs.back().maybe_sent_since = earliest_possible_send(lane.read_to);
    taken_.emplace(lane.read_to,
                   Taken{.state = State::Queued, .lane = lane_index, .taken_at = wall_ms()});
    ++count;
  }
  row.reset();
}

// Returns the job of a row that begins with the first four columns of JobColumn.
Job Journal::job_of(const Statement& row, std::size_t lane) const {
  Job job;
  job.number = static_cast<std::uint64_t>(row.number(kLine));
  job.id = id_at(row, kId, job.number);
  job.key = key_at(row, kKey, token_, job.number);
  job.text = row.text(kInput);
  job.host = lanes_[lane].name;
  job.priority = static_cast<Priority>(lanes_[lane].priority);
  return job;
}

// Returns the beginning of the first earlier run that had the line in its input, because that run
// may have sent it. Returns nullopt if this is the first run with the line.
std::optional<WallTime> Journal::earliest_possible_send(std::uint64_t line) const {
  for (const auto& [lines, began] : runs_) {
    if (line <= lines) return wall_time(began);
  }
  return std::nullopt;
}

// Appends the waiting jobs in the database whose wait has ended, the earliest first, until `jobs`
// has `most_jobs`, and notes that they are taken. Skips jobs that are taken already, or whose host
// the run does not want now (`wants` returns false), but gives up after kMostSkipped of them,
// because each costs time. The next call then continues behind the last one.
void Journal::take_due(std::size_t most_jobs, const WantsHost& wants, std::vector<Job>& jobs) {
  // The rows have the columns of JobColumn, and then these three.
  enum : int { kAttempts = kPriority + 1, kStarted, kUntil };
  due_read_at_ = wall_ms();  // next_due() considers only the waits that end later
  // next_due() finds the next end of a wait in the database. Waits that are not committed yet are
  // not there, so add_change() remembers the earliest end of these in `earliest_unseen_due_`. If no
  // change is uncommitted now, the database has all waits. If this call also begins with the first
  // of them, the remembered end is obsolete.
  const auto last_skipped = std::exchange(due_place_, std::nullopt);
  if (changes_.empty() && !last_skipped) earliest_unseen_due_.reset();
  const auto [until, skipped_line] = last_skipped.value_or(DuePlace());
  auto& row = due_jobs_.with(due_read_at_, until, skipped_line);
  std::size_t skipped = 0;
  while (jobs.size() < most_jobs && row.step()) {
    const auto line = static_cast<std::uint64_t>(row.number(kLine));
    const auto lane_index =
        lane_of_.at({static_cast<int>(row.number(kPriority)), row.number(kHost)});
    if (taken_.contains(line) || !wants(lanes_[lane_index].name)) {
      if (++skipped < kMostSkipped) continue;
      due_place_ = DuePlace{.until = row.number(kUntil), .line = line};
      break;
    }
    jobs.push_back(job_of(row, lane_index));
    jobs.back().attempts = static_cast<int>(row.number(kAttempts));
    // `started` is the recorded time of the first call that may have sent the job. It is NULL if
    // the job waits for the date of its line, `not_before`, and no call is recorded. Even then, an
    // earlier run may have sent the job and crashed before it recorded that.
    jobs.back().maybe_sent_since = row.is_null(kStarted)
                                       ? earliest_possible_send(line)
                                       : std::optional(wall_time(row.number(kStarted)));
    taken_.emplace(line,
                   Taken{.state = State::Waiting, .lane = lane_index, .taken_at = due_read_at_});
  }
  row.reset();
}

// Returns the time until the next wait ends, or nullopt if no job waits. Ignores the waits that had
// ended when take() last read the database: their jobs are left only because their hosts are not
// wanted. If take() gave up before it had read all of them, returns zero.
std::optional<Duration> Journal::next_due() {
  follow_clock();
  if (due_place_) return Duration::zero();
  auto until = earliest_unseen_due_;
  if (next_due_.with(due_read_at_).step()) {
    until = std::min(until.value_or(next_due_.number(0)), next_due_.number(0));
  }
  next_due_.reset();
  if (!until) return std::nullopt;
  return std::chrono::milliseconds(std::max<std::int64_t>(*until - wall_ms(), 0));
}

// Updates the state of a taken job in memory, and the counts of the states.
void Journal::count_as(std::uint64_t line, State new_state) {
  auto& state = taken_.at(line).state;
  --counts_.of(state);
  ++counts_.of(new_state);
  state = new_state;
}

// Records the state Sending. Returns no job, because a journal never refuses one.
std::vector<const Job*> Journal::intend(std::span<const Job* const> jobs) {
  in_transaction([&] {
    for (const auto* job : jobs) {
      const auto started = taken_.at(job->number).taken_at;
      // The columns: line, state, until, status, attempts, started, reason, about, at.
      put_state_.run(job->number, static_cast<int>(StoredState::Sending), nullptr, nullptr,
                     job->attempts, started, nullptr, nullptr, nullptr);
    }
  });
  for (const auto* job : jobs) count_as(job->number, State::Sending);
  return {};
}

// Returns the time since which a taken job may have been sent, in ms since 1970: the time of its
// first call if it had calls before, otherwise when it was taken for the present one.
std::int64_t Journal::first_send_ms(const Job& job) const {
  return job.maybe_sent_since ? ms_of(*job.maybe_sent_since) : taken_.at(job.number).taken_at;
}

// Notes in memory that a taken job gets the state `state`, which commit() will write. `end` has the
// other facts, even for a job that will wait; `end.state` is ignored. Adds the result and the dead
// letter of `end` to the texts that commit() appends to the two files. `until` is the end of the
// wait of a job that becomes Waiting, in ms since 1970; other states ignore it.
void Journal::add_change(const Job& job, StoredState state, JobEnd end, std::int64_t until) {
  Change change;
  change.line = job.number;
  change.state = state;
  change.until = until;
  if (results_.is_open() && !end.result.empty()) {
    // The offset at which commit() will write this line.
    change.result_offset = results_.length() + new_results_.size();
    new_results_ += std::exchange(end.result, {});
  }
  if (dead_.is_open()) new_dead_ += std::exchange(end.dead_letter, {});
  change.end = std::move(end);
  // Records when the job was first sent, if it may be sent again: its idempotency key ages from
  // then, and a server forgets old keys. An Unknown job is sent again only with retry_unknown.
  const bool may_be_sent_again = state == StoredState::Waiting || state == StoredState::Unknown;
  if (may_be_sent_again) change.started = first_send_ms(job);
  changes_.push_back(std::move(change));
  if (state == StoredState::Waiting) {
    // For next_due(), which does not find this wait in the database before the commit.
    earliest_unseen_due_ = std::min(until, earliest_unseen_due_.value_or(until));
  }
}

void Journal::wait(const Job& job, Duration time, int attempts, std::string_view why) {
  JobEnd end;
  end.attempts = attempts;
  end.about = why;
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(time).count();
  add_change(job, StoredState::Waiting, std::move(end), clock_offset_ + uptime_ms() + ms);
  count_as(job.number, State::Waiting);
}

void Journal::finish(const Job& job, JobEnd end) {
  const auto state = end.state;
  add_change(job, static_cast<StoredState>(state), std::move(end), /*until=*/0);
  count_as(job.number, state);
}

// Makes a job that was taken but not sent available to take() again. It gets the state back that it
// had before it was taken, unless its send was recorded in advance (Sending): then it is Waiting.
void Journal::give_back(const Job& job) {
  const auto taken = taken_.at(job.number);
  if (taken.state == State::Sending) {
    // The record is a row in the table `state`. Rows are changed but never removed, and only a job
    // without a row is queued. So this job waits, and is due at once. It stays taken until the
    // change is committed.
    JobEnd attempts_so_far;
    attempts_so_far.attempts = job.attempts;
    add_change(job, StoredState::Waiting, std::move(attempts_so_far), /*until=*/0);
    return count_as(job.number, State::Waiting);
  }
  taken_.erase(job.number);
  // The state has not changed, and neither has its count. take_due() finds a waiting job again.
  if (taken.state != State::Queued) return;
  // The lane (the jobs of one host with one priority) reads its lines again from the line of this
  // job on; take_from() skips the jobs behind it that are still taken. A lane is open while it may
  // have more lines.
  auto& lane = lanes_[taken.lane];
  lane.read_to = std::min(lane.read_to, job.number - 1);
  if (lane.at_end) ++open_lanes_;
  lane.at_end = false;
}

void Journal::hold(std::string_view host, Duration time) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(time).count();
  new_holds_.insert_or_assign(std::string(host), clock_offset_ + uptime_ms() + ms);
}

// Returns the hosts whose pauses, which an earlier run recorded, have not ended.
std::vector<HeldHost> Journal::holds() {
  const auto wall = wall_ms();
  std::vector<HeldHost> held;
  auto row = database_->prepare("SELECT name, held_until FROM host WHERE held_until > ?");
  row.with(wall);
  while (row.step()) {
    auto& entry = held.emplace_back();
    entry.host = row.text(/*column=*/0);
    entry.time = std::chrono::milliseconds(row.number(/*column=*/1) - wall);
  }
  return held;
}

}  // namespace httpretry::batch
