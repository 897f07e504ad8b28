#include "queue.hpp"

#include "lib/core/base/random.hpp"
#include "lib/extras/batch/path_below.hpp"
#include "lib/extras/batch/text.hpp"

#include <algorithm>
#include <utility>

namespace httpretry::queue {
namespace {

// The most that one script adds, because the server does nothing else while a script runs.
constexpr std::size_t kMostJobs = 200;
constexpr std::size_t kMostBytes = 1024 * 1024;
// A reply to kEnqueue: jobs added, jobs already present, and the indexes of jobs whose ids are
// taken.
constexpr std::size_t kEnqueueReplySize = 3;
constexpr std::size_t kPresentIndex = 1;
constexpr std::size_t kTakenIndex = 2;

// Returns whether a reply to kEnqueue is about this many jobs.
bool is_about(std::size_t job_count, const fleet::Reply& reply) {
  const auto is_up_to = [](std::size_t most, std::int64_t number) {
    return number >= 0 && static_cast<std::uint64_t>(number) <= most;
  };
  return reply.list.size() == kEnqueueReplySize && is_up_to(job_count, reply.at(kPresentIndex)) &&
         std::ranges::all_of(reply.list[kTakenIndex].list, [&](const auto& index) {
           return is_up_to(job_count - 1, index.integer);
         });
}

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

// Passes all jobs of the input to `use`, in batches that are small enough for one command. Stops
// when `use` returns false. Makes the same batches each time, because compare() notes how many jobs
// of each batch the queue already has, and add() uses these numbers.
void Enqueue::each_batch(const std::function<bool(const Jobs& jobs)>& use) const {
  Jobs batch;
  std::size_t bytes = 0;
  bool wants_more = true;  // what `use` returned last
  const auto pass_on_batch = [&] {
    wants_more = use(batch);
    batch.clear();
    bytes = 0;
  };
  each_job([&](InputJob job) {
    if (!wants_more) return;  // each_job() itself continues to the end of the input
    bytes += job.text.size();
    batch.push_back(std::move(job));
    if (batch.size() >= kMostJobs || bytes >= kMostBytes) pass_on_batch();
  });
  if (!batch.empty()) pass_on_batch();  // the last one, which is not full
}

fleet::Command Enqueue::enqueue_command(const Jobs& jobs, Action action) const {
  std::vector<std::string> arguments{kNoConsumer, action == Action::Add ? "1" : "0"};
  for (const auto& job : jobs) {
    arguments.insert(arguments.end(), {job.id, std::to_string(job.line), job.key,
                                       ms_text(job.not_before), job.text});
  }
  return remote_.command(kEnqueue, std::move(arguments));
}

// Checks the paths of the files that the jobs name as their bodies ("body_file"). Workers read
// these files below a directory of their own, so a path such as "/etc/passwd" or "../body" is an
// error. Returns false after reporting such paths. If there are files and no errors, tells the user
// how to start workers for them.
bool Enqueue::check_files() const {
  bool all_paths_are_valid = true;
  std::uint64_t jobs_with_files = 0;
  each_job([&](const InputJob& job) {
    // Only such a line may name a file: with '\\', the name may be written as "body\u005ffile". The
    // others are not parsed, because that is slow.
    const bool may_name_file =
        job.text.find("body_file") != std::string::npos || job.text.find('\\') != std::string::npos;
    if (!may_name_file) return;
    const auto line = batch::stored_line(job.text, batch_.format);
    if (line.content != batch::RequestLine::Content::File) return;
    ++jobs_with_files;
    if (batch::is_plain_relative(line.body)) return;  // `body` is the path
    all_paths_are_valid = false;
    report(job, line.file_position,
           "must be a relative path without . and ..: workers read it below their --files DIR");
  });
  if (all_paths_are_valid && jobs_with_files > 0) {
    options_.tell(std::to_string(jobs_with_files) +
                  (jobs_with_files == 1 ? " job has" : " jobs have") +
                  " a body_file: only workers with --files DIR send that, and they read the file "
                  "below DIR");
  }
  return all_paths_are_valid;
}

// Compares all jobs of the input with the queue. Returns false, after reporting them, if jobs have
// an id that belongs to another request in the queue. Notes how many jobs of each batch the queue
// has already (`present_`), and whether any line has no id (`without_id_`). Throws StoreError if
// the server fails.
bool Enqueue::compare() {
  bool ids_are_free = true;
  each_batch([&](const auto& jobs) {
    const auto reply = remote_.must(enqueue_command(jobs, Action::Compare));
    if (!is_about(jobs.size(), reply)) throw remote_.error(unexpected_reply());
    ids_are_free = check_ids_are_free(jobs, reply) && ids_are_free;
    present_.push_back(static_cast<std::uint64_t>(reply.at(kPresentIndex)));
    // A job whose line has no id has one that begins with this random prefix.
    const auto has_made_id = [&](const auto& job) { return job.id.starts_with(prefix_); };
    without_id_ = without_id_ || std::ranges::any_of(jobs, has_made_id);
    return true;  // the next batch
  });
  return ids_are_free;
}

// Reports the jobs whose ids belong to other requests in the queue. Returns whether there are no
// such jobs. The third part of a reply to kEnqueue is the list of their indexes in `jobs`.
bool Enqueue::check_ids_are_free(const Jobs& jobs, const fleet::Reply& reply) const {
  for (const auto& other : reply.list[kTakenIndex].list) {
    const auto& job = jobs.at(static_cast<std::size_t>(other.integer));
    report(job, batch::stored_line(job.text, batch_.format).id_position,
           "the queue already has a different job with the id \"" + printable(job.id) +
               "\": each job needs its own id");
  }
  return reply.list[kTakenIndex].list.empty();
}

void Enqueue::report(const InputJob& job, Position at, std::string message) const {
  batch::report_problem(batch_, batch_.input, job.line, at.column, std::move(message));
}

// Checks the whole input, and compares it with the queue, before the first job is added, so that an
// error in the input leaves the queue unchanged. Returns nullptr after reporting such errors.
// Throws StoreError if the server fails.
std::unique_ptr<Enqueue> Enqueue::open(const QueueOptions& options,
                                       const batch::BatchOptions& batch) {
  auto input = batch::import_to_temporary(batch, batch::BodyFiles::Elsewhere);
  if (!input) return nullptr;
  std::unique_ptr<Enqueue> enqueue(new Enqueue(options, batch, std::move(input)));
  if (!enqueue->check_files()) return nullptr;
  const auto warning = enqueue->remote_.connect();
  if (!warning.empty()) options.tell(warning);  // for example, the server may delete keys
  enqueue->remote_.open_or_make(policy_hash(batch.policies));
  try {
    if (!enqueue->compare()) return nullptr;
  } catch (const batch::StoreError& error) {
    throw batch::StoreError(std::string(error.what()) + "; nothing was added");
  }
  return enqueue;
}

// Adds the jobs of the input to the queue, batch by batch, until one fails or `stopped` returns
// true. The report counts the jobs up to its `line`, and its `problem` is empty if these are all.
EnqueueReport Enqueue::add(const std::function<bool()>& stopped) {
  EnqueueReport report;
  report.without_id = without_id_;
  std::size_t batch_index = 0;
  // Returns false to end each_batch(). It makes the same batches as in compare(), which has noted
  // in present_ how many jobs of each batch the queue already had.
  each_batch([&](const auto& jobs) {
    if (stopped()) report.problem = "it was stopped";
    return report.problem.empty() && add_batch(jobs, present_[batch_index++], stopped, report);
  });
  return report;
}

// Adds one batch with the script kEnqueue, which adds all its jobs or none. If no reply arrives,
// repeats the command until options_.patience has passed or `stopped` returns true. Returns false
// if the batch was not added, or perhaps not, with the reason in `report.problem`. `present_before`
// is how many of its jobs the queue already had when compare() asked.
bool Enqueue::add_batch(const Jobs& jobs, std::uint64_t present_before,
                        const std::function<bool()>& stopped, EnqueueReport& report) {
  const auto command = enqueue_command(jobs, Action::Add);
  bool was_repeated = false;  // after a lost reply
  auto reply = remote_.ask_repeatedly(command, options_.patience, stopped, was_repeated);
  if (!reply.failed() && !is_about(jobs.size(), reply)) reply = unexpected_reply();
  if (reply.failed()) {
    report.problem = remote_.error(reply).what();
    if (reply.lost()) report.maybe_line = jobs.back().line;  // perhaps added up to this line
    return false;
  }
  if (!check_ids_are_free(jobs, reply)) {
    report.problem = "in the meantime, another program added a job with an id of this input";
    return false;
  }
  // A repeated command finds the jobs in the queue that it has added itself the first time, so the
  // number in its reply is of no use.
  const auto present =
      was_repeated ? present_before : static_cast<std::uint64_t>(reply.at(kPresentIndex));
  report.present += present;
  report.added += jobs.size() - present;
  report.maybe_line = report.line = jobs.back().line;
  return true;
}

}  // namespace httpretry::queue
