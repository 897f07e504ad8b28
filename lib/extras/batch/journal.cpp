#include "journal.hpp"

#include "text.hpp"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace httpretry::batch {
namespace {

// The stored ends of waits are corrected if the clock was set, or has drifted, by this many ms.
constexpr std::int64_t kClockChange = 500;
// The number of due jobs whose hosts are not wanted now, after which a look for due jobs ends.
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
  return static_cast<StoredState>(stored) == StoredState::Scheduled ? State::Waiting
                                                                    : static_cast<State>(stored);
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
// Such a wait is a duration, but is stored as the date of its end. `not_before` is a date, and
// stays.
void Journal::follow_clock() {
  const auto moved = clock_offset() - clock_offset_;
  if (std::abs(moved) < kClockChange) return;
  database_->prepare("UPDATE state SET until = until + ? WHERE state = 4").run(moved);
  database_->prepare("UPDATE host SET held_until = held_until + ?").run(moved);
  for (auto& [host, until] : new_holds_) until += moved;
  for (auto& change : changes_) {
    if (change.state == StoredState::Waiting) change.until += moved;
  }
  clock_offset_ += moved;
  looked_at_ += moved;
  if (new_wait_) *new_wait_ += moved;
}

void Journal::take(std::size_t most, const WantsHost& wants, std::vector<Job>& jobs) {
  follow_clock();
  const auto all = jobs.size() + most;
  take_due(all, wants, jobs);
  for (std::size_t first = 0; first < lanes_.size() && open_lanes_ > 0;) {
    auto last = first;
    while (last < lanes_.size() && lanes_[last].priority == lanes_[first].priority) ++last;
    take_queued(first, last, all, wants, jobs);
    first = last;
  }
  ++turn_;
}

// Takes some jobs of each host from the lanes of one priority, which are `first` to `last` - 1.
void Journal::take_queued(std::size_t first, std::size_t last, std::size_t most,
                          const WantsHost& wants, std::vector<Job>& jobs) {
  const auto share =
      std::clamp(most / std::max<std::size_t>(open_lanes_, 1), kLeastOfLane, kMostOfLane);
  for (std::size_t i = 0; i < last - first && jobs.size() < most; ++i) {
    const auto lane = first + (turn_ + i) % (last - first);
    if (lanes_[lane].at_end || !wants(lanes_[lane].name)) continue;
    take_from(lane, std::min(share, most - jobs.size()), jobs);
  }
}

void Journal::take_from(std::size_t index, std::size_t most, std::vector<Job>& jobs) {
  auto& lane = lanes_[index];
  auto& row = queued_.with(lane.read_to, static_cast<std::uint64_t>(most + taken_.size()),
                           lane.priority, lane.host);
  std::size_t count = 0;
  while (count < most) {
    if (!row.step()) {
      lane.at_end = true;
      --open_lanes_;
      break;
    }
    lane.read_to = static_cast<std::uint64_t>(row.number(0));
    // If a job was given back, the scan restarts there and meets jobs that were taken since.
    if (taken_.contains(lane.read_to)) continue;
    jobs.push_back(job_of(row, index));
    jobs.back().maybe_sent_since = sendable_since(lane.read_to);
    taken_.emplace(lane.read_to, Taken{State::Queued, index, wall_ms()});
    ++count;
  }
  row.reset();
}

Job Journal::job_of(const Statement& row, std::size_t lane) const {
  Job job;
  job.number = static_cast<std::uint64_t>(row.number(0));
  job.id = id_at(row, 1, job.number);
  job.key = key_at(row, 2, token_, job.number);
  job.text = row.text(3);
  job.host = lanes_[lane].name;
  job.priority = static_cast<Priority>(lanes_[lane].priority);
  return job;
}

// Returns the beginning of the first earlier run that had the line in its input.
std::optional<WallTime> Journal::sendable_since(std::uint64_t line) const {
  for (const auto& [lines, began] : runs_) {
    if (line <= lines) return wall_time(began);
  }
  return std::nullopt;
}

void Journal::take_due(std::size_t most, const WantsHost& wants, std::vector<Job>& jobs) {
  looked_at_ = wall_ms();
  if (changes_.empty()) new_wait_.reset();  // this look sees all waits
  auto& row = due_.with(looked_at_);
  for (std::size_t skipped = 0; jobs.size() < most && skipped < kMostSkipped && row.step();) {
    const auto line = static_cast<std::uint64_t>(row.number(0));
    const auto lane = lane_of_.at({static_cast<int>(row.number(5)), row.number(4)});
    if (taken_.contains(line) || !wants(lanes_[lane].name)) {
      ++skipped;
      continue;
    }
    jobs.push_back(job_of(row, lane));
    jobs.back().attempts = static_cast<int>(row.number(6));
    jobs.back().maybe_sent_since =
        row.is_null(7) ? sendable_since(line) : std::optional(wall_time(row.number(7)));
    taken_.emplace(line, Taken{State::Waiting, lane, looked_at_});
  }
  row.reset();
}

// Considers only waits that had not ended at the last look of take(), or that take() could not see.
// The others have ended, but their hosts are not wanted.
std::optional<Duration> Journal::next_due() {
  follow_clock();
  auto until = new_wait_;
  if (next_due_.with(looked_at_).step()) {
    until = std::min(until.value_or(next_due_.number(0)), next_due_.number(0));
  }
  next_due_.reset();
  if (!until) return std::nullopt;
  return std::chrono::milliseconds(std::max<std::int64_t>(*until - wall_ms(), 0));
}

void Journal::move(std::uint64_t line, State to) {
  auto& state = taken_.at(line).state;
  --counts_.of(state);
  ++counts_.of(to);
  state = to;
}

std::vector<const Job*> Journal::intend(std::span<const Job* const> jobs) {
  in_transaction([&] {
    for (const auto* job : jobs) {
      const auto started = taken_.at(job->number).since;
      put_.run(job->number, static_cast<int>(StoredState::Sending), nullptr, nullptr, job->attempts,
               started, nullptr, nullptr, nullptr);
    }
  });
  for (const auto* job : jobs) move(job->number, State::Sending);
  return {};
}

void Journal::add_change(const Job& job, StoredState state, JobEnd end, std::int64_t until) {
  const auto since = taken_.at(job.number).since;
  Change change;
  change.line = job.number;
  change.state = state;
  change.until = until;
  if (results_.open() && !end.result.empty()) {
    change.at = results_.length() + new_results_.size();
    new_results_ += std::exchange(end.result, {});
  }
  if (dead_.open()) new_dead_ += std::exchange(end.dead_letter, {});
  change.end = std::move(end);
  if (state == StoredState::Waiting || state == StoredState::Unknown) {
    const auto& before = job.maybe_sent_since;
    change.started = before ? ms_of(*before) : since;
  }
  changes_.push_back(std::move(change));
  if (state == StoredState::Waiting) new_wait_ = std::min(until, new_wait_.value_or(until));
}

void Journal::wait(const Job& job, Duration time, int attempts, std::string_view why) {
  JobEnd end;
  end.attempts = attempts;
  end.about = why;
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(time).count();
  add_change(job, StoredState::Waiting, std::move(end), clock_offset_ + uptime_ms() + ms);
  move(job.number, State::Waiting);
}

void Journal::finish(const Job& job, JobEnd end) {
  const auto state = end.state;
  add_change(job, static_cast<StoredState>(state), std::move(end), 0);
  move(job.number, state);
}

void Journal::give_back(const Job& job) {
  const auto taken = taken_.at(job.number);
  if (taken.state == State::Sending) {
    // Only a job without a row is queued. This job has one, so it waits, and is due at once.
    JobEnd end;
    end.attempts = job.attempts;
    add_change(job, StoredState::Waiting, std::move(end), 0);
    return move(job.number, State::Waiting);
  }
  taken_.erase(job.number);
  if (taken.state != State::Queued) return;
  auto& lane = lanes_[taken.lane];
  lane.read_to = std::min(lane.read_to, job.number - 1);
  if (lane.at_end) ++open_lanes_;
  lane.at_end = false;
}

void Journal::hold(std::string_view host, Duration time) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(time).count();
  new_holds_.insert_or_assign(std::string(host), clock_offset_ + uptime_ms() + ms);
}

std::vector<HeldHost> Journal::holds() {
  const auto wall = wall_ms();
  std::vector<HeldHost> held;
  auto row = database_->prepare("SELECT name, held_until FROM host WHERE held_until > ?");
  row.with(wall);
  while (row.step()) {
    HeldHost one;
    one.host = row.text(0);
    one.time = std::chrono::milliseconds(row.number(1) - wall);
    held.push_back(std::move(one));
  }
  return held;
}

void Journal::in_transaction(const std::function<void()>& action) {
  database_->execute("BEGIN IMMEDIATE");
  try {
    action();
    database_->execute("COMMIT");
  } catch (...) {
    try {
      database_->execute("ROLLBACK");
    } catch (const StoreError&) {
      // SQLite has rolled back already.
    }
    throw;
  }
}

// Checks the files even if nothing is to be written, so that a run whose file was removed does not
// end as if all were well.
void Journal::check_files() {
  file_ = check_in_place(options_.journal, file_, static_cast<std::uint64_t>(file_.st_size));
  results_.check();
  dead_.check();
}

void Journal::commit() {
  check_files();
  if (changes_.empty() && new_holds_.empty()) return;
  follow_clock();
  // If a step fails, the lines stay, because the transaction may be durable all the same. The next
  // commit overwrites them, or the next run takes them over.
  if (durable_) sync_bodies();
  if (!new_results_.empty()) results_.write(new_results_, durable_);
  if (!new_dead_.empty()) dead_.write(new_dead_, durable_);
  in_transaction([&] {
    write_states();
    for (const auto& [host, until] : new_holds_) hold_.run(until, std::string_view(host));
    set_.run(std::string_view("results_length"), results_.length() + new_results_.size());
    set_.run(std::string_view("dead_length"), dead_.length() + new_dead_.size());
  });
  results_.accept(new_results_.size());
  dead_.accept(new_dead_.size());
  new_results_.clear();
  new_dead_.clear();
  for (const auto& change : changes_) taken_.erase(change.line);
  changes_.clear();
  new_holds_.clear();
}

void Journal::write_states() {
  for (std::size_t i = 0; i < changes_.size();) {
    const bool many = changes_.size() - i >= kRowsAtOnce;
    auto& put = many ? put_many_ : put_;
    for (const auto end = i + (many ? kRowsAtOnce : 1); i < end; ++i) add_state(put, changes_[i]);
    put.run_bound();
  }
}

void Journal::add_state(Statement& put, const Change& change) {
  using Text = std::optional<std::string_view>;
  using Number = std::optional<std::int64_t>;
  const auto& end = change.end;
  const bool waits = change.state == StoredState::Waiting;
  const bool good = change.state == StoredState::Done;
  put.and_with(change.line, static_cast<int>(change.state), waits ? Number(change.until) : Number(),
               end.status != 0 ? Number(end.status) : Number(), end.attempts, change.started,
               good || end.reason.empty() ? Text() : Text(end.reason),
               good || end.about.empty() ? Text() : Text(end.about), change.at);
}

// Makes the response bodies durable that were written to files. They are all in one directory, and
// so in one file system.
void Journal::sync_bodies() const {
  for (const auto& change : changes_) {
    if (change.end.body_file.empty()) continue;
    const Descriptor file(::open(change.end.body_file.c_str(), O_RDONLY | O_CLOEXEC));
    // One sync of the file system serves all bodies. Without a free descriptor, sync() serves them.
    if (file.open() && ::syncfs(file.get()) == 0) return;
    if (!file.open() && (errno == EMFILE || errno == ENFILE)) return ::sync();
    throw StoreError("cannot make " + change.end.body_file + " durable");
  }
}

}  // namespace httpretry::batch
