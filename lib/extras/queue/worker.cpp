#include "queue.hpp"

#include "lib/extras/batch/bodies.hpp"
#include "lib/extras/batch/path_below.hpp"
#include "lib/extras/batch/text.hpp"

#include <httpretry/http/headers.hpp>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace httpretry::queue {
namespace {

constexpr std::size_t kMostIdsInMessage = 10;
// A job is dead after it was given to workers this many times and none has filed its result.
constexpr std::int64_t kMostDeliveries = 5;

// Throws StoreError if the worker could not read the files of bodies.
void check_files(const std::string& directory) {
  if (directory.empty() || ::access((directory + "/.").c_str(), R_OK | X_OK) == 0) return;
  throw batch::StoreError("cannot read the directory of --files, " + printable(directory) + ": " +
                          std::generic_category().message(errno));
}

// Returns "the results of 2 jobs (a, b) could not be recorded in the queue: …".
std::string describe_unfiled(const std::vector<std::string>& ids) {
  std::string names;
  for (std::size_t i = 0; i < std::min(ids.size(), kMostIdsInMessage); ++i) {
    names += (i > 0 ? ", " : "") + printable(ids[i]);
  }
  if (ids.size() > kMostIdsInMessage) names += ", …";
  const bool single = ids.size() == 1;
  return "the results of " + std::to_string(ids.size()) + (single ? " job (" : " jobs (") + names +
         ") could not be recorded in the queue: other workers take " + (single ? "it" : "them") +
         " over when the leases end";
}

StoreOptions store_options(const QueueOptions& options, const batch::BatchOptions& batch,
                           Duration lease) {
  batch::check_directory(batch.directory);
  check_files(options.files);
  StoreOptions store;
  store.remote = remote_options(options);
  store.parallel = batch.runner.parallel;
  store.lease = lease;
  store.policy = policy_hash(batch.policies);
  store.drain = !batch.runner.until_stopped;
  store.tell = options.tell;
  return store;
}

// Ends this worker because it was started without something that the job needs.
[[noreturn]] void refuse(const batch::Job& job, const std::string& why) {
  throw UnfitWorker("this worker cannot send the job \"" + printable(job.id) + "\": " + why);
}

// Returns the settings with which LineJobs prepares and judges the jobs of a queue: the token that
// marks a result as one of this queue, the server's clock, the line numbers of jobs, what to do
// about a missing policy, and where the files of request bodies are (`files`, the directory of
// --files, or empty). The result refers to `store`.
batch::LineJobsStore lines_store(const QueueStore& store, const std::string& files) {
  batch::LineJobsStore lines;
  lines.token = store.token();
  lines.line_of = [&store](const batch::Job& job) { return store.taken(job).line; };
  lines.date_now = [&store] { return store.date(); };
  // The program that added the line had the policy, and other workers may have it. So refuse() ends
  // this worker by an exception, and the job stays in the queue.
  lines.on_missing_policy = [](const batch::Job& job, const std::string& why) {
    refuse(job, why + ". Start it with the policies that the job was added with");
  };
  // Returns the path of a file that a job names, or an error if it is not below `files`. Without
  // this check, anyone who can write to the server could read any file of this machine.
  lines.body_file = [files](const batch::Job& job, const std::string& path) {
    if (files.empty()) {
      refuse(job, "its body is in a file. Start it with --files DIR, the directory of these files");
    }
    return batch::path_below(files, path);
  };
  return lines;
}

ClientOptions client_options(batch::BatchOptions& batch) {
  auto client = std::move(batch.client);
  client.policies = batch.policies;
  client.attempt_middlewares.push_back(leased_sends());
  return client;
}

}  // namespace

// Returns the request of a job with its lease, or the end of a job that must not be sent. A job
// that has ended too many workers is dead.
std::variant<batch::Prepared, batch::JobEnd> QueueJobs::prepare(const batch::Job& job) {
  const auto taken = store_.taken(job);
  if (taken.deliveries > kMostDeliveries) {
    return lines_.give_up(
        job, "poison",
        std::to_string(kMostDeliveries) + " workers took it, and none of them reported a result");
  }
  auto prepared = lines_.prepare(job);
  if (auto* const sent = std::get_if<batch::Prepared>(&prepared)) {
    sent->request.edit_options().context.set(LeaseOfCall{taken.lease});
  }
  return prepared;
}

Worker::Worker(const QueueOptions& options, batch::BatchOptions batch, Duration lease)
    : grace_(batch.runner.grace),
      store_(store_options(options, batch, lease)),
      lines_(batch, lines_store(store_, options.files)),
      jobs_(store_, lines_),
      runner_(client_options(batch), store_, jobs_, std::move(batch.runner)) {
  store_.on_jobs([this] { runner_.look_again(); });
}

// Sends jobs until the run ends, and returns why it ended. Closes the store in any case, so that
// results are filed. Throws StoreError if some could not be filed, unless the run itself threw an
// exception, which takes precedence.
batch::RunEnd Worker::run() {
  const auto end = [this] {
    try {
      return runner_.run();
    } catch (...) {
      static_cast<void>(store_.close(grace_));
      throw;
    }
  }();
  const auto unfiled_ids = store_.close(grace_);
  if (!unfiled_ids.empty()) throw batch::StoreError(describe_unfiled(unfiled_ids));
  return end;
}

void Worker::stop() {
  runner_.stop();
  store_.hurry();
}

}  // namespace httpretry::queue
