#include <httpretry/batch/batch.hpp>

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

constexpr std::array<std::string_view, 3> kFormats{"auto", "jsonl", "urls"};

// Throws StoreError unless the options name the format and the files of the earlier runs. If the
// results of a batch were in two files, neither file would be complete.
void check_same(const Database& database, const BatchOptions& options) {
  const auto first_format = static_cast<std::size_t>(read_number(database, "format"));
  if (first_format != static_cast<std::size_t>(options.format)) {
    throw StoreError(options.journal + ": its input was read as " +
                     std::string(kFormats.at(first_format)) +
                     ": name this --input-format again, or begin anew with --fresh");
  }
  // The states 2 and 3 are StoredState::Done and Dead. Other jobs have no line in either file.
  const bool any_job_ended =
      database.number("SELECT EXISTS (SELECT 1 FROM state WHERE state IN (2, 3))") != 0;
  for (const auto& [name, path] :
       {std::pair<const char*, const std::string&>("results", options.results),
        {"dead", options.dead}}) {
    const auto earlier_path = read_text(database, name);
    const bool may_add_file = earlier_path.empty() && !any_job_ended;
    if (earlier_path == path || may_add_file) continue;
    if (earlier_path.empty()) {
      throw StoreError(options.journal + " was run without " + name +
                       ": leave them out again, or begin anew with --fresh");
    }
    throw StoreError(options.journal + ": its " + name + " are in " + earlier_path +
                     ": name this file again, or begin anew with --fresh");
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

// Throws std::invalid_argument if two files of the run are the same, because one would overwrite
// the other, or if a file that later runs continue is "-". Only the input may be "-".
void check_files(const BatchOptions& options) {
  std::vector<std::pair<std::string, std::string>> files{{"input", options.input},
                                                         {"journal", options.journal},
                                                         {"results", options.results},
                                                         {"dead letters", options.dead}};
  const auto batch_file_count = files.size();
  // The input, at index 0, may be standard input.
  for (std::size_t i = 1; i < batch_file_count; ++i) {
    if (files[i].second != "-") continue;
    throw std::invalid_argument("the " + files[i].first +
                                " need a file, not standard output: a later run continues it");
  }
  files.insert(files.end(), options.other_files.begin(), options.other_files.end());
  // Compares each file with the batch's files that precede it. Of the other files, two may be the
  // same.
  for (std::size_t i = 1; i < files.size(); ++i) {
    const auto& [purpose, path] = files[i];
    for (std::size_t j = 0; j < std::min(i, batch_file_count); ++j) {
      if (path.empty() || !is_same_file(path, files[j].second)) continue;
      throw std::invalid_argument(path + " is the file of the " + files[j].first +
                                  " and cannot be that of the " + purpose + ": name another one");
    }
  }
}

// Renames the files of earlier runs by appending ".old" to their names, so that the run creates new
// ones. Throws StoreError if another run uses one of them.
void rename_old_files(const BatchOptions& options) {
  std::error_code ignored;
  std::error_code failed;
  // Each LineFile locks its file until this function returns.
  std::vector<LineFile> locked;
  for (const auto& path : {options.results, options.dead}) {
    if (path.empty() || !std::filesystem::exists(path, ignored)) continue;
    locked.emplace_back(path, /*length=*/0);
  }
  if (std::filesystem::exists(options.journal, ignored)) {
    // Moves SQLite's write-ahead log into the database. SQLite finds the log by the name of the
    // database, and would not find it after the renaming.
    open_database(options.journal, Database::Mode::Write)
        ->execute("PRAGMA wal_checkpoint(TRUNCATE)");
  }
  for (const auto& path : {options.journal, options.results, options.dead}) {
    if (path.empty() || !std::filesystem::exists(path, ignored)) continue;
    std::filesystem::rename(path, path + ".old", failed);
    if (failed) throw StoreError("cannot rename " + path + ": " + failed.message());
  }
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
  Parts(std::unique_ptr<Journal> its, BatchOptions options)
      : journal(std::move(its)),
        jobs(options, {journal->token()}),
        runner(std::move(options.client), *journal, jobs, std::move(options.runner)) {}

  std::unique_ptr<Journal> journal;
  LineJobs jobs;
  Runner runner;
};

// Opens or creates the journal, and imports the lines of the input that it does not have yet.
// Returns nullptr if lines are invalid or have changed, which `on_problem` has reported.
std::unique_ptr<Batch> Batch::open(BatchOptions options) {
  if (options.journal.empty() && options.input == "-") {
    throw std::invalid_argument("standard input needs a journal with a name");
  }
  if (options.journal.empty()) options.journal = options.input + ".httpretry.db";
  check_files(options);
  options.results = absolute(options.results);
  options.dead = absolute(options.dead);
  auto lock = std::make_unique<JournalLock>(options.journal);
  if (options.fresh) rename_old_files(options);
  auto database = open_journal(options);
  if (!database) return nullptr;
  check_same(*database, options);
  auto journal = std::make_unique<Journal>(std::move(lock), std::move(database), options);
  options.client.policies = options.policies;
  options.runner.ahead = options.runner.parallel;
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
  std::vector<SummaryRow> rows;
  while (row.step()) {
    SummaryRow entry;
    entry.host = row.text(0);
    entry.state = state_of(row.number(1));
    entry.status = static_cast<int>(row.number(2));
    entry.reason = row.text(3);
    entry.count = static_cast<std::uint64_t>(row.number(4));
    rows.push_back(std::move(entry));
  }
  return rows;
}

// Reads the whole input without sending anything. Returns how many jobs each host and each policy
// has, how many must not be repeated (`unsafe`), and how many must wait for a date (`later`).
InputReport check_input(const BatchOptions& options) {
  InputReport report;
  const auto database = import_to_temporary(options);
  report.good = database != nullptr;
  if (!report.good) return report;

  LinePolicies policies(options.policies);
  std::map<std::string, std::uint64_t> jobs_by_host;
  std::map<std::string, std::uint64_t> jobs_by_policy;
  auto row = database->prepare("SELECT input, name, key FROM job JOIN host ON number = host");
  while (row.step()) {
    const auto line = stored_line(row.text(0), options.format);
    ++report.jobs;
    ++jobs_by_host[std::string(row.text(1))];
    const auto& of_endpoint = options.policies.find(line.method, *line.parsed_url, line.headers);
    const auto name = !line.policy.empty()       ? line.policy
                      : of_endpoint.name.empty() ? of_endpoint.preset
                                                 : of_endpoint.name;
    ++jobs_by_policy[line.settings.empty() ? name : name + " with settings"];
    const bool has_key = !row.is_null(2);
    const bool repeatable = has_key || Request(line.method, line.url).repeatable();
    if (!repeatable && (*policies.find(line))->repeat != Repeat::Always) ++report.unsafe;
    if (line.not_before) ++report.later;
  }
  report.hosts = most_first(jobs_by_host);
  report.policies = most_first(jobs_by_policy);
  return report;
}

}  // namespace httpretry::batch
