// Import reads the input into a database, line by line, and reports all its problems.
//
// The table `job` has a row for each line, which never changes. The table `state` has the state of
// each job; a job without a row there is queued. So the import writes once, and a run appends.
#pragma once

#include "line_policies.hpp"
#include "line_source.hpp"
#include "own_files.hpp"
#include "sqlite.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

namespace httpretry::batch {

// The `user_version` and the `application_id` ("hrtb") of the database.
inline constexpr int kJournalVersion = 2;
inline constexpr int kApplicationId = 0x68727462;

// Both return a value of the table `meta`, or an empty string or 0 if it has no such value.
[[nodiscard]] std::string read_meta_text(const Database& database, std::string_view name);
[[nodiscard]] std::int64_t read_meta_number(const Database& database, std::string_view name);

// A summary of the lines that are in a database already.
struct Imported {
  std::uint64_t lines = 0;
  std::uint64_t jobs = 0;  // lines that are not blank; counting their rows would take seconds
  std::uint64_t hash = 0;  // of all lines
};
[[nodiscard]] Imported read_imported(const Database& database);

// The place of the files that lines name as their bodies ("body_file").
enum class BodyFiles : std::uint8_t {
  Here,       // on this machine: a file that cannot be read is a problem
  Elsewhere,  // on that of a worker
};

// Creates the tables and reads all lines of the input into them. Returns false after problems.
// Throws StoreError.
bool import_all(const BatchOptions& options, Database& database, BodyFiles body_files);

namespace detail {

// Calls `on_problem`, if it is set, with a problem in line `line` of `file`.
HTTPRETRY_API void report_problem(const BatchOptions& options, const std::string& file,
                                  std::uint64_t line, int column, std::string message);

// Calls import_all for a temporary database, which it returns with the transaction still open.
// Returns nullptr after problems.
HTTPRETRY_API std::unique_ptr<Database> import_to_temporary(const BatchOptions& options,
                                                            BodyFiles body_files);

}  // namespace detail
using detail::import_to_temporary;
using detail::report_problem;

// Adds lines to a database within a transaction of the caller.
class Importer {
 public:
  // Continues after the lines that are in the database. `options` must outlive it.
  Importer(Database& database, const BatchOptions& options, BodyFiles body_files);

  // Adds the remaining lines of `input`, and checks that ids, keys and outputs are unique. Then
  // writes the progress of the import. Returns false after problems.
  bool add_all(LineSource& input);

 private:
  // Notes whether ids, keys or outputs are in ascending order so far. If they are, none occurs
  // twice, and no comparison is needed.
  struct Order {
    std::string name;  // part of the names of its values in `meta`
    bool ascending = true;
    std::string last = {};
    void add(std::string_view text);
  };

  void add(std::uint64_t line_number, std::string_view text);
  void insert(std::uint64_t line_number, std::string_view text, const RequestLine& line);
  void insert_lane(std::int64_t host, Priority priority);
  bool finish();
  void check_body_file(std::uint64_t line_number, const RequestLine& line);
  void check_output(std::uint64_t line_number, const RequestLine& line, const std::string& output);
  void report(std::uint64_t line, Position at, std::string message);
  [[nodiscard]] std::string file_of(std::uint64_t number, const RequestLine& line) const;
  std::int64_t host_number(const std::string& origin);
  template <class OnRepeated>
  void for_each_repeated(const std::string& column, const std::string& condition,
                         const OnRepeated& on_repeated);
  void compare_ids();
  void compare_ids_with_line_numbers();
  void compare_keys();
  void compare_outputs();
  void compare_outputs_with_directories();
  [[nodiscard]] RequestLine line_at(std::uint64_t number);
  void write_progress();

  Database& database_;
  const BatchOptions& options_;
  BodyFiles body_files_;
  LinePolicies policies_;
  std::string file_;    // the name of the input
  OwnFiles own_files_;  // that a response body would replace; by paths relative to the directory
  Statement insert_;
  Statement insert_waiting_;
  Statement input_of_;
  std::unordered_map<std::string, std::int64_t> hosts_;
  std::unordered_map<std::int64_t, unsigned> lanes_;  // by host: a bit for each priority
  Imported imported_;
  Order ids_{"ids"};
  Order keys_{"keys"};
  Order outputs_{"outputs"};
  bool failed_ = false;
};

}  // namespace httpretry::batch
