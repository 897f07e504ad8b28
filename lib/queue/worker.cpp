#include "queue.hpp"
#include "queue_jobs.hpp"

#include "lib/batch/batch_options.hpp"
#include "lib/batch/text.hpp"

#include <utility>

namespace httpretry::queue {
namespace {

StoreOptions store_options(const QueueOptions& options, const batch::BatchOptions& batch,
                           Duration lease) {
  StoreOptions store;
  store.remote.address = options.address;
  store.remote.force = options.force;
  store.parallel = batch.runner.parallel;
  store.lease = lease;
  store.policy = policy_hash(batch.policies);
  store.tell = options.tell;
  return store;
}

batch::LineJobsOptions lines_options(const batch::BatchOptions& batch, const QueueStore& store) {
  auto lines = batch::line_jobs_options(batch, store.token());
  // Whatever was added: jobs of the queue come from inputs of any format.
  lines.format = batch::LineFormat::Auto;
  lines.date_now = [&store] { return store.date(); };
  return lines;
}

ClientOptions client_options(batch::BatchOptions& batch) {
  auto client = std::move(batch.client);
  client.policies = batch.policies;
  client.middlewares.push_back(leased_sends());
  return client;
}

}  // namespace

struct Worker::Parts {
  Parts(const QueueOptions& options, batch::BatchOptions batch, Duration lease)
      : grace(batch.runner.grace),
        store(store_options(options, batch, lease)),
        lines(batch::LinePolicies(batch.policies), lines_options(batch, store)),
        jobs(store, lines),
        runner(client_options(batch), store, jobs, std::move(batch.runner)) {
    store.on_jobs([this] { runner.look_again(); });
  }
  ~Parts() { store.on_jobs(nullptr); }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  const Duration grace;
  QueueStore store;
  batch::LineJobs lines;
  QueueJobs jobs;
  batch::Runner runner;
};

Worker::Worker(QueueOptions options, batch::BatchOptions batch, Duration lease)
    : parts_(std::make_unique<Parts>(options, std::move(batch), lease)) {}
Worker::~Worker() = default;

batch::RunEnd Worker::run() {
  const auto end = [this] {
    try {
      return parts_->runner.run();
    } catch (...) {
      static_cast<void>(parts_->store.close(parts_->grace));
      throw;
    }
  }();
  const auto left = parts_->store.close(parts_->grace);
  if (left == 0) return end;
  throw batch::StoreError(
      "what became of " + std::to_string(left) +
      " jobs could not be told to the queue: other workers take them over when their leases end");
}

batch::Runner& Worker::runner() { return parts_->runner; }
batch::Counts Worker::counts() const { return parts_->store.counts(); }
std::optional<Duration> Worker::next_due() { return parts_->store.next_due(); }
std::uint64_t Worker::late() const { return parts_->store.late(); }

}  // namespace httpretry::queue
