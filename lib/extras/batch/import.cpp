#include "import.hpp"

#include "bodies.hpp"
#include "journal.hpp"
#include "lib/core/base/random.hpp"
#include "text.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace httpretry::batch {
namespace {

// Hosts beyond this number share queues, so that a list of ten million hosts needs no more memory.
constexpr std::size_t kHostsOfTheirOwn = 20'000;
constexpr std::size_t kSharedQueues = 1'000;
constexpr std::uint64_t kReportEvery = 100'000;  // lines
constexpr std::size_t kLongestName = 250;        // of a file; with ".part", it is NAME_MAX

constexpr const char* kTables = R"(
CREATE TABLE meta(name TEXT PRIMARY KEY, value ANY) STRICT, WITHOUT ROWID;
CREATE TABLE host(number INTEGER PRIMARY KEY, name TEXT NOT NULL, held_until INTEGER)
  STRICT;
CREATE TABLE lane(priority INTEGER, host INTEGER, PRIMARY KEY(priority, host)) STRICT, WITHOUT ROWID;
CREATE TABLE run(number INTEGER PRIMARY KEY, began INTEGER NOT NULL, lines INTEGER NOT NULL,
  process INTEGER NOT NULL) STRICT;
CREATE TABLE job(line INTEGER PRIMARY KEY, host INTEGER NOT NULL, priority INTEGER NOT NULL, id TEXT,
  key ANY, output TEXT, input TEXT NOT NULL) STRICT;
CREATE TABLE state(line INTEGER PRIMARY KEY, state INTEGER NOT NULL, until INTEGER, status INTEGER,
  attempts INTEGER, started INTEGER, reason TEXT, about TEXT, at INTEGER) STRICT;
CREATE INDEX state_due ON state(until) WHERE state IN (4, 6);
)";

// Returns the name of the queue for a host's jobs, when `host_count` hosts have one already.
std::string host_name(std::size_t host_count, const std::string& origin) {
  if (host_count < kHostsOfTheirOwn) return origin;
  return "other hosts " + std::to_string(hash_line(0, origin) % kSharedQueues);
}

// Returns everything that the server sees of a request as one text, to compare it with others.
std::string request_of(const RequestLine& line) {
  std::string text = line.method + "\n" + line.url + "\n";
  for (const auto& [name, value] : line.headers) {
    text.append(name).append(":").append(value).append("\n");
  }
  return text + std::to_string(static_cast<int>(line.content)) + "\n" + line.body;
}

// Returns the value for a column, in which nullopt becomes NULL.
std::optional<std::string_view> text_or_null(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional<std::string_view>(text);
}

void create_tables(Database& database, const BatchOptions& options) {
  database.execute(kTables);
  database.execute("PRAGMA application_id = " + std::to_string(kApplicationId));
  database.execute("PRAGMA user_version = " + std::to_string(kJournalVersion));
  auto insert = database.prepare("INSERT INTO meta VALUES(?, ?)");
  insert.run(std::string_view("token"), std::string_view(random_hex(16)));
  insert.run(std::string_view("input"), std::string_view(options.input));
  insert.run(std::string_view("format"), static_cast<int>(options.format));
}

}  // namespace

void detail::report_problem(const BatchOptions& options, const std::string& file,
                            std::uint64_t line, int column, std::string message) {
  Problem problem;
  problem.file = file;
  problem.line = static_cast<int>(line);
  problem.column = column;
  problem.message = std::move(message);
  if (options.on_problem) options.on_problem(problem);
}

bool import_all(const BatchOptions& options, Database& database, BodyFiles body_files) {
  create_tables(database, options);
  LineSource input(options.input);
  return Importer(database, options, body_files).add_all(input);
}

std::unique_ptr<Database> detail::import_to_temporary(const BatchOptions& options,
                                                      BodyFiles body_files) {
  auto database = std::make_unique<Database>("", Database::Mode::Create);
  database->execute("PRAGMA journal_mode = OFF; PRAGMA cache_size = -32000; BEGIN");
  return import_all(options, *database, body_files) ? std::move(database) : nullptr;
}

std::string read_meta_text(const Database& database, std::string_view name) {
  auto select = database.prepare("SELECT value FROM meta WHERE name = ?");
  return select.with(name).step() ? std::string(select.text(0)) : std::string();
}

std::int64_t read_meta_number(const Database& database, std::string_view name) {
  auto select = database.prepare("SELECT value FROM meta WHERE name = ?");
  return select.with(name).step() ? select.number(0) : 0;
}

Imported read_imported(const Database& database) {
  Imported imported;
  imported.lines = static_cast<std::uint64_t>(read_meta_number(database, "lines"));
  imported.jobs = static_cast<std::uint64_t>(read_meta_number(database, "jobs"));
  imported.hash = static_cast<std::uint64_t>(read_meta_number(database, "hash"));
  return imported;
}

// A shorter text counts as less than a longer one, so ascending numbers are in order.
void Importer::Order::add(std::string_view text) {
  const bool is_greater = text.size() != last.size() ? text.size() > last.size() : text > last;
  ascending = ascending && is_greater;
  last = text;
}

// Loads the hosts, the lanes and the progress of an import that this one continues.
Importer::Importer(Database& database, const BatchOptions& options, BodyFiles body_files)
    : database_(database),
      options_(options),
      body_files_(body_files),
      policies_(options.policies),
      insert_(database.prepare("INSERT INTO job VALUES(?, ?, ?, ?, ?, ?, ?)")),
      insert_waiting_(database.prepare("INSERT INTO state(line, state, until) VALUES(?, 6, ?)")),
      input_of_(database.prepare("SELECT input FROM job WHERE line = ?")),
      imported_(read_imported(database)) {
  if (body_files == BodyFiles::Here) own_files_ = own_files_below_directory(options);
  auto host = database.prepare("SELECT number, name FROM host");
  while (host.step()) hosts_.emplace(host.text(1), host.number(0));
  auto lane = database.prepare("SELECT host, priority FROM lane");
  while (lane.step()) {
    lanes_[lane.number(0)] |= 1U << static_cast<unsigned>(priority_of(lane.number(1)));
  }
  if (imported_.lines == 0) return;
  for (auto* order : {&ids_, &keys_, &outputs_}) {
    order->ascending = read_meta_number(database, order->name + "_ascending") == 1;
    order->last = read_meta_text(database, "last_" + order->name);
  }
}

void Importer::report(std::uint64_t line, Position at, std::string message) {
  failed_ = true;
  report_problem(options_, file_, line, std::max(at.column, 1), std::move(message));
}

bool Importer::add_all(LineSource& input) {
  file_ = input.name();
  while (const auto text = input.next()) {
    add(input.number(), *text);
    const bool is_report_due = input.number() % kReportEvery == 0;
    if (is_report_due && options_.on_import) options_.on_import(input.number());
  }
  return finish();
}

// Adds the job of a line of the input. If the line is invalid, reports its problems, and the import
// fails at its end. A blank line has a number, but is no job.
void Importer::add(std::uint64_t line_number, std::string_view text) {
  imported_.lines = line_number;
  // By this hash of all lines, the next run detects that one of them has changed.
  imported_.hash = hash_line(imported_.hash, text);
  if (text.find_first_not_of(" \t") == std::string_view::npos) return;
  RequestLine line;
  Problems problems(file_);
  if (!read_request_line(text, options_.format, line, problems)) {
    failed_ = true;
    for (auto& found : problems.take()) {
      // The problems were found in a text of one line, so each has line 1.
      found.line = static_cast<int>(line_number);
      if (options_.on_problem) options_.on_problem(found);
    }
    // Even an invalid line is inserted, so that its id is compared with those of the other lines.
    // A line without a URL and without an id has nothing to compare.
    if (!line.parsed_url && line.id.empty()) return;
  }
  // A dead letter, which may be an input again, has the result of the earlier run as its member
  // "last", which is not stored. `text_without_last` is empty for a line without that member.
  if (!line.text_without_last.empty()) text = line.text_without_last;
  insert(line_number, text, line);
}

// Inserts the row of a job into the table `job`, with the columns line, host, priority, id, key,
// output and input. If the line has a date before which it must not be sent, also inserts a row
// into the table `state`. Reports a problem if the policy that the line names does not exist, or if
// the file for its body cannot be read. Inserts even a line with problems, so that finish()
// compares it with the others.
void Importer::insert(std::uint64_t line_number, std::string_view text, const RequestLine& line) {
  std::shared_ptr<const RetryPolicy> policy;  // null after a problem
  std::int64_t host = 0;                      // no host has this number
  if (line.parsed_url) {
    auto found = policies_.find(line);
    if (found) {
      policy = *std::move(found);
    } else {
      report(line_number, line.policy_position, found.error().message);
    }
    host = host_number(std::string(line.parsed_url->origin()));
  }
  check_body_file(line_number, line);
  const auto priority = static_cast<int>(line.priority);
  insert_lane(host, line.priority);  // a lane has the jobs of one host with one priority
  ++imported_.jobs;
  const auto id = text_or_null(line.id);
  const auto file = file_of(line_number, line);
  check_output(line_number, line, file);
  const auto output = text_or_null(file);
  // Notes whether ids, files and keys arrive in ascending order. If they do, finish() need not look
  // for duplicates.
  if (id) ids_.add(*id);
  if (output) outputs_.add(*output);
  // finish() must look for another file with the name of this one's directory, or whose ".part"
  // this one may be.
  if (file.find('/') != std::string::npos || file.find(".part") != std::string::npos) {
    outputs_.ascending = false;
  }
  // The name of the header with the idempotency key, or empty if the request gets no key.
  const auto header = policy ? key_header(line, *policy) : std::string();
  std::string key = line.key;
  // A line may also have its key as a header, without the member "key".
  if (!header.empty() && key.empty()) key = line.headers[header];
  // The column `key` has one of three values: the text of the key; a number, whatever its value, if
  // made_key() generates the key when the job is taken; NULL if the request gets no key.
  constexpr int kGeneratedKey = 1;
  const auto insert_with_key = [&](const auto& key_value) {
    insert_.run(line_number, host, priority, id, key_value, output, text);
  };
  if (!key.empty()) {
    keys_.add(key);
    insert_with_key(std::string_view(key));
  } else if (!header.empty()) {
    insert_with_key(kGeneratedKey);
  } else {
    insert_with_key(nullptr);
  }
  if (line.not_before) insert_waiting_.run(line_number, ms_of(*line.not_before));
}

// Reports a problem if the body of a line is in a file of this machine that cannot be read.
void Importer::check_body_file(std::uint64_t line_number, const RequestLine& line) {
  const bool is_here = line.content == RequestLine::Content::File && !line.body.empty() &&
                       body_files_ == BodyFiles::Here;
  if (!is_here) return;
  const auto opened = Body::file(line.body).open();
  if (!opened) report(line_number, line.file_position, "/body_file: " + opened.error().message);
}

// Reports a problem if the response body of a line would replace a file of the run itself, or if
// the name of its file is too long.
void Importer::check_output(std::uint64_t line_number, const RequestLine& line,
                            const std::string& output) {
  const auto found = own_files_.find(output);
  const bool is_too_long = output.substr(output.rfind('/') + 1).size() > kLongestName;
  if (found == own_files_.end() && !is_too_long) return;
  report(line_number, line.output.empty() ? line.id_position : line.output_position,
         "the response would go to \"" + printable(output) + "\", " +
             (is_too_long ? "a name of more than " + std::to_string(kLongestName) + " bytes"
                          : "which is the file of the " + found->second));
}

// Inserts the lane of a host and a priority, unless it has been inserted before.
void Importer::insert_lane(std::int64_t host, Priority priority) {
  auto& priorities = lanes_[host];
  const auto bit = 1U << static_cast<unsigned>(priority);
  if ((priorities & bit) != 0) return;
  database_.prepare("INSERT INTO lane VALUES(?, ?)").run(static_cast<int>(priority), host);
  priorities |= bit;
}

// Returns the file for the response body, relative to the directory of the run. Returns an empty
// string if the body does not go to a file.
std::string Importer::file_of(std::uint64_t number, const RequestLine& line) const {
  if (!line.output.empty()) return line.output;
  if (options_.bodies != Bodies::Files) return {};
  return file_name_of(line.id.empty() ? std::to_string(number) : line.id);
}

// Returns the number of the host's row, which it inserts if that is missing.
std::int64_t Importer::host_number(const std::string& origin) {
  if (const auto known = hosts_.find(origin); known != hosts_.end()) return known->second;
  const auto name = host_name(hosts_.size(), origin);
  const auto [entry, is_new] = hosts_.emplace(name, static_cast<std::int64_t>(hosts_.size()) + 1);
  if (is_new) {
    database_.prepare("INSERT INTO host(number, name) VALUES(?, ?)")
        .run(entry->second, std::string_view(name));
  }
  return entry->second;
}

// Reports repeated ids, keys and outputs, even after other problems. Returns false if the input has
// any problem. Otherwise writes the progress of the import, so that a later run can continue it.
bool Importer::finish() {
  if (!ids_.ascending) compare_ids();
  compare_ids_with_line_numbers();
  if (!keys_.ascending) compare_keys();
  if (!outputs_.ascending) {
    compare_outputs();
    compare_outputs_with_directories();
  }
  if (failed_) return false;
  // A run reads the jobs lane by lane. A single lane is the whole table, and needs no index.
  if (database_.number("SELECT count(*) FROM lane") > 1) {
    database_.execute("CREATE INDEX IF NOT EXISTS job_lane ON job(priority, host)");
  }
  write_progress();
  return true;
}

// Writes to the table `meta` what the next import needs to continue: the number and the hash of the
// lines, and how far ids, keys and outputs are in order.
void Importer::write_progress() {
  auto set = database_.prepare("INSERT OR REPLACE INTO meta VALUES(?, ?)");
  const auto write = [&](std::string_view name, std::uint64_t value) { set.run(name, value); };
  write("lines", imported_.lines);
  write("jobs", imported_.jobs);
  write("hash", imported_.hash);
  for (const auto* order : {&ids_, &keys_, &outputs_}) {
    write(order->name + "_ascending", order->ascending ? 1 : 0);
    set.run("last_" + order->name, std::string_view(order->last));
  }
}

// Returns a line that is in the database, or an empty one if the number is that of a blank line.
RequestLine Importer::line_at(std::uint64_t number) {
  const bool found = input_of_.with(number).step();
  auto line = found ? stored_line(input_of_.text(0), options_.format) : RequestLine();
  input_of_.reset();
  return line;
}

// Finds texts that occur more than once in a column of the table `job`, such as an id that two
// lines have. Calls `on_repeated(text, line, first_line)` for each line with such a text, except
// for the first one, whose number is `first_line`. Considers only rows for which `condition`, an
// SQL expression, is true. Both are SQL of this program, never text of the input. Each column has
// one condition only, because its name is all that tells its index from those of other columns.
template <class OnRepeated>
void Importer::for_each_repeated(const std::string& column, const std::string& condition,
                                 const OnRepeated& on_repeated) {
  // With this index, SQLite need not sort the rows.
  database_.execute("CREATE INDEX IF NOT EXISTS job_" + column + " ON job(" + column + ") WHERE " +
                    condition);
  auto rows = database_.prepare("SELECT " + column + ", line FROM job WHERE " + condition +
                                " ORDER BY " + column + ", line");
  enum Column : int { kText, kLine };
  // Rows with the same text are neighbors, in the order of their lines. No text is empty.
  std::string text;
  std::uint64_t first_line = 0;  // the first line with `text`
  while (rows.step()) {
    const auto line = static_cast<std::uint64_t>(rows.number(kLine));
    if (rows.text(kText) == text) {
      on_repeated(text, line, first_line);
      continue;
    }
    text = rows.text(kText);
    first_line = line;
  }
}

void Importer::compare_ids() {
  for_each_repeated("id", "id IS NOT NULL",
                    [this](const std::string& id, std::uint64_t line, std::uint64_t first) {
                      report(line, line_at(line).id_position,
                             "the id \"" + printable(id) + "\" is that of line " +
                                 std::to_string(first) + ": each job needs its own id");
                    });
}

// Finds ids that are the number of a line without an id: that line has its number as its id.
void Importer::compare_ids_with_line_numbers() {
  auto row = database_.prepare(
      "SELECT a.line, b.line FROM job a JOIN job b ON b.line = CAST(a.id AS INTEGER) WHERE b.id IS "
      "NULL AND a.id = CAST(b.line AS TEXT) ORDER BY a.line");
  while (row.step()) {
    const auto line = static_cast<std::uint64_t>(row.number(0));
    const auto number = std::to_string(row.number(1));
    report(line, line_at(line).id_position,
           "the id \"" + number + "\" is that of line " + number + ", which has no id of its own");
  }
}

// Reports a key that an earlier line has too, unless both lines are the same request.
void Importer::compare_keys() {
  for_each_repeated("key", "typeof(key) = 'text'",
                    [this](const std::string& key, std::uint64_t line, std::uint64_t first) {
                      const auto other = line_at(line);
                      if (request_of(other) == request_of(line_at(first))) return;
                      report(line, other.key_position,
                             "the key \"" + printable(key) + "\" is that of line " +
                                 std::to_string(first) +
                                 ", a different request: a server would treat them as the same");
                    });
}

// Reports a file for a response that an earlier line names too. The name comes from the line's
// "output" or from its id.
void Importer::compare_outputs() {
  for_each_repeated("output", "output IS NOT NULL",
                    [this](const std::string& output, std::uint64_t line, std::uint64_t first) {
                      const auto other = line_at(line);
                      report(line, other.output.empty() ? other.id_position : other.output_position,
                             "the response would go to \"" + printable(output) +
                                 "\", like that of line " + std::to_string(first) +
                                 ": each needs its own file");
                    });
}

// Reports each response file that would have to be a directory for another line's response file, or
// whose temporary file has that name. For example, "d" cannot be a file beside "d/a", nor beside
// "d.part", to which the body for "d" is written until it is complete.
void Importer::compare_outputs_with_directories() {
  struct File {
    std::string path;
    std::uint64_t line = 0;
    bool is_reported = false;
  };
  auto rows = database_.prepare(
      "SELECT output, line FROM job WHERE output IS NOT NULL ORDER BY output, line");
  enum Column : int { kOutput, kLine };
  // The files whose paths are the beginning of the current path, such as "d", which precedes both
  // "d-1" and "d/a". In this order, all paths that begin with a path follow it without a gap.
  std::vector<File> beginnings;
  while (rows.step()) {
    const auto path = rows.text(kOutput);
    while (!beginnings.empty() && !path.starts_with(beginnings.back().path)) beginnings.pop_back();
    const auto line = static_cast<std::uint64_t>(rows.number(kLine));
    for (auto& file : beginnings) {
      const auto rest = path.substr(file.path.size());
      const bool is_directory = rest.starts_with('/');
      const bool is_temporary = rest == ".part" || rest == ".part.info";  // as in FileOptions
      if ((!is_directory && !is_temporary) || file.is_reported) continue;
      file.is_reported = true;
      const auto reported = line_at(file.line);
      report(file.line, reported.output.empty() ? reported.id_position : reported.output_position,
             "the response would go to \"" + printable(file.path) + "\", " +
                 (is_directory ? "which is the directory for" : "whose temporary file is") +
                 " that of line " + std::to_string(line) + ": each needs its own file");
    }
    beginnings.push_back({.path = std::string(path), .line = line});
  }
}

}  // namespace httpretry::batch
