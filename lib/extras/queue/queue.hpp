// A queue of jobs on a Redis server, which any number of workers send: `httpretry batch --enqueue`
// and `httpretry work`. README.md here says what is promised.
//
// Errors are thrown as batch::StoreError.
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
  fleet::Address address;  // with the name of the queue as its job
  bool force = false;      // also on a server that may delete keys
  // The directory below which a worker reads the files that jobs name as their bodies. Empty: it
  // sends no such jobs.
  std::string files;
  // How long jobs are added to a server that does not respond.
  Duration patience = std::chrono::seconds(30);
  // Warnings; on any thread.
  std::function<void(const std::string&)> tell = [](const std::string& /*text*/) {};
};

// "redis://host/0?job=NAME". Errc::InvalidRequest where it is none.
[[nodiscard]] Result<fleet::Address> parse_queue(std::string_view url);

// Returns the options of a connection to the queue.
[[nodiscard]] RemoteOptions remote_options(const QueueOptions& options);

// To tell one set of policies from another.
[[nodiscard]] std::string policy_hash(const PolicySet& policies);

struct EnqueueReport {
  std::uint64_t added = 0;
  std::uint64_t present = 0;  // were there, with the same request
  // Why not all were added; empty: they were. Then `added` and `present` are those of the lines up
  // to `line`, and the lines behind it, up to `maybe_line`, may have been added.
  std::string problem;
  std::uint64_t line = 0;
  std::uint64_t maybe_line = 0;
  bool without_id = false;  // some lines have no id: they would be added a second time
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
  // Reads the input, and compares it with the queue. nullptr after problems, which were told; then
  // nothing is added. Of `batch`, it uses what is about the input.
  static std::unique_ptr<Enqueue> open(const QueueOptions& options,
                                       const batch::BatchOptions& batch);

  // Ends early when `stopped` becomes true.
  EnqueueReport add(const std::function<bool()>& stopped = [] { return false; });

 private:
  using Jobs = std::vector<InputJob>;

  Enqueue(QueueOptions options, batch::BatchOptions batch, std::unique_ptr<batch::Database> input);
  void each_job(const std::function<void(InputJob job)>& use) const;
  void each_batch(const std::function<bool(const Jobs& jobs)>& use) const;
  [[nodiscard]] fleet::Command enqueue_command(const Jobs& jobs, bool add) const;
  [[nodiscard]] bool check_files() const;
  bool compare();
  [[nodiscard]] bool tell_others(const Jobs& jobs, const fleet::Reply& reply) const;
  void tell(const InputJob& job, Position at, std::string message) const;

  const QueueOptions options_;
  const batch::BatchOptions batch_;
  // Begins the ids of lines that have none: each time they are new jobs.
  const std::string prefix_;
  RemoteQueue remote_;
  std::unique_ptr<batch::Database> input_;
  std::vector<std::uint64_t> present_;  // how many of each batch were there
  bool without_id_ = false;
};

// A job needs what this worker was started without: its policy, or the directory of its body. Other
// workers may have it.
struct UnfitWorker : batch::StoreError {
  using StoreError::StoreError;
};

// The jobs of a queue as LineJobs has them, each with its lease.
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

// Sends the jobs of a queue, until it is stopped, or until none is left
// (RunnerOptions::until_stopped).
class Worker {
 public:
  // Ignores the options of `batch` for the input, the journal and the files of results. Its format
  // must be Auto, because the jobs of a queue come from several inputs. A missing queue is created
  // only with RunnerOptions::until_stopped.
  Worker(const QueueOptions& options, batch::BatchOptions batch, Duration lease);
  ~Worker() { store_.on_jobs(nullptr); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Where results cannot be filed for `grace` after its end: throws. Throws UnfitWorker, too.
  batch::RunEnd run();
  [[nodiscard]] batch::Runner& runner() { return runner_; }
  [[nodiscard]] QueueStore& store() { return store_; }
  // From any thread. Stops what is under way, and does not wait for a server that is away.
  void stop();

 private:
  const Duration grace_;
  QueueStore store_;
  batch::LineJobs lines_;
  QueueJobs jobs_;
  batch::Runner runner_;
};

struct QueueStatus : News {
  struct Worker {
    std::string name;
    std::uint64_t jobs = 0;
    Duration silent{};
  };
  std::string name;
  std::vector<Worker> workers;
};
[[nodiscard]] QueueStatus read_status(const QueueOptions& options);

enum class Lines : std::uint8_t { Results, Dead };
// Appends to the file the lines that it does not have yet. Returns how many.
std::uint64_t write_lines(const QueueOptions& options, Lines which, const std::string& path);
// Prints them all; `print` gets many at once, with their line ends. Returns how many.
std::uint64_t print_lines(const QueueOptions& options, Lines which,
                          const std::function<void(const std::string& lines)>& print);

// The jobs that are unknown now, as lines of an input, in its order.
[[nodiscard]] std::vector<std::string> read_unknown(const QueueOptions& options);
// Queues the jobs again that are unknown now. Returns how many.
std::uint64_t retry_unknown(const QueueOptions& options);

}  // namespace httpretry::queue
