#include "queue.hpp"
#include "remote_queue.hpp"

#include "lib/batch/batch_options.hpp"
#include "lib/batch/input_jobs.hpp"
#include "lib/http/random.hpp"

#include <utility>

namespace httpretry::queue {
namespace {

using batch::InputJob;

// The most in one script: the server does nothing else meanwhile.
constexpr std::size_t kMostJobs = 200;
constexpr std::size_t kMostBytes = 1024 * 1024;

std::string ms_text(const std::optional<WallTime>& time) {
  if (!time) return "0";
  const auto ms = std::chrono::floor<std::chrono::milliseconds>(*time).time_since_epoch().count();
  return std::to_string(ms);
}

// Sends jobs to the server, many at once.
class Batches {
 public:
  Batches(RemoteQueue& remote, const batch::JournalSource& source, bool add)
      : remote_(remote), source_(source), add_(add) {}

  void operator()(InputJob job) {
    if (job.id.empty()) job.id = prefix_ + std::to_string(job.line);
    if (job.key_is_made) job.key = random_hex(16);
    bytes_ += job.text.size();
    jobs_.push_back(std::move(job));
    if (jobs_.size() >= kMostJobs || bytes_ >= kMostBytes) send();
  }
  void send() {
    if (jobs_.empty()) return;
    std::vector<std::string> arguments{"", add_ ? "1" : "0"};
    for (const auto& job : jobs_) {
      arguments.insert(arguments.end(), {job.id, std::to_string(job.line), job.key,
                                         ms_text(job.not_before), job.text});
    }
    const auto reply = remote_.must(kEnqueue, std::move(arguments));
    if (reply.list.size() == 3) {
      for (const auto& other : reply.list[2].list) {
        tell(jobs_.at(static_cast<std::size_t>(other.integer)));
      }
      const bool refused = !reply.list[2].list.empty();
      report_.good = report_.good && !refused;
      report_.added += refused ? 0 : static_cast<std::uint64_t>(reply.at(0));
      report_.present += static_cast<std::uint64_t>(reply.at(1));
    }
    jobs_.clear();
    bytes_ = 0;
  }
  [[nodiscard]] const EnqueueReport& report() const { return report_; }

 private:
  void tell(const InputJob& job) const {
    batch::RequestLine line;
    Problems problems("");
    batch::read_request_line(job.text, source_.import.format, line, problems);
    Problem problem;
    problem.file = source_.import.input;
    problem.line = static_cast<int>(job.line);
    problem.column = line.id_position.column;
    problem.message = "the queue has a job with the id \"" + printable(job.id) +
                      "\" already, which is another request: each job needs an id of its own";
    source_.import.tell(problem);
  }

  RemoteQueue& remote_;
  const batch::JournalSource& source_;
  const bool add_;
  // Of the ids of lines that have none: each time they are new jobs.
  const std::string prefix_ = random_hex(4) + "-";
  std::vector<InputJob> jobs_;
  std::size_t bytes_ = 0;
  EnqueueReport report_{true};
};

EnqueueReport run(RemoteQueue& remote, const batch::JournalSource& source,
                  const batch::InputJobs& jobs, bool add) {
  Batches batches(remote, source, add);
  jobs.each([&](InputJob job) { batches(std::move(job)); });
  batches.send();
  return batches.report();
}

}  // namespace

EnqueueReport enqueue(const QueueOptions& options, const batch::BatchOptions& batch) {
  const auto source = batch::source_of(batch);
  batch::LinePolicies policies(batch.policies);
  const auto jobs = batch::InputJobs::read(source, policies);
  if (!jobs) return {};
  RemoteOptions its;
  its.address = options.address;
  its.force = options.force;
  RemoteQueue remote(std::move(its));
  const auto warning = remote.connect();
  if (!warning.empty()) options.tell(warning);
  remote.open(true, policy_hash(batch.policies));
  const auto compared = run(remote, source, *jobs, false);
  return compared.good ? run(remote, source, *jobs, true) : EnqueueReport();
}

}  // namespace httpretry::queue
