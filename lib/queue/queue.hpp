// A queue of jobs on a Redis server, which any number of workers send: `httpretry batch --enqueue`
// and `httpretry work`. README.md here says what is promised.
//
// Errors are thrown as batch::StoreError.
#pragma once

#include "lib/fleet/address.hpp"

#include <httpretry/batch/batch.hpp>

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
  // Warnings; on any thread.
  std::function<void(const std::string&)> tell = [](const std::string& /*text*/) {};
};

// "redis://host/0?job=NAME". Errc::InvalidRequest where it is none.
[[nodiscard]] Result<fleet::Address> parse_queue(std::string_view url);

// To tell one set of policies from another.
[[nodiscard]] std::string policy_hash(const PolicySet& policies);

struct EnqueueReport {
  bool good = false;  // else there were problems
  std::uint64_t added = 0;
  std::uint64_t present = 0;  // were there, with the same request
};
// Of `batch`, it uses what is about the input.
[[nodiscard]] EnqueueReport enqueue(const QueueOptions& options, const batch::BatchOptions& batch);

// Sends the jobs of a queue, until it is stopped, or until none is left
// (RunnerOptions::until_stopped).
class Worker {
 public:
  // Of `batch`, it uses what is not about input, journal and files of results.
  Worker(QueueOptions options, batch::BatchOptions batch, Duration lease);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Where results cannot be filed for `grace` after its end: throws.
  batch::RunEnd run();
  [[nodiscard]] batch::Runner& runner();
  // Of the whole queue.
  [[nodiscard]] batch::Counts counts() const;
  [[nodiscard]] std::optional<Duration> next_due();
  // How many results came too late: other workers had taken these jobs over.
  [[nodiscard]] std::uint64_t late() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

struct QueueStatus {
  struct Worker {
    std::string name;
    std::uint64_t jobs = 0;
    Duration silent{};
  };
  std::string name;
  batch::Counts counts;
  std::uint64_t late = 0;
  std::uint64_t poison = 0;
  std::optional<Duration> next_due;
  std::vector<Worker> workers;
};
[[nodiscard]] QueueStatus read_status(const QueueOptions& options);

enum class Lines : std::uint8_t { Results, Dead };
// Appends to the file the lines that it does not have yet. Returns how many.
std::uint64_t write_lines(const QueueOptions& options, Lines which, const std::string& path);

}  // namespace httpretry::queue
