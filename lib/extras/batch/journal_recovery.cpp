// The part of Journal that runs before the first job and takes over what the previous run left.
#include "journal.hpp"

#include <unistd.h>

namespace httpretry::batch {
namespace {

constexpr std::string_view kCrashed =
    "it was on its way when the run ended, so it may have been executed; --retry-unknown sends it "
    "again";

[[noreturn]] void refuse(const LineFile& file, std::uint64_t offset, std::string_view what) {
  throw StoreError(file.path() + ": at byte " + std::to_string(offset) + " there is " +
                   std::string(what) +
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

void Journal::prepare_statements() {
  // A single lane is the whole table, so no index is needed.
  const bool one = lanes_.size() < 2;
  queued_ = database_->prepare(
      std::string("SELECT line, id, key, input FROM job WHERE line > ?1 AND NOT EXISTS (SELECT 1 "
                  "FROM state WHERE state.line = job.line) ") +
      (one ? "AND ?3 IS NOT NULL AND ?4 IS NOT NULL " : "AND priority = ?3 AND host = ?4 ") +
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

void Journal::take_over() {
  std::vector<ResultLine> ends;
  if (results_.open()) read_tail(results_, false, ends);
  if (dead_.open()) read_tail(dead_, true, ends);
  counts_ = count_states(*database_);
  for (auto& end : ends) take_over_end(std::move(end));
  commit();
  // Removes a partial line, even if nothing was taken over.
  results_.cut();
  dead_.cut();
  begin_run();
}

// Appends the lines that a run wrote but did not commit. A job whose lines are in both files is
// found once. Throws StoreError for a line that such a run cannot have written.
void Journal::read_tail(const LineFile& file, bool dead_letters, std::vector<ResultLine>& found) {
  auto open = database_->prepare(
      "SELECT 1 FROM job LEFT JOIN state USING(line) WHERE line = ? AND "
      "(state IS NULL OR state NOT IN (2, 3))");
  std::unordered_map<std::uint64_t, bool> here;
  for (const auto& known : found) here.emplace(known.number, false);
  for (const auto& [offset, line] : file.tail()) {
    const auto end = read_result_line(dead_letters ? result_in_dead_letter(line) : line);
    if (!end || end->token != token_) {
      refuse(file, offset, "a line that this journal did not write");
    }
    const bool is_open = open.with(end->number).step();
    open.reset();
    const auto [place, is_new] = here.emplace(end->number, true);
    if (!is_open || (!is_new && place->second)) {
      refuse(file, offset,
             "a second line about line " + std::to_string(end->number) + " of the input");
    }
    place->second = true;
    if (is_new) found.push_back(*end);
  }
}

// Ends the job as the line says. The commit then writes the same bytes to the same place, so a
// crash during recovery does no harm.
void Journal::take_over_end(ResultLine found) {
  auto row = database_->prepare(
      "SELECT job.line, id, key, input, host, priority, state FROM job LEFT JOIN state USING(line) "
      "WHERE job.line = ?");
  row.with(found.number).step();
  const auto lane = lane_of_.at({static_cast<int>(row.number(5)), row.number(4)});
  const auto job = job_of(row, lane);
  taken_.emplace(job.number,
                 Taken{row.is_null(6) ? State::Queued : state_of(row.number(6)), lane, 0});
  if (found.end.state == State::Dead) {
    const auto format = static_cast<InputFormat>(read_number(*database_, "format"));
    const auto line = stored_line(job.text, format);
    const std::string_view result = found.end.result;
    found.end.dead_letter =
        line_with(job.text, line, job.id, job.key, result.substr(0, result.size() - 1)) + "\n";
  }
  finish(job, std::move(found.end));
}

void Journal::begin_run() {
  in_transaction([&] {
    auto crashed = database_->prepare(
        "UPDATE state SET state = 5, reason = 'crash', about = ? WHERE state = 1");
    crashed.run(kCrashed);
    if (options_.retry_unknown) {
      // The user accepts a second execution, so the age of a key counts from now.
      auto again = database_->prepare(
          "UPDATE state SET state = 4, until = 0, started = ?, reason = NULL, about = NULL "
          "WHERE state = 5");
      again.run(wall_ms());
    }
    auto run = database_->prepare("INSERT INTO run(began, lines, process) VALUES(?, ?, ?)");
    run.run(wall_ms(), read_imported(*database_).lines, static_cast<std::int64_t>(::getpid()));
  });
  counts_.unknown += std::exchange(counts_.sending, 0);
  if (options_.retry_unknown) counts_.waiting += std::exchange(counts_.unknown, 0);
}

}  // namespace httpretry::batch
