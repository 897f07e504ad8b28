// The functions that read a journal, even during a run.
#include "journal.hpp"
#include "text.hpp"

#include <fstream>

namespace httpretry::batch {
namespace {

std::optional<WallTime> date_at(const Statement& row, int column) {
  if (row.is_null(column)) return std::nullopt;
  return WallTime(std::chrono::milliseconds(row.number(column)));
}

// Returns the line that begins at a byte of a file, or an empty string if it cannot be read.
std::string line_at(const std::string& path, std::int64_t offset) {
  std::ifstream file(path);
  std::string line;
  file.seekg(offset);
  std::getline(file, line);
  return file.good() ? line : std::string();
}

// Returns a statement that has stepped to the row of the job, or an empty one if no job has the id.
// A job without an id in its line has the number of the line as its id.
Statement row_of(const Database& database, std::string_view id, const std::string& columns) {
  auto named =
      database.prepare("SELECT " + columns + " FROM job LEFT JOIN state USING(line) WHERE id = ?1");
  if (named.with(id).step()) return named;
  auto numbered = database.prepare("SELECT " + columns +
                                   " FROM job LEFT JOIN state USING(line) WHERE id IS NULL AND "
                                   "line = CAST(?1 AS INTEGER) AND CAST(line AS TEXT) = ?1");
  return numbered.with(id).step() ? std::move(numbered) : Statement();
}

}  // namespace

// Returns a summary of a journal for --status: its files, the number of jobs in each state, and its
// runs. `process` is set if a run is using the journal now. Throws StoreError.
JournalStatus read_status(const std::string& path) {
  const auto database = open_database(path, Database::Mode::Read);
  JournalStatus status;
  status.input = read_meta_text(*database, "input");
  status.results = read_meta_text(*database, "results");
  status.dead = read_meta_text(*database, "dead");
  status.counts = count_states(*database);
  enum Column : int { kCount, kLastBegan };
  auto runs = database->prepare("SELECT count(*), max(began) FROM run");
  runs.step();
  status.runs = static_cast<std::uint64_t>(runs.number(kCount));
  status.last_run = date_at(runs, kLastBegan);
  // The states 4 and 6 are StoredState::Waiting and StoredState::Scheduled. If a job is due at
  // once, its `until` is 0, which is no date. Then `started`, the time since which the job may have
  // been sent, counts instead.
  auto first_due = database->prepare(
      "SELECT min(max(until, coalesce(started, 0))) FROM state WHERE state IN (4, 6)");
  first_due.step();
  status.next_due = date_at(first_due, /*column=*/0);
  status.process = JournalLock::owner(path);
  return status;
}

// Returns everything that a journal has about a job, for --explain. If the job has ended, that
// includes its line of the results. Returns nullopt if no job has the id. Throws StoreError.
std::optional<JobStory> read_job(const std::string& path, std::string_view id) {
  const auto database = open_database(path, Database::Mode::Read);
  const auto row = row_of(*database, id,
                          "line, input, key, state, status, attempts, reason, about, until, "
                          "started, at");
  // The columns of `row`, first those of the table `job`, then those of `state`.
  enum JobColumn : int { kLine, kInput, kKey };
  // `at` is the offset of the job's line in the results, in bytes.
  enum StateColumn : int { kState = 3, kStatus, kAttempts, kReason, kAbout, kUntil, kStarted, kAt };
  if (!row.ready()) return std::nullopt;
  JobStory story;
  story.id = id;
  story.line = static_cast<std::uint64_t>(row.number(kLine));
  story.input = row.text(kInput);
  // A generated idempotency key is not stored, but calculated from the journal's token and the
  // line.
  story.key = key_at(row, kKey, read_meta_text(*database, "token"), story.line);
  // Without a row in `state`, the job is queued, which is the default.
  if (!row.is_null(kState)) story.state = state_of(row.number(kState));
  story.status = static_cast<int>(row.number(kStatus));
  story.attempts = static_cast<int>(row.number(kAttempts));
  story.reason = row.text(kReason);
  story.about = row.text(kAbout);
  story.until = date_at(row, kUntil);
  story.started = date_at(row, kStarted);
  const auto results = read_meta_text(*database, "results");
  if (!row.is_null(kAt) && !results.empty()) story.result = line_at(results, row.number(kAt));
  return story;
}

// Calls `print` with a line of an input for each job in the state. A Waiting job may have one of
// two stored states, 4 (Waiting) and 6 (Scheduled). A queued one has no row in the table `state`.
void export_jobs(const std::string& path, State state,
                 const std::function<void(std::string_view line)>& print) {
  const auto database = open_database(path, Database::Mode::Read);
  const auto token = read_meta_text(*database, "token");
  const auto format = static_cast<InputFormat>(read_meta_number(*database, "format"));
  const bool queued = state == State::Queued;
  auto row = database->prepare(
      std::string("SELECT job.line, id, key, input FROM job LEFT JOIN state USING(line) WHERE ") +
      (queued ? "?1 = 0 AND state IS NULL" : "state = ?1 OR (?1 = 4 AND state = 6)") +
      " ORDER BY job.line");
  row.with(static_cast<int>(state));
  while (row.step()) {
    const auto number = static_cast<std::uint64_t>(row.number(0));
    print(line_with(row.text(3), stored_line(row.text(3), format), id_at(row, 1, number),
                    key_at(row, 2, token, number), ""));
  }
}

}  // namespace httpretry::batch
