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

// Throws StoreError unless the format and the files are those of the earlier runs. If the lines of
// one run were in two files, neither file would be complete.
void check_same(const Database& database, const BatchOptions& options) {
  const auto format = static_cast<std::size_t>(read_number(database, "format"));
  if (format != static_cast<std::size_t>(options.format)) {
    throw StoreError(options.journal + ": its input was read as " +
                     std::string(kFormats.at(format)) +
                     ": name this --input-format again, or begin anew with --fresh");
  }
  const bool ended =
      database.number("SELECT EXISTS (SELECT 1 FROM state WHERE state IN (2, 3))") != 0;
  for (const auto& [name, path] :
       {std::pair<const char*, const std::string&>("results", options.results),
        {"dead", options.dead}}) {
    const auto before = read_text(database, name);
    if (before == path || (before.empty() && !ended)) continue;
    if (before.empty()) {
      throw StoreError(options.journal + " was run without " + name +
                       ": leave them out again, or begin anew with --fresh");
    }
    throw StoreError(options.journal + ": its " + name + " are in " + before +
                     ": name this file again, or begin anew with --fresh");
  }
}

// Returns whether two paths lead to the same regular file. Devices and pipes do not count, because
// writing to them destroys nothing.
bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code none;
  const bool exists = std::filesystem::exists(a, none);
  if (exists && !std::filesystem::is_regular_file(a, none)) return false;
  return absolute(a) == absolute(b) || std::filesystem::equivalent(a, b, none);
}

// Throws std::invalid_argument if a file of the run would overwrite another one.
void check_files(const BatchOptions& options) {
  std::vector<std::pair<std::string, std::string>> files{{"input", options.input},
                                                         {"journal", options.journal},
                                                         {"results", options.results},
                                                         {"dead letters", options.dead}};
  const auto own = files.size();
  for (std::size_t i = 1; i < own; ++i) {
    if (files[i].second != "-") continue;
    throw std::invalid_argument("the " + files[i].first +
                                " need a file, not standard output: a later run continues it");
  }
  files.insert(files.end(), options.other_files.begin(), options.other_files.end());
  for (std::size_t i = 1; i < files.size(); ++i) {
    const auto& [what, path] = files[i];
    for (std::size_t j = 0; j < std::min(i, own); ++j) {
      if (path.empty() || !is_same_file(path, files[j].second)) continue;
      throw std::invalid_argument(path + " is the file of the " + files[j].first +
                                  " and cannot be that of the " + what + ": name another one");
    }
  }
}

// Appends ".old" to the names of the files of earlier runs.
void begin_anew(const BatchOptions& options) {
  std::error_code none;
  std::error_code failed;
  // Locks the files until they are renamed. Throws if another run has locked one.
  std::vector<LineFile> locked;
  for (const auto& path : {options.results, options.dead}) {
    if (!path.empty() && std::filesystem::exists(path, none)) locked.emplace_back(path, 0);
  }
  if (std::filesystem::exists(options.journal, none)) {
    // Moves the log into the database, because SQLite finds the log by the name of the database.
    open_database(options.journal, Database::Mode::Write)
        ->execute("PRAGMA wal_checkpoint(TRUNCATE)");
  }
  for (const auto& path : {options.journal, options.results, options.dead}) {
    if (path.empty() || !std::filesystem::exists(path, none)) continue;
    std::filesystem::rename(path, path + ".old", failed);
    if (failed) throw StoreError("cannot rename " + path + ": " + failed.message());
  }
}

std::vector<std::pair<std::string, std::uint64_t>> most_first(
    const std::map<std::string, std::uint64_t>& of) {
  std::vector<std::pair<std::string, std::uint64_t>> sorted(of.begin(), of.end());
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

std::unique_ptr<Batch> Batch::open(BatchOptions options) {
  if (options.journal.empty() && options.input == "-") {
    throw std::invalid_argument("standard input needs a journal with a name");
  }
  if (options.journal.empty()) options.journal = options.input + ".httpretry.db";
  check_files(options);
  options.results = absolute(options.results);
  options.dead = absolute(options.dead);
  auto lock = std::make_unique<JournalLock>(options.journal);
  if (options.fresh) begin_anew(options);
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

std::vector<SummaryRow> Batch::summary() const {
  auto row = parts_->journal->database().prepare(
      "SELECT name, state, status, reason, count(*) FROM state JOIN job USING(line) JOIN host ON "
      "host.number = job.host GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4");
  std::vector<SummaryRow> rows;
  while (row.step()) {
    SummaryRow one;
    one.host = row.text(0);
    one.state = state_of(row.number(1));
    one.status = static_cast<int>(row.number(2));
    one.reason = row.text(3);
    one.count = static_cast<std::uint64_t>(row.number(4));
    rows.push_back(std::move(one));
  }
  return rows;
}

InputReport check_input(const BatchOptions& options) {
  InputReport report;
  const auto database = import_to_temporary(options);
  report.good = database != nullptr;
  if (!report.good) return report;

  LinePolicies policies(options.policies);
  std::map<std::string, std::uint64_t> hosts;
  std::map<std::string, std::uint64_t> used;
  auto row = database->prepare("SELECT input, name, key FROM job JOIN host ON number = host");
  while (row.step()) {
    const auto line = stored_line(row.text(0), options.format);
    ++report.jobs;
    ++hosts[std::string(row.text(1))];
    const auto& found = options.policies.find(line.method, *line.parsed_url, line.headers);
    const auto name = !line.policy.empty() ? line.policy
                      : found.name.empty() ? found.preset
                                           : found.name;
    ++used[line.settings.empty() ? name : name + " with settings"];
    const bool repeatable = Request(line.method, line.url).repeatable() || !row.is_null(2);
    if (!repeatable && (*policies.find(line))->repeat != Repeat::Always) ++report.unsafe;
    if (line.not_before) ++report.later;
  }
  report.hosts = most_first(hosts);
  report.policies = most_first(used);
  return report;
}

}  // namespace httpretry::batch
