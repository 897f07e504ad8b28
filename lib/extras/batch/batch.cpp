#include <httpretry/batch/batch.hpp>

#include "bodies.hpp"
#include "journal.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

namespace httpretry::batch {
namespace {

std::string absolute(const std::string& path) {
  return path.empty() ? path : std::filesystem::absolute(path).lexically_normal().string();
}

// The words of --input-format, by the number of the InputFormat.
constexpr std::array<std::string_view, 3> kFormatNames{"auto", "jsonl", "urls"};

// Compares the options of this run with those of the earlier runs on the same journal. Throws
// StoreError unless the format of the input and the paths of the results and the dead letters are
// the same. If the results of a batch were in two files, neither file would be complete.
void check_options_match_earlier_runs(const Database& database, const BatchOptions& options) {
  const auto first_format = static_cast<std::size_t>(read_meta_number(database, "format"));
  if (first_format != static_cast<std::size_t>(options.format)) {
    throw StoreError(options.journal + ": its input was read as " +
                     std::string(kFormatNames.at(first_format)) +
                     ": use this --input-format again, or start over with --fresh");
  }
  // The states 2 and 3 are StoredState::Done and Dead. Only jobs in these states have a line in the
  // results or the dead letters.
  const bool any_job_ended =
      database.number("SELECT EXISTS (SELECT 1 FROM state WHERE state IN (2, 3))") != 0;
  // The journal has the path of each file under `name`; an empty path means that there is no file.
  for (const auto& [name, path] :
       {std::pair<const char*, const std::string&>("results", options.results),
        {"dead", options.dead}}) {
    const auto earlier_path = read_meta_text(database, name);
    // While no job has ended, a file that is added now still gets all lines.
    const bool may_add_file = earlier_path.empty() && !any_job_ended;
    if (earlier_path == path || may_add_file) continue;
    if (earlier_path.empty()) {
      throw StoreError(options.journal + " was run without " + name +
                       ": leave them out again, or start over with --fresh");
    }
    throw StoreError(options.journal + ": its " + name + " are in " + earlier_path +
                     ": use this file again, or start over with --fresh");
  }
}

// Returns whether two paths lead to the same regular file. Devices and pipes do not count, because
// writing to them destroys nothing.
bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  const bool exists = std::filesystem::exists(a, ignored);
  if (exists && !std::filesystem::is_regular_file(a, ignored)) return false;
  return absolute(a) == absolute(b) || std::filesystem::equivalent(a, b, ignored);
}

// The purposes of files and their paths.
using Files = std::vector<std::pair<std::string, std::string>>;

// Returns the four files of a batch itself.
Files files_of(const BatchOptions& options) {
  return {{"input", options.input},
          {"journal", options.journal},
          {"results", options.results},
          {"dead letters", options.dead}};
}

// Throws std::invalid_argument if the path of the journal, the results or the dead letters is "-"
// (standard output), because a later run could not continue that.
void refuse_standard_output(const BatchOptions& options) {
  for (const auto& [purpose, path] : files_of(options)) {
    if (path != "-" || purpose == "input") continue;  // for the input, "-" is standard input
    throw std::invalid_argument("expected a file for the " + purpose +
                                ", not standard output: a later run continues it");
  }
}

// Throws std::invalid_argument if the path of one of the batch's four files is also that of another
// of them, or of one of the `other_files`, such as the file for metrics: the data of one purpose
// would overwrite that of the other. The `other_files` are not compared with each other.
void refuse_shared_files(const BatchOptions& options) {
  auto files = files_of(options);
  const auto batch_file_count = files.size();
  files.insert(files.end(), options.other_files.begin(), options.other_files.end());
  // Compares each file with those of the batch's four files that precede it.
  for (std::size_t i = 1; i < files.size(); ++i) {
    const auto& [purpose, path] = files[i];
    for (std::size_t j = 0; j < std::min(i, batch_file_count); ++j) {
      if (path.empty() || !is_same_file(path, files[j].second)) continue;
      throw std::invalid_argument(path + " is the file for the " + files[j].first +
                                  " and cannot also be that for the " + purpose +
                                  ": use another one");
    }
  }
}

// Renames the files of earlier runs for --fresh by appending ".old" to their names, so that the run
// creates new ones. The caller has locked the journal. Throws StoreError if another run is writing
// the results or the dead letters, or if a file cannot be renamed.
void rename_old_files(const BatchOptions& options) {
  std::error_code ignored;
  std::error_code rename_error;
  // Opening a LineFile throws if another run has the lock on the file. These LineFiles keep their
  // locks until this function returns. `length` is the size that a file must have at least.
  std::vector<LineFile> locked_files;
  for (const auto& path : {options.results, options.dead}) {
    if (path.empty() || !std::filesystem::exists(path, ignored)) continue;
    locked_files.emplace_back(path, /*length=*/0);
  }
  if (std::filesystem::exists(options.journal, ignored)) {
    // Moves SQLite's write-ahead log into the database. SQLite finds the log by the name of the
    // database, and would not find it after the renaming.
    open_database(options.journal, Database::Mode::Write)
        ->execute("PRAGMA wal_checkpoint(TRUNCATE)");
  }
  for (const auto& path : {options.journal, options.results, options.dead}) {
    if (path.empty() || !std::filesystem::exists(path, ignored)) continue;
    std::filesystem::rename(path, path + ".old", rename_error);
    if (rename_error) throw StoreError("cannot rename " + path + ": " + rename_error.message());
  }
}

// Returns the name under which a report counts the policy of a line, such as "orders". If the line
// changes settings of that policy, returns "orders with settings".
std::string policy_label(const RequestLine& line, const PolicySet& policies) {
  auto label = line.policy;
  if (label.empty()) {
    const auto& endpoint_policy = policies.find(line.method, *line.parsed_url, line.headers);
    // A policy without a name counts as the preset that it is based on.
    label = endpoint_policy.name.empty() ? endpoint_policy.preset : endpoint_policy.name;
  }
  return line.settings.empty() ? label : label + " with settings";
}

// Returns whether sending the request of a line twice may do harm.
bool is_unsafe_to_repeat(const RequestLine& line, bool has_key, LinePolicies& policies) {
  // The server recognizes the key, or the method is idempotent, as GET and PUT are.
  if (has_key || Request(line.method, line.url).repeatable()) return false;
  // The import has found the policy of each line, so this is never an error.
  return (*policies.find(line))->repeat != Repeat::Always;
}

// Returns names and their counts in descending order of the counts.
std::vector<std::pair<std::string, std::uint64_t>> most_first(
    const std::map<std::string, std::uint64_t>& counts) {
  std::vector<std::pair<std::string, std::uint64_t>> sorted(counts.begin(), counts.end());
  std::ranges::stable_sort(sorted,
                           [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}

}  // namespace

struct Batch::Parts {
  Parts(std::unique_ptr<Journal> opened, BatchOptions options)
      : journal(std::move(opened)),
        jobs(options, {journal->token()}),
        runner(std::move(options.client), *journal, jobs, std::move(options.runner)) {}

  std::unique_ptr<Journal> journal;
  LineJobs jobs;
  Runner runner;
};

// Prepares a run: opens or creates the journal, and imports the lines of the input that it does not
// have yet. Returns nullptr if a line is invalid, or has changed since an earlier run;
// options.on_problem has been called for each such line. Throws std::invalid_argument for wrong
// options, and StoreError if the journal or another file cannot be used.
std::unique_ptr<Batch> Batch::open(BatchOptions options) {
  if (options.journal.empty() && options.input == "-") {
    throw std::invalid_argument("standard input needs a journal with a name");
  }
  if (options.journal.empty()) options.journal = options.input + ".httpretry.db";
  refuse_standard_output(options);
  refuse_shared_files(options);
  // The journal records these two paths, and the next run may start in another directory.
  options.results = absolute(options.results);
  options.dead = absolute(options.dead);
  // The lock comes before any file is touched, so that no other run of this journal is disturbed.
  auto lock = std::make_unique<JournalLock>(options.journal);
  if (options.fresh) rename_old_files(options);
  // open_journal() also imports the lines that are new in the input.
  auto database = open_journal(options);
  if (!database) return nullptr;
  check_options_match_earlier_runs(*database, options);
  check_directory(options.directory);
  auto journal = std::make_unique<Journal>(std::move(lock), std::move(database), options);
  options.client.policies = options.policies;
  // For each job that is being sent, the runner prepares another one, so that a call that ends has
  // a successor that is ready to be sent.
  options.runner.ahead = options.runner.parallel;
  // The constructor is private, so make_unique cannot call it.
  return std::unique_ptr<Batch>(
      new Batch(std::make_unique<Parts>(std::move(journal), std::move(options))));
}

Batch::Batch(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Batch::~Batch() = default;
RunEnd Batch::run() { return parts_->runner.run(); }
Runner& Batch::runner() { return parts_->runner; }
Counts Batch::counts() const { return parts_->journal->counts(); }
std::optional<Duration> Batch::next_due() { return parts_->journal->next_due(); }

// Returns the number of jobs for each combination of host, state, status and reason. Leaves out
// queued jobs, which have no row in the table `state`.
std::vector<SummaryRow> Batch::summary() const {
  auto row = parts_->journal->database().prepare(
      "SELECT name, state, status, reason, count(*) FROM state JOIN job USING(line) JOIN host ON "
      "host.number = job.host GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4");
  enum Column : int { kHostName, kState, kStatus, kReason, kCount };  // in the order of the SELECT
  std::vector<SummaryRow> rows;
  while (row.step()) {
    auto& entry = rows.emplace_back();
    entry.host = row.text(kHostName);
    entry.state = state_of(row.number(kState));
    entry.status = static_cast<int>(row.number(kStatus));
    entry.reason = row.text(kReason);
    entry.count = static_cast<std::uint64_t>(row.number(kCount));
  }
  return rows;
}

// Reads the whole input without sending anything. Returns how many jobs each host and each policy
// has, how many must not be sent twice (`unsafe`), and how many must wait for a date (`later`). If
// the input is invalid, returns a report whose `good` is false; options.on_problem has been called.
InputReport check_input(const BatchOptions& options) {
  InputReport report;
  // Here: the files with the bodies of requests must exist on this machine.
  const auto database = import_to_temporary(options, BodyFiles::Here);
  report.good = database != nullptr;
  if (!report.good) return report;

  LinePolicies policies(options.policies);
  std::map<std::string, std::uint64_t> jobs_by_host;
  std::map<std::string, std::uint64_t> jobs_by_policy;
  enum Column : int { kInput, kHostName, kKey };  // in the order of the SELECT
  auto row = database->prepare("SELECT input, name, key FROM job JOIN host ON number = host");
  while (row.step()) {
    const auto line = stored_line(row.text(kInput), options.format);
    ++report.jobs;
    ++jobs_by_host[std::string(row.text(kHostName))];
    ++jobs_by_policy[policy_label(line, options.policies)];
    // With an idempotency key, the server recognizes a request that is sent twice.
    const bool has_key = !row.is_null(kKey);
    if (is_unsafe_to_repeat(line, has_key, policies)) ++report.unsafe;
    if (line.not_before) ++report.later;
  }
  report.hosts = most_first(jobs_by_host);
  report.policies = most_first(jobs_by_policy);
  return report;
}

}  // namespace httpretry::batch
