// Journal: a Store in a file of SQLite, beside the files of results and of dead letters. It is the
// truth about a run: what is in it survives a crash, and what is not was not said to be there.
//
// A commit writes the lines of results and dead letters, syncs them, and then commits the states
// with the lengths of these files in one transaction. So after a crash a file can only be longer
// than the journal says: its whole lines are taken over, a half one is cut.
#pragma once

#include "file_lock.hpp"
#include "import.hpp"
#include "line_file.hpp"
#include "line_jobs.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace httpretry::batch {

[[nodiscard]] Duration boot_clock();

struct JournalClocks {
  std::function<WallTime()> wall_now = [] { return std::chrono::system_clock::now(); };
  // Goes on while the machine is suspended, and is never set.
  std::function<Duration()> uptime = boot_clock;
};

// The states as the database has them. Scheduled: waiting for `not_before`, which is a date; a wait
// that the server asked for is a time, and is not shortened by a clock that is set.
enum class StoredState : std::uint8_t { Queued, Sending, Done, Dead, Waiting, Unknown, Scheduled };
[[nodiscard]] State state_of(std::int64_t stored);

// Returns the database of the journal, with all lines of the input in it. Returns nullptr after
// problems; nothing has changed then. Throws StoreError. The lock must be held.
std::unique_ptr<Database> open_journal(const BatchOptions& options);
// Opens the database of a journal that exists.
std::unique_ptr<Database> open_database(const std::string& path, Database::Mode mode);

// Counts the jobs in each state.
[[nodiscard]] Counts count_states(const Database& database);
// Returns the id of a job: the one in the column, or the number of its line.
[[nodiscard]] std::string id_at(const Statement& row, int column, std::uint64_t line);
// Returns the key of a job: the one in the column, or one that is made. Empty: it has none.
[[nodiscard]] std::string key_at(const Statement& row, int column, const std::string& token,
                                 std::uint64_t line);

class Journal final : public Store {
 public:
  // Opens a journal that was imported, and takes over what the run before this one left. Of
  // `options`, it uses the files of journal, results and dead letters, `durability` and
  // `retry_unknown`.
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
    std::int64_t host = 0;
    int priority = 0;
    std::string name;
    std::uint64_t read_to = 0;  // lines up to this were taken
    bool at_end = false;
  };
  // A job that was taken, until what became of it is committed.
  struct Taken {
    State state = State::Queued;
    std::size_t lane = 0;
    std::int64_t since = 0;  // wall clock, in ms
  };
  // What `commit` writes.
  struct Change {
    std::uint64_t line = 0;
    StoredState state = StoredState::Queued;
    std::int64_t until = 0;
    std::optional<std::int64_t> started;
    std::optional<std::uint64_t> at;  // its line of the results, in bytes
    JobEnd end;                       // without the lines, which are in new_results_ and new_dead_
  };

  static constexpr std::size_t kRowsAtOnce = 16;

  void load();
  void take_over();
  void read_tail(const LineFile& file, bool dead_letters, std::vector<ResultLine>& found);
  void take_over_end(ResultLine end);
  void begin_run();
  void load_lanes();
  void prepare_statements();
  [[nodiscard]] std::int64_t wall_ms() const;
  [[nodiscard]] std::int64_t uptime_ms() const;
  [[nodiscard]] std::int64_t clock_offset() const;  // of the wall clock to the uptime, in ms
  void follow_clock();
  void take_due(std::size_t most, const WantsHost& wants, std::vector<Job>& jobs);
  void take_queued(std::size_t first, std::size_t last, std::size_t most, const WantsHost& wants,
                   std::vector<Job>& jobs);
  void take_from(std::size_t lane, std::size_t most, std::vector<Job>& jobs);
  [[nodiscard]] Job job_of(const Statement& row, std::size_t lane) const;
  [[nodiscard]] std::optional<WallTime> sendable_since(std::uint64_t line) const;
  void move(std::uint64_t line, State to);
  void change(const Job& job, StoredState state, JobEnd end, std::int64_t until);
  void write_states();
  static void add_state(Statement& put, const Change& change);
  void sync_bodies() const;
  void in_transaction(const std::function<void()>& action);
  void check_files();

  const BatchOptions options_;
  const JournalClocks clocks_;
  const bool durable_;  // a commit survives the end of the power, too
  std::unique_ptr<JournalLock> lock_;
  std::unique_ptr<Database> database_;
  struct ::stat file_ {};  // of the database, which only grows
  std::string token_;
  LineFile results_;
  LineFile dead_;
  Counts counts_;
  std::vector<Lane> lanes_;  // by priority
  std::map<std::pair<int, std::int64_t>, std::size_t> lane_of_;
  std::size_t open_lanes_ = 0;                                // not at their end
  std::size_t turn_ = 0;                                      // which lane of a priority is first
  std::vector<std::pair<std::uint64_t, std::int64_t>> runs_;  // before this one: lines, began
  std::unordered_map<std::uint64_t, Taken> taken_;
  std::vector<Change> changes_;
  std::string new_results_;
  std::string new_dead_;
  std::map<std::string, std::int64_t, std::less<>> new_holds_;  // until, wall clock, in ms
  std::int64_t clock_offset_ = 0;
  std::int64_t looked_at_ = 0;  // by take(), wall clock, in ms
  // When the first of the jobs is due that have begun to wait since take() last saw all waits.
  std::optional<std::int64_t> new_wait_;
  Statement queued_;  // of a lane
  Statement due_;
  Statement next_due_;
  Statement put_;
  Statement put_many_;  // kRowsAtOnce of them, at half the cost
  Statement hold_;
  Statement set_;
};

}  // namespace httpretry::batch
