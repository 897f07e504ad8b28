// The wrapper of SQLite: its modes, its values, and the messages of its errors.
#include "lib/extras/batch/sqlite.hpp"
#include "tests/batch/folder.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

using namespace httpretry::batch;

TEST_CASE("an error of a database names the file, the cause and what helps") {
  const Folder folder;
  const auto missing = folder / "no/db";
  const auto no_directory = missing +
                            ": unable to open database file: No such file or directory; does its "
                            "directory exist, and is it writable?";
  CHECK_THROWS_WITH_AS(Database(missing, Database::Mode::Create), no_directory.c_str(), StoreError);

  const auto text = folder.write("text", std::string(1000, 'x'));
  Database no_database(text, Database::Mode::Write);
  const auto damaged = text + ": file is not a database; the file is damaged, or is not a journal";
  CHECK_THROWS_WITH_AS(no_database.execute("PRAGMA user_version"), damaged.c_str(), StoreError);
}

TEST_CASE("an error of a statement has no cause of an earlier error") {
  Database database("", Database::Mode::Create);
  CHECK_THROWS_AS(database.execute("ATTACH '/no/such/directory/db' AS other"), StoreError);
  const char* const message = "a temporary database: near \"nonsense\": syntax error";
  CHECK_THROWS_WITH_AS(database.execute("nonsense"), message, StoreError);
  CHECK_THROWS_WITH_AS(static_cast<void>(database.prepare("nonsense")), message, StoreError);
}

TEST_CASE("only the mode Create makes a file, and only the mode Read cannot change one") {
  const Folder folder;
  const auto path = folder / "db";
  for (const auto mode : {Database::Mode::Write, Database::Mode::Read}) {
    CHECK_THROWS_AS(Database(path, mode), StoreError);
    CHECK_FALSE(folder.has("db"));
  }
  Database(path, Database::Mode::Create).execute("CREATE TABLE t(n)");
  Database(path, Database::Mode::Write).execute("INSERT INTO t VALUES(7)");
  Database reader(path, Database::Mode::Read);
  CHECK(reader.number("SELECT n FROM t") == 7);
  CHECK_THROWS_AS(reader.execute("INSERT INTO t VALUES(8)"), StoreError);
  CHECK(reader.number("SELECT count(*) FROM t") == 1);
  CHECK(reader.number("SELECT n FROM t WHERE n = 8") == 0);
}

TEST_CASE("a statement binds its parameters in their order, and reads them back") {
  const Database database("", Database::Mode::Create);
  CHECK_FALSE(Statement().ready());
  auto row = database.prepare("SELECT ?, ?, ?, ?, ?");
  REQUIRE(row.ready());
  for (int turn = 0; turn < 2; ++turn) {
    row.with(7, std::string_view("text"), nullptr)
        .and_with(std::optional<std::int64_t>(), std::optional<std::int64_t>(9));
    REQUIRE(row.step());
    CHECK(row.number(0) == 7);
    CHECK(row.is_number(0));
    CHECK_FALSE(row.is_null(0));
    CHECK(row.text(1) == "text");
    CHECK_FALSE(row.is_number(1));
    CHECK(row.is_null(2));
    CHECK(row.number(2) == 0);
    CHECK(row.text(2).empty());
    CHECK(row.is_null(3));
    CHECK(row.number(4) == 9);
    CHECK_FALSE(row.step());
  }
  // A parameter that is not bound again is NULL.
  row.with(7);
  REQUIRE(row.step());
  CHECK(row.is_null(1));
  CHECK_THROWS_AS(row.with(1, 2, 3, 4, 5, 6), StoreError);
}
