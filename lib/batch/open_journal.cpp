#include "lib/batch/open_journal.hpp"

#include "lib/batch/text.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace httpretry::batch {
namespace {

// Lines that are named where an input has changed.
constexpr std::size_t kMostNamed = 20;
constexpr std::uint64_t kTellEvery = 100'000;  // lines

// The tables are written once, to a file that gets its name when it is whole. So nothing needs to
// be rolled back.
constexpr const char* kForImport =
    "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; "
    "PRAGMA cache_size = -32000";
constexpr const char* kForRun = "PRAGMA cache_size = -16000";

void remove_database(const std::string& path) {
  for (const auto* end : {"", "-wal", "-shm", "-journal"}) ::unlink((path + end).c_str());
}

// SQLite gives its log and its index the mode of the database.
void create_for_owner(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file.open()) return;
  throw StoreError("cannot write to " + path + ": " + std::generic_category().message(errno));
}

void sync_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (file.open() && ::fsync(file.get()) == 0) return;
  throw StoreError("cannot write to " + path + ": " + std::generic_category().message(errno));
}

std::unique_ptr<Database> create(const JournalSource& source, LinePolicies& policies) {
  const auto unfinished = source.path + ".new";
  remove_database(unfinished);
  bool good = false;
  try {
    create_for_owner(unfinished);
    Database database(unfinished, Database::Mode::Create);
    database.execute(kForImport);
    database.execute("BEGIN");
    create_tables(database, source.import.input, source.import.format);
    good = import_all(source, database, policies);
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
  if (std::rename(unfinished.c_str(), source.path.c_str()) != 0) {
    throw StoreError("cannot rename " + unfinished + " to " + source.path + ": " +
                     std::generic_category().message(errno));
  }
  sync_directory_of(source.path);
  return open_database(source.path, Database::Mode::Write);
}

// Compares an input that has changed, line by line.
class Changes {
 public:
  Changes(const Database& database, const JournalSource& source)
      : source_(source), row_(database.prepare("SELECT input FROM job WHERE line = ?")) {}

  void name_all(std::uint64_t lines) {
    LineSource input(source_.import.input);
    while (input.number() < lines) {
      const auto text = input.next();
      if (!text) break;
      if (!same(input.number(), *text)) tell(input.number(), "was changed since it was read");
    }
    if (input.number() < lines) {
      tell(input.number() + 1, "is missing: there were " + std::to_string(lines) + " lines");
    }
    if (count_ > kMostNamed) tell_last(count_ - kMostNamed);
  }

 private:
  bool same(std::uint64_t number, std::string_view text) {
    const bool job = row_.with(number).step();
    const auto stored = job ? std::string(row_.text(0)) : std::string();
    row_.reset();
    if (stored == text) return true;
    if (!job) return text.find_first_not_of(" \t") == std::string_view::npos;
    RequestLine line;
    Problems problems("");
    return read_request_line(text, source_.import.format, line, problems) &&
           line.text_without_last == stored;
  }
  void tell(std::uint64_t line, std::string what) {
    if (++count_ > kMostNamed) return;
    send(line, "this line " + std::move(what) +
                   ". Put it back, or name another journal, or begin anew with --fresh; new lines "
                   "may be appended");
  }
  void tell_last(std::size_t more) { send(0, std::to_string(more) + " more lines were changed"); }
  void send(std::uint64_t line, std::string message) const {
    Problem problem;
    problem.file = source_.import.input;
    problem.line = static_cast<int>(line);
    problem.column = 1;
    problem.message = std::move(message);
    source_.import.tell(problem);
  }

  const JournalSource& source_;
  Statement row_;
  std::size_t count_ = 0;
};

// True if the beginning of the input is what was read before. `input` is then behind it.
bool is_unchanged(LineSource& input, const Imported& before) {
  std::uint64_t hash = 0;
  while (input.number() < before.lines) {
    const auto text = input.next();
    if (!text) return false;
    hash = hash_line(hash, *text);
  }
  return hash == before.hash;
}

void read_lines(const JournalSource& source, LineSource& input, Importer& importer) {
  while (const auto text = input.next()) {
    importer.add(input.number(), *text);
    if (source.on_import && input.number() % kTellEvery == 0) source.on_import(input.number());
  }
}

std::unique_ptr<Database> resume(const JournalSource& source, LinePolicies& policies) {
  auto database = open_database(source.path, Database::Mode::Write);
  if (source.import.input == "-") return database;  // it is in the journal
  const auto before = read_imported(*database);
  LineSource input(source.import.input);
  if (!is_unchanged(input, before)) {
    Changes(*database, source).name_all(before.lines);
    return nullptr;
  }
  database->execute("BEGIN IMMEDIATE");
  Importer importer(*database, policies, source.import);
  read_lines(source, input, importer);
  const bool good = importer.finish();
  database->execute(good ? "COMMIT" : "ROLLBACK");
  return good ? std::move(database) : nullptr;
}

}  // namespace

bool import_all(const JournalSource& source, Database& database, LinePolicies& policies) {
  LineSource input(source.import.input);
  auto options = source.import;
  options.input = input.name();
  Importer importer(database, policies, std::move(options));
  read_lines(source, input, importer);
  return importer.finish();
}

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

std::unique_ptr<Database> open_journal(const JournalSource& source, LinePolicies& policies) {
  std::error_code none;
  return std::filesystem::exists(source.path, none) ? resume(source, policies)
                                                    : create(source, policies);
}

void put_aside(const std::string& path) {
  std::error_code none;
  if (!std::filesystem::exists(path, none)) return;
  if (std::rename(path.c_str(), (path + ".old").c_str()) == 0) return;
  throw StoreError("cannot rename " + path + ": " + std::generic_category().message(errno));
}

}  // namespace httpretry::batch
