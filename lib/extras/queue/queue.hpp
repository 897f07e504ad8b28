// A queue of jobs on a Redis server, which any number of workers send. `httpretry batch --enqueue`
// adds jobs to it, and `httpretry work` sends them. README.md in this folder lists the guarantees.
//
// Functions throw batch::StoreError if the server or a file fails.
#pragma once

#include "queue_store.hpp"

#include "lib/extras/batch/import.hpp"
#include "lib/extras/batch/line_jobs.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace httpretry::queue {

struct QueueOptions {
  fleet::Address address;  // its `job` is the name of the queue
  bool force = false;      // uses even a server that may delete keys
  // The directory below which a worker reads the files that jobs name as their bodies. Empty: the
  // worker sends no such jobs.
  std::string files;
  // How long Enqueue retries to add jobs if the server does not respond.
  Duration patience = std::chrono::seconds(30);
  // Called with warnings, on any thread.
  std::function<void(const std::string&)> tell = [](const std::string& /*text*/) {};
};

// Parses "redis://host/0?job=NAME". Returns Errc::InvalidRequest for other texts.
[[nodiscard]] Result<fleet::Address> parse_queue(std::string_view url);

// Returns the options of a connection to the queue.
[[nodiscard]] RemoteOptions remote_options(const QueueOptions& options);

// Returns a hash that distinguishes sets of policies.
[[nodiscard]] std::string policy_hash(const PolicySet& policies);

struct EnqueueReport {
  std::uint64_t added = 0;
  std::uint64_t present = 0;  // were in the queue before, with the same request
  // Why not all jobs were added. Empty: all were. Otherwise `added` and `present` count the lines
  // up to `line`. The lines behind it, up to `maybe_line`, may have been added or not.
  std::string problem;
  std::uint64_t line = 0;
  std::uint64_t maybe_line = 0;
  bool without_id = false;  // some lines have no id, and a second run would add them again
};

// A job of the input.
struct InputJob {
  std::uint64_t line = 0;
  std::string id;
  std::string key;  // empty: none
  std::optional<WallTime> not_before;
  std::string text;  // the request
};

// Adds the requests of an input to a queue.
class Enqueue {
 public:
  // Reads the input and compares it with the queue. Returns nullptr after problems in the input,
  // which it has reported. Adds nothing yet. Uses only the options of `batch` that concern the
  // input.
  static std::unique_ptr<Enqueue> open(const QueueOptions& options,
                                       const batch::BatchOptions& batch);

  // Adds the jobs. Ends early when `stopped` returns true.
  EnqueueReport add(const std::function<bool()>& stopped = [] { return false; });

 private:
  using Jobs = std::vector<InputJob>;

  Enqueue(QueueOptions options, batch::BatchOptions batch, std::unique_ptr<batch::Database> input);
  void each_job(const std::function<void(InputJob job)>& use) const;
  void each_batch(const std::function<bool(const Jobs& jobs)>& use) const;
  enum class Action : std::uint8_t { Compare, Add };
  [[nodiscard]] fleet::Command enqueue_command(const Jobs& jobs, Action action) const;
  bool add_batch(const Jobs& jobs, std::uint64_t present_before,
                 const std::function<bool()>& stopped, EnqueueReport& report);
  [[nodiscard]] bool check_files() const;
  bool compare();
  [[nodiscard]] bool check_ids_are_free(const Jobs& jobs, const fleet::Reply& reply) const;
  void report(const InputJob& job, Position at, std::string message) const;

  const QueueOptions options_;
  const batch::BatchOptions batch_;
  // The random beginning of the ids that lines without an id get. So they are new jobs in each run.
  const std::string prefix_;
  RemoteQueue remote_;
  std::unique_ptr<batch::Database> input_;
  std::vector<std::uint64_t> present_;  // by batch: how many of its jobs the queue had before
  bool without_id_ = false;
};

// Thrown if this worker was started without the policy of a job, or without the directory of its
// body. Other workers may have them.
struct UnfitWorker : batch::StoreError {
  using StoreError::StoreError;
};

// Prepares and judges the jobs of a queue as LineJobs does, and adds their leases to the requests.
class QueueJobs final : public batch::Jobs {
 public:
  QueueJobs(const QueueStore& store, batch::LineJobs& lines) : store_(store), lines_(lines) {}

  [[nodiscard]] std::variant<batch::Prepared, batch::JobEnd> prepare(
      const batch::Job& job) override;
  [[nodiscard]] batch::Verdict judge(const batch::Job& job, const batch::Prepared& sent,
                                     Outcome outcome) override {
    return lines_.judge(job, sent, std::move(outcome));
  }

 private:
  const QueueStore& store_;
  batch::LineJobs& lines_;
};

// Sends the jobs of a queue until it is stopped. Without RunnerOptions::until_stopped, it also ends
// when no job is left.
class Worker {
 public:
  // Ignores the options of `batch` for the input, the journal and the files of results. Its format
  // must be Auto, because the jobs of a queue come from several inputs. A missing queue is created
  // only with RunnerOptions::until_stopped.
  Worker(const QueueOptions& options, batch::BatchOptions batch, Duration lease);
  ~Worker() { store_.on_jobs(nullptr); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Blocks until the run ends, and returns why it did. Throws StoreError if results cannot be filed
  // within `grace` after that. Throws UnfitWorker.
  batch::RunEnd run();
  [[nodiscard]] batch::Runner& runner() { return runner_; }
  [[nodiscard]] QueueStore& store() { return store_; }
  // Stops the calls in flight, and does not wait for a server that is away. May be called from any
  // thread.
  void stop();

 private:
  const Duration grace_;
  QueueStore store_;
  batch::LineJobs lines_;
  QueueJobs jobs_;
  batch::Runner runner_;
};

struct QueueStatus : Totals {
  struct Worker {
    std::string name;
    std::uint64_t jobs = 0;
    Duration silent{};  // since the worker last contacted the server
  };
  std::string name;
  std::vector<Worker> workers;
};
[[nodiscard]] QueueStatus read_status(const QueueOptions& options);

enum class Lines : std::uint8_t { Results, Dead };
// Appends the lines that the file does not have yet. Returns their number.
std::uint64_t write_lines(const QueueOptions& options, Lines which, const std::string& path);
// Passes all lines to `print`, many at once, with their line ends. Returns their number.
std::uint64_t print_lines(const QueueOptions& options, Lines which,
                          const std::function<void(const std::string& lines)>& print);

// Returns the jobs that are unknown now as lines of an input, in the order of their line numbers.
[[nodiscard]] std::vector<std::string> read_unknown(const QueueOptions& options);
// Queues again all jobs that are unknown now. Returns their number.
std::uint64_t retry_unknown(const QueueOptions& options);

}  // namespace httpretry::queue
