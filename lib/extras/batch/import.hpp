// Import: reads the input into a database, line by line, and finds all that is wrong with it.
//
// A row of `job` is a line that was read and never changes. What has become of a job is in `state`;
// a job without a row there is queued. So the import writes once, and a run appends.
#pragma once

#include "line_policies.hpp"
#include "line_source.hpp"
#include "sqlite.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

namespace httpretry::batch {

// In `user_version` and `application_id` of the database ("hrtb").
inline constexpr int kJournalVersion = 2;
inline constexpr int kApplicationId = 0x68727462;

// Calls `on_problem`, if there is one, for a line of the input. `file`: its name.
HTTPRETRY_API void report_problem(const BatchOptions& options, const std::string& file,
                                  std::uint64_t line, int column, std::string message);

[[nodiscard]] std::string read_text(const Database& database, std::string_view name);
[[nodiscard]] std::int64_t read_number(const Database& database, std::string_view name);

// What is known of the lines that are in a database already.
struct Imported {
  std::uint64_t lines = 0;
  std::uint64_t jobs = 0;  // lines that are not empty; to count the rows takes seconds
  std::uint64_t hash = 0;
};
[[nodiscard]] Imported read_imported(const Database& database);

// Reads all lines of the input into a new database. Returns false after problems. Throws
// StoreError.
bool import_all(const BatchOptions& options, Database& database);
// Does the same with a database in a temporary file, in which it leaves the transaction open.
// Returns nullptr after problems.
HTTPRETRY_API std::unique_ptr<Database> import_to_temporary(const BatchOptions& options);

class Importer {
 public:
  // Continues after the lines that are there. `options` must outlive it.
  Importer(Database& database, const BatchOptions& options);

  // Adds all lines that `input` has left, compares ids and keys, and writes how far the import
  // came. Returns false if anything was wrong.
  bool add_all(LineSource& input);

 private:
  // How ids, keys and outputs came in so far: where each is above the one before, none occurs
  // twice.
  struct Order {
    std::string name;  // of its values in `meta`
    bool ascending = true;
    std::string last = {};
    void add(std::string_view text);
  };

  void add(std::uint64_t number, std::string_view text);
  void insert(std::uint64_t number, std::string_view text, const RequestLine& line);
  bool finish();
  void problem(std::uint64_t line, Position at, std::string message);
  [[nodiscard]] std::string file_of(std::uint64_t number, const RequestLine& line) const;
  std::int64_t host_number(const std::string& origin);
  template <class Repeated>
  void each_repeated(const std::string& column, const std::string& condition,
                     const Repeated& repeated);
  void compare_ids();
  void compare_ids_with_lines();
  void compare_keys();
  void compare_outputs();
  [[nodiscard]] RequestLine line_at(std::uint64_t number);
  void write_progress();

  Database& database_;
  const BatchOptions& options_;
  LinePolicies policies_;
  std::string file_;  // the name of the input
  Statement insert_;
  Statement insert_waiting_;
  Statement input_of_;
  std::unordered_map<std::string, std::int64_t> hosts_;
  std::unordered_map<std::int64_t, unsigned> lanes_;  // of each host: a bit for each priority
  Imported imported_;
  Order ids_{"ids"};
  Order keys_{"keys"};
  Order outputs_{"outputs"};
  bool failed_ = false;
};

}  // namespace httpretry::batch
