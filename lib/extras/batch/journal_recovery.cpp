// The part of Journal that runs before the first job and takes over what the previous run left.
#include "journal.hpp"

#include <unistd.h>

namespace httpretry::batch {
namespace {

constexpr std::string_view kCrashed =
    "it was on its way when the run ended, so it may have been executed; --retry-unknown sends it "
    "again";

// Throws the error for a line that a run of this journal cannot have written.
[[noreturn]] void refuse_line(const LineFile& file, std::uint64_t offset,
                              std::string_view problem) {
  throw StoreError(file.path() + ": at byte " + std::to_string(offset) + " there is " +
                   std::string(problem) +
                   ": remove what stands from there on, and start the same command again");
}

}  // namespace

Journal::Journal(std::unique_ptr<JournalLock> lock, std::unique_ptr<Database> database,
                 BatchOptions options, JournalClocks clocks)
    : options_(std::move(options)),
      clocks_(std::move(clocks)),
      durable_(options_.durability == Durability::Power),
      lock_(std::move(lock)),
      database_(std::move(database)) {
  load();
  take_over();
}

// Reads what the database has about earlier runs, and opens the files of results and dead letters.
// Syncs the directories of these files, because their names may be new. Throws StoreError.
void Journal::load() {
  if (::stat(options_.journal.c_str(), &file_) != 0)
    throw StoreError("cannot look at " + options_.journal);
  database_->execute(std::string("PRAGMA synchronous = ") + (durable_ ? "FULL" : "NORMAL"));
  token_ = read_text(*database_, "token");
  clock_offset_ = clock_offset();
  load_lanes();
  prepare_statements();
  auto run = database_->prepare("SELECT lines, began FROM run ORDER BY number");
  while (run.step()) runs_.emplace_back(static_cast<std::uint64_t>(run.number(0)), run.number(1));
  const auto length = [&](const char* name) {
    return static_cast<std::uint64_t>(read_number(*database_, name));
  };
  if (!options_.results.empty()) results_ = LineFile(options_.results, length("results_length"));
  if (!options_.dead.empty()) dead_ = LineFile(options_.dead, length("dead_length"));
  if (results_.open()) set_.run(std::string_view("results"), std::string_view(options_.results));
  if (dead_.open()) set_.run(std::string_view("dead"), std::string_view(options_.dead));
  if (durable_ && results_.open()) sync_directory_of(options_.results);
  if (durable_ && dead_.open()) sync_directory_of(options_.dead);
}

// Loads the lanes in the order of their priorities, which take() needs. No line of any is read yet.
void Journal::load_lanes() {
  auto row = database_->prepare(
      "SELECT priority, host, name FROM lane JOIN host ON number = host ORDER BY priority, host");
  while (row.step()) {
    Lane lane;
    lane.priority = static_cast<int>(row.number(0));
    lane.host = row.number(1);
    lane.name = row.text(2);
    lane_of_.emplace(std::pair(lane.priority, lane.host), lanes_.size());
    lanes_.push_back(std::move(lane));
  }
  open_lanes_ = lanes_.size();
}

// Prepares the statements that each run uses. The states 4 and 6 in them are StoredState::Waiting
// and StoredState::Scheduled.
void Journal::prepare_statements() {
  const bool single_lane = lanes_.size() < 2;
  // A single lane is the whole table, so no index is needed. The conditions on ?3 and ?4 are true
  // then, and only give both statements the same parameters.
  queued_ = database_->prepare(
      std::string("SELECT line, id, key, input FROM job WHERE line > ?1 AND NOT EXISTS (SELECT 1 "
                  "FROM state WHERE state.line = job.line) ") +
      (single_lane ? "AND ?3 IS NOT NULL AND ?4 IS NOT NULL "
                   : "AND priority = ?3 AND host = ?4 ") +
      "ORDER BY line LIMIT ?2");
  due_ = database_->prepare(
      "SELECT state.line, id, key, input, host, priority, attempts, started FROM state JOIN job "
      "USING(line) WHERE state IN (4, 6) AND until <= ? ORDER BY until");
  next_due_ = database_->prepare(
      "SELECT until FROM state WHERE state IN (4, 6) AND until > ? ORDER BY until LIMIT 1");
  const std::string row = "(?, ?, ?, ?, ?, ?, ?, ?, ?)";
  auto many = "INSERT OR REPLACE INTO state VALUES" + row;
  put_ = database_->prepare(many);
  for (std::size_t i = 1; i < kRowsAtOnce; ++i) many += ", " + row;
  put_many_ = database_->prepare(many);
  hold_ = database_->prepare("UPDATE host SET held_until = ? WHERE name = ?");
  set_ = database_->prepare("INSERT OR REPLACE INTO meta VALUES(?, ?)");
}

// Commits the ends of jobs whose lines the previous run has written but not committed.
void Journal::take_over() {
  std::vector<ResultLine> results;
  if (results_.open()) read_uncommitted(results_, LineKind::Result, results);
  if (dead_.open()) read_uncommitted(dead_, LineKind::DeadLetter, results);
  counts_ = count_states(*database_);
  for (auto& result : results) finish_uncommitted(std::move(result));
  commit();
  // Removes a partial line, even if nothing was taken over.
  results_.cut();
  dead_.cut();
  begin_run();
}

// Appends the results that a run wrote to the file but did not commit. A job that is in `results`
// already, from the other file, is not added again. Throws StoreError for a line that such a run
// cannot have written: a foreign line, or a second one about a job.
void Journal::read_uncommitted(const LineFile& file, LineKind kind,
                               std::vector<ResultLine>& results) {
  // The states 2 and 3 are StoredState::Done and Dead: the end of such a job is committed.
  auto unfinished_job = database_->prepare(
      "SELECT 1 FROM job LEFT JOIN state USING(line) WHERE line = ? AND "
      "(state IS NULL OR state NOT IN (2, 3))");
  // By the number of the job: whether this file has a line about it. False: only the other file
  // has.
  std::unordered_map<std::uint64_t, bool> in_this_file;
  for (const auto& result : results) in_this_file.emplace(result.number, false);
  for (const auto& [offset, line] : file.tail()) {
    const auto result =
        read_result_line(kind == LineKind::DeadLetter ? result_in_dead_letter(line) : line);
    if (!result || result->token != token_) {
      refuse_line(file, offset, "a line that this journal did not write");
    }
    const bool is_unfinished = unfinished_job.with(result->number).step();
    unfinished_job.reset();
    const auto [entry, is_new] = in_this_file.emplace(result->number, true);
    const bool is_repeated = !is_new && entry->second;
    if (!is_unfinished || is_repeated) {
      refuse_line(file, offset,
                  "a second line about line " + std::to_string(result->number) + " of the input");
    }
    entry->second = true;
    if (is_new) results.push_back(*result);
  }
}

// Ends the job as its uncommitted line says. commit() then writes the same bytes to the same
// offset, so a crash during recovery does no harm.
void Journal::finish_uncommitted(ResultLine result) {
  auto row = database_->prepare(
      "SELECT job.line, id, key, input, host, priority, state FROM job LEFT JOIN state USING(line) "
      "WHERE job.line = ?");
  row.with(result.number).step();
  const auto lane_index = lane_of_.at({static_cast<int>(row.number(5)), row.number(4)});
  const auto job = job_of(row, lane_index);
  const auto state = row.is_null(6) ? State::Queued : state_of(row.number(6));
  // A job that has ended needs no time at which it was taken.
  taken_.emplace(job.number, Taken{.state = state, .lane = lane_index, .taken_at = 0});
  if (result.end.state == State::Dead) {
    const auto format = static_cast<InputFormat>(read_number(*database_, "format"));
    const auto line = stored_line(job.text, format);
    std::string_view last = result.end.result;
    last.remove_suffix(1);  // its line end
    result.end.dead_letter = line_with(job.text, line, job.id, job.key, last) + "\n";
  }
  finish(job, std::move(result.end));
}

// Makes the jobs unknown that were being sent when the previous run crashed (state 1, Sending,
// becomes 5, Unknown), and records this run. With retry_unknown, all unknown jobs become waiting
// ones (state 4) that are due at once.
void Journal::begin_run() {
  in_transaction([&] {
    auto crashed = database_->prepare(
        "UPDATE state SET state = 5, reason = 'crash', about = ? WHERE state = 1");
    crashed.run(kCrashed);
    if (options_.retry_unknown) {
      // The user accepts a second execution, so the age of a key counts from now.
      auto retry = database_->prepare(
          "UPDATE state SET state = 4, until = 0, started = ?, reason = NULL, about = NULL "
          "WHERE state = 5");
      retry.run(wall_ms());
    }
    auto run = database_->prepare("INSERT INTO run(began, lines, process) VALUES(?, ?, ?)");
    run.run(wall_ms(), read_imported(*database_).lines, static_cast<std::int64_t>(::getpid()));
  });
  counts_.unknown += std::exchange(counts_.sending, 0);
  if (options_.retry_unknown) counts_.waiting += std::exchange(counts_.unknown, 0);
}

}  // namespace httpretry::batch
