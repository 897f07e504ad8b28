// The files of a batch: which are its own, and which those of its earlier runs.
#include "lib/extras/batch/file_lock.hpp"
#include "lib/extras/batch/own_files.hpp"
#include "lib/extras/batch/sqlite.hpp"
#include "tests/batch/folder.hpp"

#include <httpretry/batch/batch.hpp>

#include <doctest/doctest.h>

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

using namespace httpretry;
using namespace httpretry::batch;

namespace {

// The files of a batch of three requests, which no test sends.
struct BatchFiles {
  BatchFiles() {
    options.input = folder.write("in", "http://a.test/1\nhttp://a.test/2\nhttp://a.test/3\n");
    options.journal = folder / "j.db";
    options.durability = Durability::Process;
  }
  void change_journal(const std::string& sql) const {
    Database(options.journal, Database::Mode::Write).execute(sql);
  }
  // Returns the message of the exception.
  template <class Exception>
  [[nodiscard]] std::string refusal() const {
    try {
      static_cast<void>(Batch::open(options));
    } catch (const Exception& error) {
      return error.what();
    }
    return "";
  }

  Folder folder;
  BatchOptions options;
};

}  // namespace

TEST_CASE("results and dead letters may be added until a job has ended, and not left out") {
  BatchFiles batch;
  REQUIRE(Batch::open(batch.options) != nullptr);
  for (const auto& [member, name] :
       {std::pair(&BatchOptions::results, "results"), std::pair(&BatchOptions::dead, "dead")}) {
    batch.change_journal("INSERT OR REPLACE INTO state(line, state, until) VALUES(1, 4, 0)");
    const auto path = batch.folder / name;
    batch.options.*member = path;
    REQUIRE(Batch::open(batch.options) != nullptr);
    REQUIRE(Batch::open(batch.options) != nullptr);
    batch.options.*member = path + "2";
    const auto wrong = batch.options.journal + ": its " + name + " are in " + path +
                       ": use this file again, or start over with --fresh";
    CHECK(batch.refusal<StoreError>() == wrong);
    batch.options.*member = "";
    CHECK(batch.refusal<StoreError>() == wrong);
    batch.change_journal(std::string("DELETE FROM meta WHERE name = '") + name + "'");
    const auto added = batch.options.journal + " was run without " + name +
                       ": leave them out again, or start over with --fresh";
    for (const auto* const state : {"2", "3"}) {
      batch.change_journal(std::string("UPDATE state SET state = ") + state);
      batch.options.*member = path;
      CHECK(batch.refusal<StoreError>() == added);
      batch.options.*member = "";
      CHECK(batch.refusal<StoreError>().empty());
    }
  }
}

TEST_CASE("an input is read in the format of the first run") {
  BatchFiles batch;
  batch.options.format = InputFormat::Urls;
  REQUIRE(Batch::open(batch.options) != nullptr);
  batch.options.format = InputFormat::Auto;
  CHECK(batch.refusal<StoreError>() ==
        batch.options.journal +
            ": its input was read as urls: use this --input-format again, or start over with "
            "--fresh");
}

TEST_CASE("a file of a batch has one purpose") {
  BatchFiles batch;
  const auto& options = batch.options;
  const auto shared = [](const std::string& path, const std::string& first,
                         const std::string& second) {
    return path + " is the file for the " + first + " and cannot also be that for the " + second +
           ": use another one";
  };
  batch.options.results = options.input;
  CHECK(batch.refusal<std::invalid_argument>() == shared(options.input, "input", "results"));
  batch.options.results = batch.options.dead = batch.folder / "r";
  CHECK(batch.refusal<std::invalid_argument>() == shared(options.dead, "results", "dead letters"));
  batch.options.dead = "";
  for (const auto& [path, purpose] :
       {std::pair(options.input, "input"), std::pair(options.journal, "journal"),
        std::pair(options.results, "results")}) {
    batch.options.other_files = {{"metrics", path}};
    const auto message = shared(path, purpose, "metrics");
    CHECK(batch.refusal<std::invalid_argument>() == message);
  }
  batch.options.other_files = {{"metrics", batch.folder / "m"}, {"archive", batch.folder / "m"}};
  CHECK(batch.refusal<std::invalid_argument>().empty());
}

TEST_CASE("only the input may be a standard stream") {
  BatchFiles batch;
  const auto no_stream = [](const std::string& purpose) {
    return "expected a file for the " + purpose + ", not standard output: a later run continues it";
  };
  batch.options.dead = "-";
  CHECK(batch.refusal<std::invalid_argument>() == no_stream("dead letters"));
  batch.options.results = "-";
  CHECK(batch.refusal<std::invalid_argument>() == no_stream("results"));
  batch.options.journal = "-";
  CHECK(batch.refusal<std::invalid_argument>() == no_stream("journal"));
  batch.options.journal = "";
  batch.options.input = "-";
  CHECK(batch.refusal<std::invalid_argument>() == "standard input needs a journal with a name");
}

TEST_CASE("the summary of a batch counts the jobs that have ended by host, state, status, reason") {
  BatchFiles batch;
  REQUIRE(Batch::open(batch.options) != nullptr);
  batch.change_journal(
      "INSERT INTO state(line, state, status, reason) VALUES(1, 3, 404, 'not_retryable'), "
      "(2, 2, 200, NULL), (3, 2, 200, NULL)");
  const auto opened = Batch::open(batch.options);
  REQUIRE(opened != nullptr);
  CHECK(opened->counts().done == 2);
  CHECK(opened->counts().dead == 1);
  CHECK(opened->counts().queued == 0);
  CHECK_FALSE(opened->next_due().has_value());
  const auto rows = opened->summary();
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].host == "http://a.test");
  CHECK(rows[0].state == State::Done);
  CHECK(rows[0].status == 200);
  CHECK(rows[0].reason.empty());
  CHECK(rows[0].count == 2);
  CHECK(rows[1].state == State::Dead);
  CHECK(rows[1].status == 404);
  CHECK(rows[1].reason == "not_retryable");
  CHECK(rows[1].count == 1);
  const auto status = read_status(batch.options.journal);
  CHECK(status.input == batch.options.input);
  CHECK(status.runs == 2);
  CHECK(status.process == ::getpid());
  CHECK_FALSE(status.next_due.has_value());
}

TEST_CASE("the lock of a journal names its process, and is gone with it") {
  const Folder folder;
  const auto path = folder / "j";
  CHECK_FALSE(JournalLock::owner(path).has_value());
  folder.write("j-lock", std::string(30, '9'));  // a crash has left it
  CHECK_FALSE(JournalLock::owner(path).has_value());
  {
    const JournalLock lock(path);
    CHECK(JournalLock::owner(path) == ::getpid());
    CHECK(folder.read("j-lock") == std::to_string(::getpid()));
    folder.write("j-lock", "x");
    CHECK(JournalLock::owner(path) == 0);
    const auto message = path + " is in use: wait until it ends, or use another journal";
    CHECK_THROWS_WITH_AS(JournalLock{path}, message.c_str(), StoreError);
  }
  CHECK_FALSE(folder.has("j-lock"));
  CHECK_FALSE(JournalLock::owner(path).has_value());
}

TEST_CASE("the own files of a run are those that it is told, and those beside its journal") {
  const Folder folder;
  const auto root = std::filesystem::canonical(folder / "").string() + "/";
  BatchOptions options;
  options.input = root + "in";
  options.results = root + "d/results";
  options.dead = root + "dead";
  options.other_files = {{"metrics", root + "m"}, {"archive", ""}};
  OwnFiles files = {{root + "in", "input"},
                    {root + "d/results", "results"},
                    {root + "dead", "dead letters"},
                    {root + "m", "metrics"}};
  for (const auto* const suffix : {"", "-wal", "-shm", "-lock"}) {
    files[root + "in.httpretry.db" + suffix] = "journal";
  }
  CHECK(own_files(options) == files);
  options.directory = root + "d";
  CHECK(own_files_below_directory(options) == OwnFiles{{"results", "results"}});
  options.directory = root;
  OwnFiles below;
  for (const auto& [path, purpose] : files) below[path.substr(root.size())] = purpose;
  CHECK(own_files_below_directory(options) == below);
}
