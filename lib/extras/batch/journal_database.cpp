// Opens the database of a journal: creates it from an input, or compares it with the input.
#include "journal.hpp"

#include "text.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace httpretry::batch {
namespace {

// The most changed lines of an input that are reported one by one.
constexpr std::size_t kMostReported = 20;

// The import writes to a file that gets its final name when it is complete, so it needs no
// rollback.
constexpr const char* kImportSettings =
    "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; "
    "PRAGMA cache_size = -32000";
constexpr const char* kRunSettings = "PRAGMA cache_size = -16000";

void remove_database(const std::string& path) {
  for (const auto* suffix : {"", "-wal", "-shm", "-journal"}) ::unlink((path + suffix).c_str());
}

// Creates an empty database that only its owner can read. SQLite gives its log and the index of the
// log the same mode.
void create_private_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.is_open()) throw file_error("write to " + path);
}

void sync_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file.is_open() || ::fsync(file.get()) != 0) throw file_error("write to " + path);
}

// Imports the input into a new journal. Returns its database, or nullptr if the input is invalid;
// the import has reported why. The journal gets its name only when it is complete, so a crash never
// leaves one with a part of the input.
std::unique_ptr<Database> create_journal(const BatchOptions& options) {
  const auto unfinished = options.journal + ".new";
  remove_database(unfinished);  // a crash may have left one
  bool input_is_valid = false;
  try {
    create_private_file(unfinished);
    Database database(unfinished, Database::Mode::Create);
    database.execute(kImportSettings);
    database.execute("BEGIN");
    input_is_valid = import_all(options, database, BodyFiles::Here);
    if (input_is_valid) database.execute("COMMIT");
    // Here the database is closed, so that its file can be renamed.
  } catch (...) {
    remove_database(unfinished);
    throw;
  }
  if (!input_is_valid) {
    remove_database(unfinished);
    return nullptr;
  }
  sync_file(unfinished);  // kImportSettings turns off the syncs of SQLite
  // The log of a journal that was removed or renamed may still be there. SQLite would apply it.
  remove_database(options.journal);
  if (std::rename(unfinished.c_str(), options.journal.c_str()) != 0) {
    throw file_error("rename " + unfinished + " to " + options.journal);
  }
  sync_directory_of(options.journal);
  return open_database(options.journal, Database::Mode::Write);
}

// Returns whether the line is the same as at the import. `row` selects its stored text by its
// number. A member "last" and blank lines are not stored.
bool is_same_as_imported(Statement& row, std::uint64_t line_number, std::string_view text,
                         InputFormat format) {
  const bool has_job = row.with(line_number).step();
  const auto stored = has_job ? std::string(row.text(0)) : std::string();
  row.reset();
  if (stored == text) return true;
  if (!has_job) return text.find_first_not_of(" \t") == std::string_view::npos;
  RequestLine line;
  Problems problems("");
  return read_request_line(text, format, line, problems) && line.text_without_last == stored;
}

// Reports the lines of the input that have changed since it was imported into the journal; it had
// `line_count` lines then. Reports at most kMostReported lines one by one, and then the number of
// the others. If lines are missing at the end, reports only the first of them.
void report_changes(const Database& database, const BatchOptions& options,
                    std::uint64_t line_count) {
  constexpr int kFirstColumn = 1;
  if (options.input == "-") {  // it cannot be read a second time
    report_problem(options, "standard input", /*line=*/1, kFirstColumn,
                   "it does not begin with the lines of the journal (" +
                       std::to_string(line_count) +
                       "). Pass them again, pass nothing (</dev/null) to continue with them, use "
                       "another journal, or start over with --fresh");
    return;
  }
  auto stored_text = database.prepare("SELECT input FROM job WHERE line = ?");
  LineSource input(options.input);
  std::size_t change_count = 0;
  const auto report = [&](std::uint64_t line, const std::string& change) {
    if (++change_count > kMostReported) return;
    report_problem(options, options.input, line, kFirstColumn,
                   "this line " + change +
                       ". Put it back, use another journal, or start over with --fresh; lines may "
                       "be appended");
  };
  // `number` is that of the line that was read last. Lines behind `line_count` are new.
  while (input.number() < line_count) {
    const auto text = input.next();
    if (!text) break;  // lines are missing
    const auto number = input.number();
    if (!is_same_as_imported(stored_text, number, *text, options.format)) {
      report(number, "has changed since it was read");
    }
  }
  if (input.number() < line_count) {
    report(input.number() + 1, "is missing: there were " + std::to_string(line_count) + " lines");
  }
  if (change_count <= kMostReported) return;
  // Line 0 means that the problem concerns the whole file.
  report_problem(options, options.input, /*line=*/0, kFirstColumn,
                 std::to_string(change_count - kMostReported) + " more lines have changed");
}

// Reads the lines of the earlier import again. Returns false if they have changed or are missing.
// Otherwise, the next line of `input` is the first new one.
bool skip_unchanged_lines(LineSource& input, const Imported& before) {
  std::uint64_t hash = 0;
  while (input.number() < before.lines) {
    const auto text = input.next();
    if (!text) return false;
    hash = hash_line(hash, *text);
  }
  return hash == before.hash;
}

// Opens an existing journal, and imports the lines that were appended to the input since. Returns
// nullptr if the new lines are invalid, or if earlier ones have changed; both are reported.
std::unique_ptr<Database> resume_journal(const BatchOptions& options) {
  auto database = open_database(options.journal, Database::Mode::Write);
  // The journal has stored the lines of standard input, so a later run need not get them again: its
  // standard input may be a terminal, or empty.
  const bool is_standard_input = options.input == "-";
  if (is_standard_input && ::isatty(STDIN_FILENO) == 1) return database;
  const auto before = read_imported(*database);
  LineSource input(options.input);
  if (!skip_unchanged_lines(input, before)) {
    const bool is_empty = input.number() == 0;
    if (is_standard_input && is_empty) return database;
    report_changes(*database, options, before.lines);
    return nullptr;
  }
  database->execute("BEGIN IMMEDIATE");
  const bool are_valid = Importer(*database, options, BodyFiles::Here).add_all(input);
  database->execute(are_valid ? "COMMIT" : "ROLLBACK");
  return are_valid ? std::move(database) : nullptr;
}

}  // namespace

// Opens the database of an existing journal, for a run (Write) or to look at it (Read). Throws
// StoreError if the file is missing, has several hard links, is not a journal, or is a journal of
// another version.
std::unique_ptr<Database> open_database(const std::string& path, Database::Mode mode) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) throw StoreError(path + ": there is no such journal");
  if (std::filesystem::is_directory(path, error)) throw StoreError(path + " is a directory");
  if (const auto names = std::filesystem::hard_link_count(path, error); !error && names > 1) {
    throw StoreError(path + " has " + std::to_string(names) +
                     " names (hard links), and SQLite finds the log of a journal by name: runs "
                     "under two names would corrupt it. Remove the other names, or make a copy");
  }
  auto database = std::make_unique<Database>(path, mode);
  database->execute(kRunSettings);
  // create_tables() has written these two numbers to the header of the database.
  if (database->number("PRAGMA application_id") != kApplicationId) {
    throw StoreError(path + " is not a journal of httpretry batch");
  }
  const auto version = database->number("PRAGMA user_version");
  if (version != kJournalVersion) {
    throw StoreError(path + " is a journal of version " + std::to_string(version) +
                     ", but this program supports version " + std::to_string(kJournalVersion));
  }
  // With a write-ahead log, other processes can read the journal during a run.
  if (mode == Database::Mode::Write) database->execute("PRAGMA journal_mode = WAL");
  return database;
}

std::unique_ptr<Database> open_journal(const BatchOptions& options) {
  std::error_code ignored;
  return std::filesystem::exists(options.journal, ignored) ? resume_journal(options)
                                                           : create_journal(options);
}

// A job without a row in the table `state` is queued.
Counts count_states(const Database& database) {
  Counts counts;
  counts.queued = read_imported(database).jobs;
  auto row = database.prepare("SELECT state, count(*) FROM state GROUP BY state");
  while (row.step()) {
    const auto count = static_cast<std::uint64_t>(row.number(1));
    counts.of(state_of(row.number(0))) += count;
    counts.queued -= count;
  }
  return counts;
}

}  // namespace httpretry::batch
