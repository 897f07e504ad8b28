#include "queue.hpp"

#include "lib/core/base/random.hpp"
#include "lib/extras/batch/path_below.hpp"
#include "lib/extras/batch/text.hpp"

#include <algorithm>
#include <utility>

namespace httpretry::queue {
namespace {

// The most that one script adds, because the server does nothing else while it runs.
constexpr std::size_t kMostJobs = 200;
constexpr std::size_t kMostBytes = 1024 * 1024;

std::string ms_text(const std::optional<WallTime>& time) {
  return time ? std::to_string(batch::ms_of(*time)) : "0";
}

}  // namespace

Enqueue::Enqueue(QueueOptions options, batch::BatchOptions batch,
                 std::unique_ptr<batch::Database> input)
    : options_(std::move(options)),
      batch_(std::move(batch)),
      prefix_(random_hex(4) + "-"),
      remote_(remote_options(options_)),
      input_(std::move(input)) {}

// Calls `use` with each job, in the order of the input.
void Enqueue::each_job(const std::function<void(InputJob job)>& use) const {
  auto row = input_->prepare(
      "SELECT line, id, key, input, until FROM job LEFT JOIN state USING(line) ORDER BY line");
  while (row.step()) {
    InputJob job;
    job.line = static_cast<std::uint64_t>(row.number(0));
    job.id = row.is_null(1) ? prefix_ + std::to_string(job.line) : std::string(row.text(1));
    job.key = row.is_number(2) ? random_hex(16) : std::string(row.text(2));
    job.text = row.text(3);
    if (!row.is_null(4)) job.not_before = WallTime(std::chrono::milliseconds(row.number(4)));
    use(std::move(job));
  }
}

// Calls `use` with the jobs in batches, until it returns false. The batches are the same each time.
void Enqueue::each_batch(const std::function<bool(const Jobs& jobs)>& use) const {
  Jobs jobs;
  std::size_t bytes = 0;
  bool goes_on = true;
  const auto end_batch = [&] {
    goes_on = goes_on && use(jobs);
    jobs.clear();
    bytes = 0;
  };
  each_job([&](InputJob job) {
    if (!goes_on) return;
    bytes += job.text.size();
    jobs.push_back(std::move(job));
    if (jobs.size() >= kMostJobs || bytes >= kMostBytes) end_batch();
  });
  if (!jobs.empty()) end_batch();
}

fleet::Command Enqueue::enqueue_command(const Jobs& jobs, bool add) const {
  std::vector<std::string> arguments{"", add ? "1" : "0"};
  for (const auto& job : jobs) {
    arguments.insert(arguments.end(), {job.id, std::to_string(job.line), job.key,
                                       ms_text(job.not_before), job.text});
  }
  return remote_.command(kEnqueue, std::move(arguments));
}

// Returns whether the paths of all body files stay below a directory, because workers read them
// below their own directory. Reports those that do not.
bool Enqueue::check_files() const {
  bool good = true;
  std::uint64_t with_files = 0;
  each_job([&](const InputJob& job) {
    // Skips the slow parser for a line that cannot have a "body_file", even with an escape in it.
    if (job.text.find("body_file") == std::string::npos && job.text.find('\\') == std::string::npos)
      return;
    const auto line = batch::stored_line(job.text, batch_.format);
    if (line.content != batch::RequestLine::Content::File) return;
    ++with_files;
    if (batch::is_plain_relative(line.body)) return;
    good = false;
    report(job, line.file_position,
           "must be a relative path without . and ..: workers read it below their --files DIR");
  });
  if (good && with_files > 0) {
    options_.tell(std::to_string(with_files) + (with_files == 1 ? " job has" : " jobs have") +
                  " a body_file: only workers with --files DIR send that, and they read the file "
                  "below DIR");
  }
  return good;
}

// Compares all jobs with the queue. Returns whether no id belongs to another request there. Reports
// those that do.
bool Enqueue::compare() {
  bool good = true;
  each_batch([&](const auto& jobs) {
    const auto reply = remote_.must(enqueue_command(jobs, false));
    if (reply.list.size() != 3) throw remote_.error(unexpected_reply());
    good = report_taken_ids(jobs, reply) && good;
    present_.push_back(static_cast<std::uint64_t>(reply.at(1)));
    without_id_ = without_id_ || std::ranges::any_of(jobs, [&](const auto& job) {
                    return job.id.starts_with(prefix_);
                  });
    return true;
  });
  return good;
}

// Reports the jobs whose ids belong to other requests, by a reply to kEnqueue. Returns whether
// there are no such jobs.
bool Enqueue::report_taken_ids(const Jobs& jobs, const fleet::Reply& reply) const {
  for (const auto& other : reply.list[2].list) {
    const auto& job = jobs.at(static_cast<std::size_t>(other.integer));
    report(job, batch::stored_line(job.text, batch_.format).id_position,
           "the queue has a job with the id \"" + printable(job.id) +
               "\" already, which is another request: each job needs an id of its own");
  }
  return reply.list[2].list.empty();
}

void Enqueue::report(const InputJob& job, Position at, std::string message) const {
  batch::report_problem(batch_, batch_.input, job.line, at.column, std::move(message));
}

std::unique_ptr<Enqueue> Enqueue::open(const QueueOptions& options,
                                       const batch::BatchOptions& batch) {
  auto input = batch::import_to_temporary(batch);
  if (!input) return nullptr;
  std::unique_ptr<Enqueue> its(new Enqueue(options, batch, std::move(input)));
  if (!its->check_files()) return nullptr;
  const auto warning = its->remote_.connect();
  if (!warning.empty()) options.tell(warning);
  its->remote_.open_or_make(policy_hash(batch.policies));
  try {
    if (!its->compare()) return nullptr;
  } catch (const batch::StoreError& error) {
    throw batch::StoreError(std::string(error.what()) + "; nothing was added");
  }
  return its;
}

EnqueueReport Enqueue::add(const std::function<bool()>& stopped) {
  EnqueueReport report;
  report.without_id = without_id_;
  std::size_t number = 0;
  each_batch([&](const auto& jobs) {
    report.maybe_line = report.line;
    if (stopped()) report.problem = "it was stopped";
    if (!report.problem.empty()) return false;
    const auto command = enqueue_command(jobs, true);
    bool again = false;
    auto reply = remote_.ask_repeatedly(command, options_.patience, stopped, again);
    if (!reply.failed() && reply.list.size() != 3) reply = unexpected_reply();
    if (reply.failed()) {
      report.problem = remote_.error(reply).what();
      if (reply.lost()) report.maybe_line = jobs.back().line;
      return false;
    }
    if (!report_taken_ids(jobs, reply)) {
      report.problem = "another program added a job with an id of this input meanwhile";
      return false;
    }
    // If the command was repeated, the first one may have been carried out, so this reply may count
    // jobs as present that this program has added.
    const auto there = again ? present_[number] : static_cast<std::uint64_t>(reply.at(1));
    ++number;
    report.present += there;
    report.added += jobs.size() - there;
    report.maybe_line = report.line = jobs.back().line;
    return true;
  });
  return report;
}

}  // namespace httpretry::queue
