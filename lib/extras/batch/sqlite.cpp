#include "sqlite.hpp"

#include <sqlite3.h>

#include <system_error>

namespace httpretry::batch {
namespace {

::sqlite3_stmt* as_statement(void* statement) { return static_cast<::sqlite3_stmt*>(statement); }
::sqlite3* as_database(void* database) { return static_cast<::sqlite3*>(database); }

// How long to wait for another process that reads or copies the journal.
constexpr int kBusyTimeout = 5000;  // milliseconds

// Returns what the user can do about an error, as the end of its message.
std::string advice(int code) {
  switch (code & 0xFF) {
    case SQLITE_FULL: return "; free some space and run the same command again";
    case SQLITE_BUSY: return "; another program uses the file";
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return "; the file is damaged, or is not a journal";
    case SQLITE_CANTOPEN: return "; does its directory exist, and is it writable?";
    default: return "";
  }
}

}  // namespace

void Statement::Finalize::operator()(void* statement) const {
  ::sqlite3_finalize(as_statement(statement));
}

bool Statement::step() {
  const int code = ::sqlite3_step(as_statement(statement_.get()));
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  const auto error = database_->error(code);
  reset();
  throw error;
}

void Statement::reset() {
  ::sqlite3_reset(as_statement(statement_.get()));
  ::sqlite3_clear_bindings(as_statement(statement_.get()));
  bound_ = 0;
}

bool Statement::is_null(int column) const {
  return ::sqlite3_column_type(as_statement(statement_.get()), column) == SQLITE_NULL;
}

bool Statement::is_number(int column) const {
  return ::sqlite3_column_type(as_statement(statement_.get()), column) == SQLITE_INTEGER;
}

std::int64_t Statement::number(int column) const {
  return ::sqlite3_column_int64(as_statement(statement_.get()), column);
}

// Throws StoreError if SQLite has no memory for the text.
std::string_view Statement::text(int column) const {
  auto* const statement = as_statement(statement_.get());
  const auto* const bytes = ::sqlite3_column_text(statement, column);
  if (bytes == nullptr) {
    // NULL is an empty text. For any other value, SQLite had no memory for its text.
    const bool is_sql_null = ::sqlite3_column_type(statement, column) == SQLITE_NULL;
    if (!is_sql_null) throw database_->error(SQLITE_NOMEM);
    return {};
  }
  return {reinterpret_cast<const char*>(bytes),
          static_cast<std::size_t>(::sqlite3_column_bytes(statement, column))};
}

void Statement::check(int code) const {
  if (code != SQLITE_OK) throw database_->error(code);
}

void Statement::bind(int index, std::int64_t value) {
  check(::sqlite3_bind_int64(as_statement(statement_.get()), index, value));
}

void Statement::bind(int index, std::string_view value) {
  check(::sqlite3_bind_text64(as_statement(statement_.get()), index, value.data(), value.size(),
                              SQLITE_STATIC, SQLITE_UTF8));
}

void Statement::bind(int index, std::nullptr_t /*null*/) {
  check(::sqlite3_bind_null(as_statement(statement_.get()), index));
}

// Opens the database with extended result codes, because error() reports the cause of an I/O error.
Database::Database(const std::string& path, Mode mode) : path_(path) {
  int flags = mode == Mode::Read ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  if (mode == Mode::Create) flags |= SQLITE_OPEN_CREATE;
  ::sqlite3* opened = nullptr;
  // No mutex is needed, because one thread at a time uses the connection.
  const int code = ::sqlite3_open_v2(path.c_str(), &opened, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  database_ = opened;
  if (code != SQLITE_OK) {
    const auto failed = error(code);
    ::sqlite3_close(opened);
    throw failed;
  }
  ::sqlite3_extended_result_codes(opened, /*onoff=*/1);
  ::sqlite3_busy_timeout(opened, kBusyTimeout);
}

Database::~Database() { ::sqlite3_close_v2(as_database(database_)); }

void Database::execute(const std::string& sql) {
  const int code = ::sqlite3_exec(as_database(database_), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) throw error(code);
}

// Tells SQLite that the statement will be used many times.
Statement Database::prepare(std::string_view sql) const {
  ::sqlite3_stmt* prepared = nullptr;
  const int code =
      ::sqlite3_prepare_v3(as_database(database_), sql.data(), static_cast<int>(sql.size()),
                           SQLITE_PREPARE_PERSISTENT, &prepared, nullptr);
  if (code != SQLITE_OK) throw error(code);
  Statement statement;
  statement.statement_.reset(prepared);
  statement.database_ = this;
  return statement;
}

std::int64_t Database::number(std::string_view sql) const {
  auto statement = prepare(sql);
  return statement.step() ? statement.number(0) : 0;
}

StoreError Database::error(int code) const {
  auto text = (path_.empty() ? "a temporary database" : path_) + ": ";
  text += database_ != nullptr ? ::sqlite3_errmsg(as_database(database_)) : ::sqlite3_errstr(code);
  const int system = database_ != nullptr ? ::sqlite3_system_errno(as_database(database_)) : 0;
  const bool about_file = (code & 0xFF) == SQLITE_IOERR || (code & 0xFF) == SQLITE_CANTOPEN;
  if (about_file && system != 0) text += ": " + std::generic_category().message(system);
  return StoreError(text + advice(code));
}

}  // namespace httpretry::batch
