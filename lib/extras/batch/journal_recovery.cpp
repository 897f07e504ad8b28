// The part of Journal that runs before the first job and takes over what the previous run left.
#include "journal.hpp"

#include <unistd.h>

#include <unordered_set>

namespace httpretry::batch {
namespace {

constexpr std::string_view kCrashed =
    "it was in flight when the run ended, so it may have been executed; --retry-unknown sends it "
    "again";

// Throws the error for a line that a run of this journal cannot have written.
[[noreturn]] void throw_refusal(const LineFile& file, std::uint64_t offset,
                                std::string_view problem) {
  throw StoreError(file.path() + ": at byte " + std::to_string(offset) + " there is " +
                   std::string(problem) +
                   ": remove everything from there on, and run the same command again");
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
  take_over_uncommitted();
}

// Reads what the database has about the batch and its earlier runs, and opens the files of results
// and dead letters, if the options name them. Throws StoreError.
void Journal::load() {
  // commit() compares the journal with this, to notice if another program replaces it.
  if (::stat(options_.journal.c_str(), &journal_stat_) != 0) {
    throw StoreError("cannot look at " + options_.journal);
  }
  // With FULL, SQLite syncs each commit, so that it survives a power failure.
  database_->execute(std::string("PRAGMA synchronous = ") + (durable_ ? "FULL" : "NORMAL"));
  // Each line of the results has this token, so the next run recognizes its own lines.
  token_ = read_meta_text(*database_, "token");
  clock_offset_ = clock_offset();  // from now on, follow_clock() notices if the clock is set
  load_lanes();
  prepare_statements();
  // The earlier runs: the number of lines that the input had, and the beginning.
  enum Column : int { kLines, kBegan };
  auto run = database_->prepare("SELECT lines, began FROM run ORDER BY number");
  while (run.step()) {
    runs_.emplace_back(static_cast<std::uint64_t>(run.number(kLines)), run.number(kBegan));
  }
  const auto committed_bytes = [&](const char* name) {
    return static_cast<std::uint64_t>(read_meta_number(*database_, name));
  };
  if (!options_.results.empty()) {
    results_ = LineFile(options_.results, committed_bytes("results_length"));
  }
  if (!options_.dead.empty()) dead_ = LineFile(options_.dead, committed_bytes("dead_length"));
  // Records the paths, because the next run must name the same files.
  if (results_.is_open()) {
    set_meta_.run(std::string_view("results"), std::string_view(options_.results));
  }
  if (dead_.is_open()) set_meta_.run(std::string_view("dead"), std::string_view(options_.dead));
  // LineFile may have created them, so their names must become durable, too.
  if (durable_ && results_.is_open()) sync_directory_of(options_.results);
  if (durable_ && dead_.is_open()) sync_directory_of(options_.dead);
}

// Loads the lanes in the order of their priorities, which take() needs. Each begins at its first
// line.
void Journal::load_lanes() {
  auto row = database_->prepare(
      "SELECT priority, host, name FROM lane JOIN host ON number = host ORDER BY priority, host");
  enum Column : int { kLanePriority, kHostNumber, kHostName };
  while (row.step()) {
    Lane lane;
    lane.priority = static_cast<int>(priority_of(row.number(kLanePriority)));
    lane.host = row.number(kHostNumber);
    lane.name = row.text(kHostName);
    lane_of_.emplace(std::pair(lane.priority, lane.host), lanes_.size());
    lanes_.push_back(std::move(lane));
  }
  open_lanes_ = lanes_.size();
}

// Prepares the SQL statements that a run uses again and again. The states 4 and 6 in them are
// StoredState::Waiting and StoredState::Scheduled.
void Journal::prepare_statements() {
  // A single lane is the whole table `job`: the import has made no index for lanes, and the query
  // needs no condition on priority and host. It then has two conditions that are always true, so
  // that both forms have four parameters.
  const bool single_lane = lanes_.size() < 2;
  // The parameters: ?1 is the line behind which to begin, ?2 the most rows, ?3 the priority, ?4 the
  // host. A job without a row in the table `state` is queued.
  queued_jobs_ = database_->prepare(
      std::string("SELECT line, id, key, input FROM job WHERE line > ?1 AND NOT EXISTS (SELECT 1 "
                  "FROM state WHERE state.line = job.line) ") +
      (single_lane ? "AND ?3 IS NOT NULL AND ?4 IS NOT NULL "
                   : "AND priority = ?3 AND host = ?4 ") +
      "ORDER BY line LIMIT ?2");
  // The first parameter of the next two statements is a time, in ms since 1970. due_jobs_ selects
  // the jobs whose waits have ended by then and which are behind a DuePlace (?2, ?3), and next_due_
  // selects the first end of a wait after it.
  due_jobs_ = database_->prepare(
      "SELECT state.line, id, key, input, host, priority, attempts, started, until FROM state JOIN "
      "job USING(line) WHERE state IN (4, 6) AND until <= ?1 AND (until, state.line) > (?2, ?3) "
      "ORDER BY until, state.line");
  next_due_ = database_->prepare(
      "SELECT until FROM state WHERE state IN (4, 6) AND until > ? ORDER BY until LIMIT 1");
  // put_state_ writes one row of the table `state`, which has nine columns; put_states_ writes
  // kRowsAtOnce of them at once.
  const std::string row = "(?, ?, ?, ?, ?, ?, ?, ?, ?)";
  auto insert = "INSERT OR REPLACE INTO state VALUES" + row;
  put_state_ = database_->prepare(insert);
  for (std::size_t i = 1; i < kRowsAtOnce; ++i) insert += ", " + row;
  put_states_ = database_->prepare(insert);
  set_hold_ = database_->prepare("UPDATE host SET held_until = ? WHERE name = ?");
  set_meta_ = database_->prepare("INSERT OR REPLACE INTO meta VALUES(?, ?)");
}

// Commits the ends of jobs whose lines the previous run has written but not committed.
void Journal::take_over_uncommitted() {
  std::vector<ResultLine> results;  // one for each job
  if (results_.is_open()) read_uncommitted(results_, LineKind::Result, results);
  if (dead_.is_open()) read_uncommitted(dead_, LineKind::DeadLetter, results);
  counts_ = count_states(*database_);
  for (auto& result : results) finish_uncommitted(std::move(result));
  commit();
  // Removes a partial line, even if nothing was taken over.
  results_.cut();
  dead_.cut();
  begin_run();
}

// Called for the results file, then for the dead-letter file. Reads the lines that the previous run
// wrote to `file` but did not commit, and appends the result of each job to `results`. A dead job
// may have a line in both files; its result is appended only once. `kind` says what the lines are:
// results, or dead letters, which contain results. Throws StoreError for a line that the previous
// run cannot have written: a foreign line, or a second one about a job.
void Journal::read_uncommitted(const LineFile& file, LineKind kind,
                               std::vector<ResultLine>& results) {
  constexpr auto kDone = static_cast<int>(StoredState::Done);
  constexpr auto kDead = static_cast<int>(StoredState::Dead);
  // Finds a job whose end is not committed. A job without a row in the table `state` is queued.
  auto find_unfinished_job = database_->prepare(
      "SELECT 1 FROM job LEFT JOIN state USING(line) WHERE line = ? AND "
      "(state.state IS NULL OR state.state NOT IN (?, ?))");
  // Jobs are identified by the numbers of their lines in the input.
  std::unordered_set<std::uint64_t> jobs_in_results;
  for (const auto& result : results) jobs_in_results.insert(result.input_line);
  std::unordered_set<std::uint64_t> jobs_in_this_file;
  for (const auto& [offset, line] : file.uncommitted_lines()) {
    const auto result =
        read_result_line(kind == LineKind::DeadLetter ? result_in_dead_letter(line) : line);
    // Each line has the token of the journal that it belongs to.
    if (!result || result->token != token_) {
      throw_refusal(file, offset, "a line that this journal did not write");
    }
    const bool is_unfinished = find_unfinished_job.with(result->input_line, kDone, kDead).step();
    find_unfinished_job.reset();
    const bool is_repeated = !jobs_in_this_file.insert(result->input_line).second;
    // A job whose end is committed has its line in the committed part of the file. A job that does
    // not exist gets the same message; only a damaged file can name one.
    if (!is_unfinished || is_repeated) {
      throw_refusal(
          file, offset,
          "a second line for line " + std::to_string(result->input_line) + " of the input");
    }
    // A dead letter repeats the result of its job. The two count as one result.
    if (jobs_in_results.insert(result->input_line).second) results.push_back(*result);
  }
}

// Ends a job with the result that the previous run wrote to a file but did not commit. commit()
// then writes the same bytes to the same offset, so a crash during recovery does no harm.
void Journal::finish_uncommitted(ResultLine result) {
  auto row = database_->prepare(
      "SELECT job.line, id, key, input, host, priority, state.state FROM job LEFT JOIN state "
      "USING(line) WHERE job.line = ?");
  constexpr int kState = kPriority + 1;  // after the columns of JobColumn
  row.with(result.input_line).step();    // read_uncommitted() has found this row
  const auto lane_index = lane_of_.at({static_cast<int>(row.number(kPriority)), row.number(kHost)});
  const auto job = job_of(row, lane_index);
  // A job without a row in the table `state` is queued.
  const auto state = row.is_null(kState) ? State::Queued : state_of(row.number(kState));
  // finish() requires a taken job. The time of taking does not matter for one that ends.
  taken_.emplace(job.number, Taken{.state = state, .lane = lane_index, .taken_at = 0});
  if (result.end.state == State::Dead) {
    // The dead letter is the line of the input with the result as its member "last".
    const auto format = static_cast<InputFormat>(read_meta_number(*database_, "format"));
    const auto line = stored_line(job.text, format);
    std::string_view report = result.end.result;
    report.remove_suffix(1);  // the line end
    result.end.dead_letter = line_with(job.text, line, job.id, job.key, report) + "\n";
  }
  finish(job, std::move(result.end));
}

// Begins this run, after everything of the previous run has been taken over. Jobs that were being
// sent when that run crashed become unknown (the state 1, Sending, becomes 5, Unknown). With
// retry_unknown, all unknown jobs become waiting ones (state 4) that are due at once. Records the
// run: its beginning, the number of lines in the input, and its process.
void Journal::begin_run() {
  in_transaction([&] {
    auto make_unknown = database_->prepare(
        "UPDATE state SET state = 5, reason = 'crash', about = ? WHERE state = 1");
    make_unknown.run(kCrashed);
    if (options_.retry_unknown) {
      // `started` is the time since which a job may have been sent. If that is too long ago, the
      // job's idempotency key is too old for a retry. So `started` is set to the present time,
      // because with this option the user accepts a second execution.
      auto make_due = database_->prepare(
          "UPDATE state SET state = 4, until = 0, started = ?, reason = NULL, about = NULL "
          "WHERE state = 5");
      make_due.run(wall_ms());
    }
    auto record_run = database_->prepare("INSERT INTO run(began, lines, process) VALUES(?, ?, ?)");
    record_run.run(wall_ms(), read_imported(*database_).lines,
                   static_cast<std::int64_t>(::getpid()));
  });
  // Changes the counts in memory in the same way.
  counts_.unknown += std::exchange(counts_.sending, 0);
  if (options_.retry_unknown) counts_.waiting += std::exchange(counts_.unknown, 0);
}

}  // namespace httpretry::batch
