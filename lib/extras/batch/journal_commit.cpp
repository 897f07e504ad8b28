// The part of Journal that writes the results, the dead letters and the states of jobs.
#include "journal.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace httpretry::batch {

// Runs `action` in a transaction of the database. If it throws, rolls back and throws the same
// exception.
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
void Journal::check_files_in_place() {
  journal_stat_ = check_in_place(options_.journal, journal_stat_,
                                 static_cast<std::uint64_t>(journal_stat_.st_size));
  results_.check();
  dead_.check();
}

// Makes all changes since the last commit durable. If `durable_` is true, they survive even a power
// failure. Writes the lines of results and dead letters first, and then, in one transaction, the
// states of the jobs with the lengths of both files. So the database never refers to a line that is
// not in its file. Throws StoreError.
void Journal::commit() {
  check_files_in_place();  // throws if another program has removed or replaced one
  if (changes_.empty() && new_holds_.empty()) return;
  follow_clock();               // corrects the ends of waits if the clock was set
  if (durable_) sync_bodies();  // first, because the results refer to the files with bodies
  // An error below does not remove the lines that are written here, because the transaction may be
  // durable in spite of the error. The next commit overwrites them, or the next run takes them
  // over.
  if (!new_results_.empty()) results_.write(new_results_, durable_);
  if (!new_dead_.empty()) dead_.write(new_dead_, durable_);
  in_transaction([&] {
    write_states();
    // The ends of the pauses that hosts asked for.
    for (const auto& [host, until] : new_holds_) set_hold_.run(until, std::string_view(host));
    set_meta_.run(std::string_view("results_length"), results_.length() + new_results_.size());
    set_meta_.run(std::string_view("dead_length"), dead_.length() + new_dead_.size());
  });
  results_.count_as_committed(new_results_.size());
  dead_.count_as_committed(new_dead_.size());
  new_results_.clear();
  new_dead_.clear();
  // A job with a committed change no longer counts as taken: its row has the new state.
  for (const auto& change : changes_) taken_.erase(change.line);
  changes_.clear();
  new_holds_.clear();
}

// Writes the row of each change: as many as possible with put_states_, the rest one by one.
void Journal::write_states() {
  for (std::size_t i = 0; i < changes_.size();) {
    const bool many = changes_.size() - i >= kRowsAtOnce;
    auto& put = many ? put_states_ : put_state_;
    for (const auto end = i + (many ? kRowsAtOnce : 1); i < end; ++i) add_state(put, changes_[i]);
    put.run_bound();
  }
}

// Binds the next nine parameters of `put` to the columns of the table `state`: line, state, until,
// status, attempts, started, reason, about, at. A value that the state does not need is NULL.
void Journal::add_state(Statement& put, const Change& change) {
  using Text = std::optional<std::string_view>;
  using Number = std::optional<std::int64_t>;
  const auto& end = change.end;
  const bool waits = change.state == StoredState::Waiting;
  const bool done = change.state == StoredState::Done;
  put.and_with(change.line, static_cast<int>(change.state), waits ? Number(change.until) : Number(),
               end.status != 0 ? Number(end.status) : Number(), end.attempts, change.started,
               done || end.reason.empty() ? Text() : Text(end.reason),
               done || end.about.empty() ? Text() : Text(end.about), change.result_offset);
}

// Makes the response bodies durable that jobs of this commit have written to files. They are all in
// one directory, and so in one file system. Throws StoreError.
void Journal::sync_bodies() const {
  for (const auto& change : changes_) {
    if (change.end.body_file.empty()) continue;
    const Descriptor file(::open(change.end.body_file.c_str(), O_RDONLY | O_CLOEXEC));
    // Another program may already have moved the finished file away.
    if (!file.is_open() && errno == ENOENT) continue;
    // One sync of the file system serves all bodies. Without a free descriptor, sync() serves them.
    if (file.is_open() && ::syncfs(file.get()) == 0) return;
    if (!file.is_open() && (errno == EMFILE || errno == ENFILE)) return ::sync();
    throw StoreError("cannot make " + change.end.body_file + " durable");
  }
}

}  // namespace httpretry::batch
