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
constexpr std::size_t kMostNamed = 20;

// The import writes to a file that gets its final name when it is complete, so it needs no
// rollback.
constexpr const char* kForImport =
    "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; "
    "PRAGMA cache_size = -32000";
constexpr const char* kForRun = "PRAGMA cache_size = -16000";

void remove_database(const std::string& path) {
  for (const auto* end : {"", "-wal", "-shm", "-journal"}) ::unlink((path + end).c_str());
}

// Creates an empty database that only its owner can read. SQLite gives its log and the index of the
// log the same mode.
void create_for_owner(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.open()) throw file_error("write to " + path);
}

void sync_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file.open() || ::fsync(file.get()) != 0) throw file_error("write to " + path);
}

std::unique_ptr<Database> create(const BatchOptions& options) {
  const auto unfinished = options.journal + ".new";
  remove_database(unfinished);
  bool good = false;
  try {
    create_for_owner(unfinished);
    Database database(unfinished, Database::Mode::Create);
    database.execute(kForImport);
    database.execute("BEGIN");
    good = import_all(options, database);
    if (good) database.execute("COMMIT");
  } catch (...) {
    remove_database(unfinished);
    throw;
  }
  if (!good) {
    remove_database(unfinished);
    return nullptr;
  }
  sync_file(unfinished);
  if (std::rename(unfinished.c_str(), options.journal.c_str()) != 0) {
    throw file_error("rename " + unfinished + " to " + options.journal);
  }
  sync_directory_of(options.journal);
  return open_database(options.journal, Database::Mode::Write);
}

// Returns whether the line is the same as at the import. `row` selects its stored text by number. A
// member "last" and blank lines are not stored.
bool is_same(Statement& row, std::uint64_t number, std::string_view text, InputFormat format) {
  const bool job = row.with(number).step();
  const auto stored = job ? std::string(row.text(0)) : std::string();
  row.reset();
  if (stored == text) return true;
  if (!job) return text.find_first_not_of(" \t") == std::string_view::npos;
  RequestLine line;
  Problems problems("");
  return read_request_line(text, format, line, problems) && line.text_without_last == stored;
}

// Reports each line that has changed since the import, when the input had `lines` lines.
void report_changes(const Database& database, const BatchOptions& options, std::uint64_t lines) {
  auto row = database.prepare("SELECT input FROM job WHERE line = ?");
  LineSource input(options.input);
  std::size_t count = 0;
  const auto report = [&](std::uint64_t line, const std::string& what) {
    if (++count > kMostNamed) return;
    report_problem(options, options.input, line, 1,
                   "this line " + what +
                       ". Put it back, or name another journal, or begin anew with --fresh; new "
                       "lines may be appended");
  };
  while (input.number() < lines) {
    const auto text = input.next();
    if (!text) break;
    const auto number = input.number();
    if (!is_same(row, number, *text, options.format)) {
      report(number, "was changed since it was read");
    }
  }
  if (input.number() < lines) {
    report(input.number() + 1, "is missing: there were " + std::to_string(lines) + " lines");
  }
  if (count <= kMostNamed) return;
  report_problem(options, options.input, 0, 1,
                 std::to_string(count - kMostNamed) + " more lines were changed");
}

// Returns whether the input still begins with the lines of the import. If it does, leaves `input`
// behind them.
bool is_unchanged(LineSource& input, const Imported& before) {
  std::uint64_t hash = 0;
  while (input.number() < before.lines) {
    const auto text = input.next();
    if (!text) return false;
    hash = hash_line(hash, *text);
  }
  return hash == before.hash;
}

std::unique_ptr<Database> resume(const BatchOptions& options) {
  auto database = open_database(options.journal, Database::Mode::Write);
  if (options.input == "-") return database;  // it is in the journal
  const auto before = read_imported(*database);
  LineSource input(options.input);
  if (!is_unchanged(input, before)) {
    report_changes(*database, options, before.lines);
    return nullptr;
  }
  database->execute("BEGIN IMMEDIATE");
  const bool good = Importer(*database, options).add_all(input);
  database->execute(good ? "COMMIT" : "ROLLBACK");
  return good ? std::move(database) : nullptr;
}

}  // namespace

std::unique_ptr<Database> open_database(const std::string& path, Database::Mode mode) {
  std::error_code none;
  if (!std::filesystem::exists(path, none)) throw StoreError(path + ": there is no such journal");
  if (const auto names = std::filesystem::hard_link_count(path, none); !none && names > 1) {
    throw StoreError(path + " has " + std::to_string(names) +
                     " names (hard links), and SQLite keeps the log of a journal by name: runs "
                     "under two names would destroy it. Remove the other names, or make a copy");
  }
  auto database = std::make_unique<Database>(path, mode);
  database->execute(kForRun);
  if (database->number("PRAGMA application_id") != kApplicationId) {
    throw StoreError(path + " is no journal of httpretry batch");
  }
  const auto version = database->number("PRAGMA user_version");
  if (version != kJournalVersion) {
    throw StoreError(path + " is a journal of version " + std::to_string(version) +
                     ", and this program knows version " + std::to_string(kJournalVersion));
  }
  if (mode == Database::Mode::Write) database->execute("PRAGMA journal_mode = WAL");
  return database;
}

std::unique_ptr<Database> open_journal(const BatchOptions& options) {
  std::error_code none;
  return std::filesystem::exists(options.journal, none) ? resume(options) : create(options);
}

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
