// A wrapper of SQLite for the journal. Only sqlite.cpp includes the header of SQLite.
#pragma once

#include <httpretry/batch/store.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace httpretry::batch {
namespace detail {

class HTTPRETRY_API Database;

// A prepared statement. Keep and reuse it, because preparing costs more than running. It must not
// outlive its Database.
class HTTPRETRY_API Statement {
 public:
  Statement() = default;

  // Resets the statement and binds the parameters from the first one on.
  template <class... Values>
  Statement& with(const Values&... values) {
    reset();
    return and_with(values...);
  }
  // Binds the next parameters.
  template <class... Values>
  Statement& and_with(const Values&... values) {
    (bind(++bound_, values), ...);
    return *this;
  }
  // Moves to the next row. Returns false if there is no other row. Throws StoreError.
  bool step();
  // Binds the parameters and runs the statement to its end.
  template <class... Values>
  void run(const Values&... values) {
    with(values...);
    run_bound();
  }
  // Runs the statement to its end with the parameters that are bound.
  void run_bound() {
    while (step()) continue;
    reset();
  }
  // Returns whether this is a prepared statement, not an empty one.
  [[nodiscard]] bool ready() const { return statement_ != nullptr; }
  // The values of the current row. NULL reads as 0 and as an empty text.
  [[nodiscard]] bool is_null(int column) const;
  [[nodiscard]] bool is_number(int column) const;
  [[nodiscard]] std::int64_t number(int column) const;
  [[nodiscard]] std::string_view text(int column) const;  // until the next step
  void reset();

 private:
  friend class Database;
  void check(int code) const;
  void bind(int index, std::int64_t value);
  void bind(int index, std::uint64_t value) { bind(index, static_cast<std::int64_t>(value)); }
  void bind(int index, int value) { bind(index, static_cast<std::int64_t>(value)); }
  void bind(int index, std::string_view value);  // does not copy: `value` must live until `reset`
  void bind(int index, std::nullptr_t null);
  template <class T>
  void bind(int index, const std::optional<T>& value) {
    value ? bind(index, *value) : bind(index, nullptr);
  }

  struct Finalize {
    void operator()(void* statement) const;
  };
  std::unique_ptr<void, Finalize> statement_;
  const Database* database_ = nullptr;
  int bound_ = 0;  // parameters
};

// A connection to a database. One thread at a time may use it.
class HTTPRETRY_API Database {
 public:
  enum class Mode : std::uint8_t { Create, Write, Read };

  // Opens a database. An empty path is a database in a temporary file. Throws StoreError.
  Database(const std::string& path, Mode mode);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Runs one or more statements, and ignores their rows.
  void execute(const std::string& sql);
  [[nodiscard]] Statement prepare(std::string_view sql) const;
  // Returns the first value of the first row of a query.
  [[nodiscard]] std::int64_t number(std::string_view sql) const;
  [[nodiscard]] const std::string& path() const { return path_; }
  // Describes the failure of the last call, which returned `code`.
  [[nodiscard]] StoreError error(int code) const;

 private:
  std::string path_;
  void* database_ = nullptr;
};

}  // namespace detail
using detail::Database;
using detail::Statement;

}  // namespace httpretry::batch
