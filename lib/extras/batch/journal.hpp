// Journal is a Store in an SQLite database, with a file of results and a file of dead letters
// beside it. The database alone decides what has happened in a run: a change counts once it is
// committed there, and then survives a crash.
//
// A commit writes the lines of results and dead letters, syncs them, and then commits the states
// with the lengths of these files in one transaction. So after a crash, a file can only be longer
// than the journal says. The next run takes over its whole lines and cuts off a partial one.
#pragma once

#include "file_lock.hpp"
#include "import.hpp"
#include "line_file.hpp"
#include "line_jobs.hpp"

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace httpretry::batch {

// Returns the time since the machine was started.
[[nodiscard]] Duration boot_clock();

struct JournalClocks {
  std::function<WallTime()> wall_now = [] { return std::chrono::system_clock::now(); };
  // Runs while the machine is suspended, and is never set.
  std::function<Duration()> uptime = boot_clock;
};

// The states as the database has them; SQL statements contain their numbers. A Waiting job waits
// for a duration that a server asked for, so its end moves if the clock is set. A Scheduled job
// waits for a date, `not_before`, which does not move.
enum class StoredState : std::uint8_t { Queued, Sending, Done, Dead, Waiting, Unknown, Scheduled };
// These throw StoreError for a number that is no state or priority.
[[nodiscard]] State state_of(std::int64_t stored);
[[nodiscard]] Priority priority_of(std::int64_t stored);

// Returns the database of the journal, with all lines of the input in it. Returns nullptr after
// problems in the input; nothing has changed in that case. Throws StoreError. The caller must hold
// the JournalLock.
std::unique_ptr<Database> open_journal(const BatchOptions& options);
// Opens the database of an existing journal. Throws StoreError.
std::unique_ptr<Database> open_database(const std::string& path, Database::Mode mode);

// Counts the jobs in each state.
[[nodiscard]] Counts count_states(const Database& database);
// Returns the id of a job: the text of the column, or the number of the line if the column is NULL.
[[nodiscard]] std::string id_at(const Statement& row, int column, std::uint64_t line);
// Returns the idempotency key of a job: the text of the column, or made_key if the column has a
// number, or an empty string if it is NULL.
[[nodiscard]] std::string key_at(const Statement& row, int column, const std::string& token,
                                 std::uint64_t line);

class Journal final : public Store {
 public:
  // Uses a database of open_journal, and takes over what the previous run left. Of `options`, only
  // `journal`, `results`, `dead`, `durability` and `retry_unknown` matter.
  Journal(std::unique_ptr<JournalLock> lock, std::unique_ptr<Database> database,
          BatchOptions options, JournalClocks clocks = {});

  void take(std::size_t most, const WantsHost& wants, std::vector<Job>& jobs) override;
  std::vector<const Job*> intend(std::span<const Job* const> jobs) override;
  void wait(const Job& job, Duration time, int attempts, std::string_view why) override;
  void finish(const Job& job, JobEnd end) override;
  void give_back(const Job& job) override;
  void hold(std::string_view host, Duration time) override;
  [[nodiscard]] std::vector<HeldHost> holds() override;
  void commit() override;
  [[nodiscard]] Counts counts() const override { return counts_; }
  [[nodiscard]] std::optional<Duration> next_due() override;

  [[nodiscard]] const std::string& token() const { return token_; }
  [[nodiscard]] const Database& database() const { return *database_; }

 private:
  // The jobs of one host with one priority, in the order of the input.
  struct Lane {
    std::int64_t host = 0;  // the number of its row in the table `host`
    int priority = 0;
    std::string name;           // of the host
    std::uint64_t read_to = 0;  // its lines up to this one were taken
    bool at_end = false;
  };
  // A job between `take` and the commit of its next state.
  struct Taken {
    State state = State::Queued;
    std::size_t lane = 0;
    std::int64_t taken_at = 0;  // wall clock, in ms
  };
  // A row that `commit` will write.
  struct Change {
    std::uint64_t line = 0;
    StoredState state = StoredState::Queued;
    std::int64_t until = 0;
    std::optional<std::int64_t> started;
    std::optional<std::uint64_t> result_offset;  // of its line in the results, in bytes
    JobEnd end;  // its lines have moved to new_results_ and new_dead_
  };

  // The place of a waiting job in the order in which take() reads those that are due.
  struct DuePlace {
    std::int64_t until = std::numeric_limits<std::int64_t>::min();
    std::uint64_t line = 0;
  };

  static constexpr std::size_t kRowsAtOnce = 16;
  // The first columns of each query for jobs.
  enum JobColumn : int { kLine, kId, kKey, kInput, kHost, kPriority };

  void load();
  void take_over_uncommitted();
  enum class LineKind : std::uint8_t { Result, DeadLetter };
  void read_uncommitted(const LineFile& file, LineKind kind, std::vector<ResultLine>& results);
  void finish_uncommitted(ResultLine result);
  void begin_run();
  void load_lanes();
  void prepare_statements();
  [[nodiscard]] std::int64_t wall_ms() const;
  [[nodiscard]] std::int64_t uptime_ms() const;
  [[nodiscard]] std::int64_t clock_offset() const;  // the wall clock minus the uptime, in ms
  void follow_clock();
  void take_due(std::size_t most_jobs, const WantsHost& wants, std::vector<Job>& jobs);
  void take_queued(std::size_t first, std::size_t end, std::size_t most_jobs,
                   const WantsHost& wants, std::vector<Job>& jobs);
  void take_from(std::size_t lane_index, std::size_t most, std::vector<Job>& jobs);
  [[nodiscard]] Job job_of(const Statement& row, std::size_t lane) const;
  [[nodiscard]] std::optional<WallTime> earliest_possible_send(std::uint64_t line) const;
  void count_as(std::uint64_t line, State new_state);
  [[nodiscard]] std::int64_t first_send_ms(const Job& job) const;
  void add_change(const Job& job, StoredState state, JobEnd end, std::int64_t until);
  void write_states();
  static void add_state(Statement& put, const Change& change);
  void sync_bodies() const;
  void in_transaction(const std::function<void()>& action);
  void check_files_in_place();

  const BatchOptions options_;
  const JournalClocks clocks_;
  const bool durable_;  // a commit survives a power failure
  std::unique_ptr<JournalLock> lock_;
  std::unique_ptr<Database> database_;
  struct ::stat journal_stat_ {};  // of the database, whose size never shrinks
  std::string token_;
  LineFile results_;
  LineFile dead_;
  Counts counts_;
  std::vector<Lane> lanes_;                                      // by priority
  std::map<std::pair<int, std::int64_t>, std::size_t> lane_of_;  // by priority and host
  std::size_t open_lanes_ = 0;                                   // lanes that are not at their end
  std::size_t take_count_ = 0;  // counts calls of take(), so that each begins at another lane
  // The earlier runs: the number of lines in the input, and the beginning on the wall clock in ms.
  std::vector<std::pair<std::uint64_t, std::int64_t>> runs_;
  std::unordered_map<std::uint64_t, Taken> taken_;
  std::vector<Change> changes_;
  std::string new_results_;
  std::string new_dead_;
  std::map<std::string, std::int64_t, std::less<>> new_holds_;  // their ends, wall clock, in ms
  std::int64_t clock_offset_ = 0;      // as the stored ends of waits assume it
  std::int64_t due_read_at_ = 0;       // when take() last read the due jobs, wall clock, in ms
  std::optional<DuePlace> due_place_;  // of the last job that take() skipped before it gave up
  // The earliest end of the waits that began since take() last saw all waits. take() does not see
  // those that are not committed.
  std::optional<std::int64_t> earliest_unseen_due_;
  Statement queued_jobs_;  // of a lane
  Statement due_jobs_;
  Statement next_due_;
  Statement put_state_;
  Statement put_states_;  // puts kRowsAtOnce rows, at half the cost
  Statement set_hold_;
  Statement set_meta_;
};

}  // namespace httpretry::batch
