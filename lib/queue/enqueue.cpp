#include "queue.hpp"
#include "remote_queue.hpp"

#include "lib/batch/batch_options.hpp"
#include "lib/batch/input_jobs.hpp"
#include "lib/batch/path_below.hpp"
#include "lib/http/random.hpp"

#include <algorithm>
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

// Calls `use` with the jobs of an input, many at once and each time with the same ones. Ends where
// it returns false.
void each_batch(const batch::InputJobs& input, const std::string& prefix,
                const std::function<bool(const std::vector<InputJob>& jobs)>& use) {
  std::vector<InputJob> jobs;
  std::size_t bytes = 0;
  bool goes_on = true;
  const auto end_batch = [&] {
    goes_on = goes_on && use(jobs);
    jobs.clear();
    bytes = 0;
  };
  input.each([&](InputJob job) {
    if (!goes_on) return;
    if (job.id.empty()) job.id = prefix + std::to_string(job.line);
    if (job.key_is_made) job.key = random_hex(16);
    bytes += job.text.size();
    jobs.push_back(std::move(job));
    if (jobs.size() >= kMostJobs || bytes >= kMostBytes) end_batch();
  });
  if (!jobs.empty()) end_batch();
}

}  // namespace

struct Enqueue::Parts {
  Parts(const QueueOptions& options, const batch::JournalSource& its_source)
      : patience(options.patience), source(its_source), remote([&options] {
          RemoteOptions its;
          its.address = options.address;
          its.force = options.force;
          return its;
        }()) {}

  [[nodiscard]] fleet::Command command(const std::vector<InputJob>& jobs, bool add) const {
    std::vector<std::string> arguments{"", add ? "1" : "0"};
    for (const auto& job : jobs) {
      arguments.insert(arguments.end(), {job.id, std::to_string(job.line), job.key,
                                         ms_text(job.not_before), job.text});
    }
    return remote.command(kEnqueue, std::move(arguments));
  }
  // Returns false, after a message for each, if the path of a body leads out of a directory:
  // workers look for it below their own.
  [[nodiscard]] bool check_files(const QueueOptions& options) const {
    bool good = true;
    std::uint64_t with_files = 0;
    input->each([&](const InputJob& job) {
      // Most have none: neither by this name nor by one with an escape.
      if (job.text.find("body_file") == std::string::npos &&
          job.text.find('\\') == std::string::npos)
        return;
      const auto line = read_line(job);
      if (line.content != batch::RequestLine::Content::File) return;
      ++with_files;
      if (batch::is_plain_relative(line.body)) return;
      good = false;
      tell(job, line.file_position,
           "must be a relative path without . and ..: workers read it below their --files DIR");
    });
    if (good && with_files > 0) {
      options.tell(std::to_string(with_files) + (with_files == 1 ? " job has" : " jobs have") +
                   " a body_file: only workers with --files DIR send that, and they read the file "
                   "below DIR");
    }
    return good;
  }
  // False: some ids are those of other requests, which was told.
  bool compare() {
    bool good = true;
    each_batch(*input, prefix, [&](const auto& jobs) {
      const auto reply = remote.must(command(jobs, false));
      if (reply.list.size() != 3) throw remote.error(odd_reply());
      good = tell_others(jobs, reply) && good;
      present.push_back(static_cast<std::uint64_t>(reply.at(1)));
      without_id = without_id || std::ranges::any_of(jobs, [&](const auto& job) {
                     return job.id.starts_with(prefix);
                   });
      return true;
    });
    return good;
  }
  bool tell_others(const std::vector<InputJob>& jobs, const fleet::Reply& reply) const {
    for (const auto& other : reply.list[2].list) {
      const auto& job = jobs.at(static_cast<std::size_t>(other.integer));
      tell(job, read_line(job).id_position,
           "the queue has a job with the id \"" + printable(job.id) +
               "\" already, which is another request: each job needs an id of its own");
    }
    return reply.list[2].list.empty();
  }
  [[nodiscard]] batch::RequestLine read_line(const InputJob& job) const {
    batch::RequestLine line;
    Problems problems("");
    batch::read_request_line(job.text, source.import.format, line, problems);
    return line;
  }
  void tell(const InputJob& job, Position at, std::string message) const {
    Problem problem;
    problem.file = source.import.input;
    problem.line = static_cast<int>(job.line);
    problem.column = at.column;
    problem.message = std::move(message);
    source.import.tell(problem);
  }

  const Duration patience;
  const batch::JournalSource source;
  // Of the ids of lines that have none: each time they are new jobs.
  const std::string prefix = random_hex(4) + "-";
  RemoteQueue remote;
  std::unique_ptr<batch::InputJobs> input;
  std::vector<std::uint64_t> present;  // how many of each batch were there
  bool without_id = false;
};

Enqueue::Enqueue(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Enqueue::~Enqueue() = default;

std::unique_ptr<Enqueue> Enqueue::open(const QueueOptions& options,
                                       const batch::BatchOptions& batch) {
  const auto source = batch::source_of(batch);
  batch::LinePolicies policies(batch.policies);
  auto input = batch::InputJobs::read(source, policies);
  if (!input) return nullptr;
  auto parts = std::make_unique<Parts>(options, source);
  parts->input = std::move(input);
  if (!parts->check_files(options)) return nullptr;
  const auto warning = parts->remote.connect();
  if (!warning.empty()) options.tell(warning);
  parts->remote.open_or_make(policy_hash(batch.policies));
  try {
    if (!parts->compare()) return nullptr;
  } catch (const batch::StoreError& error) {
    throw batch::StoreError(std::string(error.what()) + "; nothing was added");
  }
  return std::unique_ptr<Enqueue>(new Enqueue(std::move(parts)));
}

EnqueueReport Enqueue::add(const std::function<bool()>& stopped) {
  auto& remote = parts_->remote;
  EnqueueReport report;
  report.without_id = parts_->without_id;
  std::size_t number = 0;
  each_batch(*parts_->input, parts_->prefix, [&](const auto& jobs) {
    report.maybe_line = report.line;
    if (stopped()) report.problem = "it was stopped";
    if (!report.problem.empty()) return false;
    const auto command = parts_->command(jobs, true);
    bool again = false;
    auto reply = remote.insist(command, parts_->patience, stopped, again);
    if (!reply.failed() && reply.list.size() != 3) reply = odd_reply();
    if (reply.failed()) {
      report.problem = remote.error(reply).what();
      if (reply.lost()) report.maybe_line = jobs.back().line;
      return false;
    }
    if (!parts_->tell_others(jobs, reply)) {
      report.problem = "another program added a job with an id of this input meanwhile";
      return false;
    }
    // The first time, it may have been carried out.
    const auto there = again ? parts_->present[number] : static_cast<std::uint64_t>(reply.at(1));
    ++number;
    report.present += there;
    report.added += jobs.size() - there;
    report.maybe_line = report.line = jobs.back().line;
    return true;
  });
  return report;
}

}  // namespace httpretry::queue
