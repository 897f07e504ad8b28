// SQLite, as far as the journal needs it. sqlite.cpp is the only file that sees its header.
#pragma once

#include <httpretry/batch/store.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace httpretry::batch {

class HTTPRETRY_API Database;

// A prepared statement. Keep it: preparing costs more than running it.
class HTTPRETRY_API Statement {
 public:
  Statement() = default;

  // Binds the parameters, from the first on, and makes it ready to step.
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
  // True while there is a row. Throws StoreError.
  bool step();
  // Steps to the end.
  template <class... Values>
  void run(const Values&... values) {
    with(values...);
    run_bound();
  }
  // With what was bound.
  void run_bound() {
    while (step()) continue;
    reset();
  }
  [[nodiscard]] bool ready() const { return statement_ != nullptr; }
  // Of the row.
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
  void bind(int index, std::string_view value);  // it must stay until `reset`
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

class HTTPRETRY_API Database {
 public:
  enum class Mode : std::uint8_t { Create, Write, Read };

  // An empty path is a database in a temporary file. Throws StoreError.
  Database(const std::string& path, Mode mode);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // One statement or several, without results.
  void execute(const std::string& sql);
  [[nodiscard]] Statement prepare(std::string_view sql) const;
  // The first value of the first row.
  [[nodiscard]] std::int64_t number(std::string_view sql) const;
  [[nodiscard]] const std::string& path() const { return path_; }
  // What the last call failed with, as a sentence.
  [[nodiscard]] StoreError error(int code) const;

 private:
  std::string path_;
  void* database_ = nullptr;
};

}  // namespace httpretry::batch
