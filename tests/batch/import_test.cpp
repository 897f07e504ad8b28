// What is wrong with an input as a whole, and what happens where it changes.
#include "lib/extras/batch/text.hpp"
#include "tests/batch/journal_files.hpp"

#include <httpretry/batch/batch.hpp>

#include <doctest/doctest.h>

using namespace httpretry;
using namespace httpretry::batch;

namespace {

std::vector<std::string> problems_of(const std::string& input, Bodies bodies = Bodies::Inline) {
  const Folder folder;
  BatchOptions options;
  options.input = folder.write("in", input);
  options.bodies = bodies;
  std::vector<std::string> problems;
  options.on_problem = [&](const Problem& problem) {
    const auto text = to_string(problem);
    problems.push_back(text.substr(text.find("/in:") + 4));
  };
  const bool good = check_input(options).good;
  CHECK(good == problems.empty());
  return problems;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("every mistake in an input is named with its line and column") {
  const auto problems = problems_of(
      "http://a/\n"
      "{\"url\":\"http://a/\",\"tga\":1,\"id\":[]}\n"
      "\n"
      "nonsense\n"
      "{\"url\":\"http://a/\",\"policy\":\"nope\"}\n"
      "{\"url\":\"http://a/\",\"set\":{\"max_attempts\":\"x\"}}\r\n"
      "{\"url\":\"http://a/\"\n"
      "{\"url\":\"http://a/\",\"url\":\"http://b/\"}");
  REQUIRE(problems.size() == 7);
  CHECK(problems[0].starts_with("2:20: /tga: unknown key"));
  CHECK(problems[1].starts_with("2:33: /id: expected a string"));
  CHECK(problems[2].starts_with("4:1: "));
  CHECK(problems[3] == R"(5:29: no policy and no preset is named "nope")");
  CHECK(problems[4].starts_with("6:26: "));
  CHECK(problems[5].starts_with("7:19: "));
  CHECK(problems[6] == "8:20: /url: duplicate key, first defined at column 2");
}

TEST_CASE("one run reports every mistake: those in lines, and those between lines") {
  const auto problems = problems_of(
      R"({"id":"a","url":"http://a/","policy":"nope","body_file":"/no/such"}
{"id":"a","url":"http://a/","key":[]}
{"id":"a"}
{"id":"b","url":"http://a/","body":"1","key":"k","output":"o"}
{"id":"b","url":"http://a/","body":"2","key":"k","output":"o","tga":1}
{"id":"4"
)");
  CHECK(
      problems ==
      Texts{
          R"(1:38: no policy and no preset is named "nope")",
          "1:57: /body_file: cannot read body file /no/such: No such file or directory",
          "2:35: /key: expected a string, or true for a generated key, but this is an array",
          R"(3:1: it has no "url")", "5:63: /tga: unknown key; did you mean \"tag\"?",
          R"(6:10: expected "," or "}", found the end of the text)",
          R"(2:7: the id "a" is that of line 1: each job needs its own id)",
          R"(3:7: the id "a" is that of line 1: each job needs its own id)",
          R"(5:7: the id "b" is that of line 4: each job needs its own id)",
          R"(5:46: the key "k" is that of line 4, a different request: a server would treat them )"
          "as the same",
          R"(5:59: the response would go to "o", like that of line 4: each needs its own file)"});
}

TEST_CASE("a file for a body that is missing or cannot be read is a mistake with a position") {
  const Folder folder;
  const auto line = [](const std::string& path) {
    return R"({"url":"http://a/","body_file":")" + path + "\"}\n";
  };
  const auto good = folder.write("body", "x");
  CHECK(problems_of(line(good)).empty());
  const auto problems = problems_of(line(good) + line(folder / ".") + line(good + "2"));
  REQUIRE(problems.size() == 2);
  CHECK(problems[0].starts_with("2:32: /body_file: cannot read body file " + (folder / ".")));
  CHECK(problems[1].starts_with("3:32: /body_file: cannot read body file " + good + "2: No such"));
}

TEST_CASE("an input may begin with a byte order mark and end without a line end") {
  CHECK(problems_of("\xEF\xBB\xBF{\"url\":\"http://a/\"}\r\nhttp://b/").empty());
  CHECK(problems_of("").empty());
}

TEST_CASE("an input that was joined from several files may have several byte order marks") {
  CHECK(
      problems_of("http://a/\n\xEF\xBB\xBF{\"url\":\"http://b/\"}\n\xEF\xBB\xBFhttp://c/").empty());
}

TEST_CASE("equal ids are mistakes, also where a line has none and its number is the id") {
  CHECK(problems_of(R"({"id":"b","url":"http://a/"}
{"id":"a","url":"http://a/"}
{"url":"http://a/","id":"b"}
{"url":"http://a/","id":"b"})") ==
        Texts{R"(3:25: the id "b" is that of line 1: each job needs its own id)",
              R"(4:25: the id "b" is that of line 1: each job needs its own id)"});
  CHECK(problems_of("http://a/\n{\"url\":\"http://a/\",\"id\":1}") ==
        Texts{R"(2:25: the id "1" is that of line 1, which has no id of its own)"});
  CHECK(problems_of("http://a/\n{\"url\":\"http://a/\",\"id\":\"01\"}").empty());
}

TEST_CASE("equal keys are a mistake where the requests differ, and none where they do not") {
  const std::string first = R"({"url":"http://a/","key":"k","body":"x"})";
  CHECK(problems_of(first + "\n" + first).empty());
  CHECK(
      problems_of(first + "\n" + R"({"key":"k","url":"http://a/","body":"y"})") ==
      Texts{R"(2:8: the key "k" is that of line 1, a different request: a server would treat them )"
            "as the same"});
}

TEST_CASE("two responses for one file are a mistake") {
  const std::string first = R"({"url":"http://a/","output":"b/x"})";
  CHECK(
      problems_of(first + "\n" + R"({"url":"http://a/2","output":"b/x"})") ==
      Texts{
          R"(2:30: the response would go to "b/x", like that of line 1: each needs its own file)"});
  CHECK(problems_of(first + "\n" + R"({"url":"http://a/2","output":"b/y"})").empty());
  // Files that are named by ids.
  const std::string named = R"({"url":"http://a/","id":"é"})";
  CHECK(problems_of(named + "\n" + R"({"output":"%C3%A9","url":"http://a/"})").empty());
  CHECK(
      problems_of(named + "\n" + R"({"output":"%C3%A9","url":"http://a/"})", Bodies::Files) ==
      Texts{
          R"(2:11: the response would go to "%C3%A9", like that of line 1: each needs its own file)"});
  // A line that is only a URL has no position for its name.
  CHECK(
      problems_of("{\"url\":\"http://a/\",\"output\":\"2\"}\nhttp://a/2", Bodies::Files) ==
      Texts{R"(2:1: the response would go to "2", like that of line 1: each needs its own file)"});
}

TEST_CASE("a response for a file that is the directory of another one is a mistake") {
  const auto line = [](const std::string& output) {
    return R"({"url":"http://a/","output":")" + output + "\"}\n";
  };
  const std::string problem =
      R"(:29: the response would go to "d", which is the directory for that of line )";
  const std::string end = ": each needs its own file";
  CHECK(problems_of(line("d") + line("d-1") + line("d/a") + line("d/b")) ==
        Texts{"1" + problem + "3" + end});
  CHECK(problems_of(line("d/a/b") + line("d")) == Texts{"2" + problem + "1" + end});
  CHECK(problems_of(line("d/a") + line("d/ab") + line("dd") + line("e/d")).empty());
  // Files that are named by ids.
  CHECK(problems_of(R"({"url":"http://a/","id":"d"})"
                    "\n" +
                        line("d/a"),
                    Bodies::Files) ==
        Texts{R"(1:25: the response would go to "d", which is the directory for that of line 2)" +
              end});
}

TEST_CASE("a response for a file whose name is too long is a mistake") {
  const std::string longest(250, 'x');
  const auto line = [](const std::string& output) {
    return R"({"url":"http://a/","output":")" + output + "\"}\n";
  };
  CHECK(problems_of(line(longest) + line("d/" + longest) + line("y" + longest + "/d")).empty());
  CHECK(problems_of(line("d/x" + longest)) == Texts{R"(1:29: the response would go to "d/x)" +
                                                    longest + "\", a name of more than 250 bytes"});
  // Files that are named by ids.
  const auto named = R"({"url":"http://a/","id":"/)" + longest.substr(3) + "\"}";
  CHECK(problems_of(named + "\n").empty());
  CHECK(problems_of(named, Bodies::Files).empty());
  const auto too_long = R"({"url":"http://a/","id":"/)" + longest.substr(2) + "\"}";
  CHECK(problems_of(too_long).empty());
  CHECK(problems_of(too_long, Bodies::Files).size() == 1);
}

TEST_CASE("a response for a file that another one needs until it is complete is a mistake") {
  const auto line = [](const std::string& output) {
    return R"({"url":"http://a/","output":")" + output + "\"}\n";
  };
  const std::string problem =
      R"(:29: the response would go to "a/x", whose temporary file is that of line )";
  const std::string end = ": each needs its own file";
  CHECK(problems_of(line("a/x") + line("a/x.part")) == Texts{"1" + problem + "2" + end});
  CHECK(problems_of(line("a/x.part.info") + line("a/x")) == Texts{"2" + problem + "1" + end});
  CHECK(problems_of(line("x") + line("x.parts") + line("y.part")).empty());
  // Files that are named by ids.
  const std::string named = R"({"url":"http://a/","id":"x"})"
                            "\n"
                            R"({"url":"http://a/","id":"x.part"})";
  CHECK(problems_of(named).empty());
  CHECK(
      problems_of(named, Bodies::Files) ==
      Texts{R"(1:25: the response would go to "x", whose temporary file is that of line 2)" + end});
}

TEST_CASE("an input with a mistake leaves nothing behind") {
  JournalFiles files;
  files.folder.write("in", "http://a/\nhttp://\n");
  CHECK(files.open() == nullptr);
  CHECK(files.problems.size() == 1);
  CHECK_FALSE(files.folder.has("j.db"));
  CHECK_FALSE(files.folder.has("j.db.new"));
  CHECK_FALSE(files.folder.has("j.db-lock"));
  CHECK_FALSE(files.folder.has("results"));
}

TEST_CASE("lines may be appended, and a mistake in them changes nothing") {
  JournalFiles files;
  files.input_of(3);
  CHECK(files.open()->counts().queued == 3);
  files.folder.append("in", "nonsense\n");
  CHECK(files.open() == nullptr);
  CHECK(files.problems.size() == 1);
  CHECK(files.problems.front().starts_with("4:1: "));
  files.folder.write("in", "");
  files.input_of(5);
  CHECK(files.open()->counts().queued == 5);
  CHECK(files.open()->counts().queued == 5);
}

TEST_CASE("an appended line is compared with those that were there") {
  JournalFiles files;
  files.folder.write(
      "in", "{\"url\":\"http://a/\",\"id\":\"a\"}\n{\"url\":\"http://a/\",\"id\":\"b\"}\n");
  REQUIRE(files.open() != nullptr);
  files.folder.append("in", "{\"url\":\"http://a/\",\"id\":\"a\"}\n");
  CHECK(files.open() == nullptr);
  CHECK(files.problems.front().starts_with(R"(3:25: the id "a" is that of line 1: each)"));
}

TEST_CASE("a line that was changed is named, and so is one that is missing") {
  JournalFiles files;
  files.input_of(20);
  REQUIRE(files.open() != nullptr);
  auto lines = files.folder.lines("in");
  lines[16] += "x";
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  files.folder.write("in", text);
  CHECK(files.open() == nullptr);
  REQUIRE(files.problems.size() == 1);
  CHECK(files.problems.front().starts_with(
      "17:1: this line has changed since it was read. Put it back"));

  files.folder.write("in", "http://a/1\n");
  CHECK(files.open() == nullptr);
  REQUIRE(files.problems.size() == 1);
  CHECK(files.problems.front().starts_with("2:1: this line is missing: there were 20 lines"));
}

TEST_CASE("of many changed lines the first are named and the others counted") {
  JournalFiles files;
  files.input_of(50);
  REQUIRE(files.open() != nullptr);
  files.folder.write("in", "");
  files.input_of(50, 1000);
  CHECK(files.open() == nullptr);
  REQUIRE(files.problems.size() == 21);
  CHECK(files.problems.back().find("30 more lines have changed") != std::string::npos);
}

TEST_CASE("up to twenty changed lines are all named") {
  for (const std::size_t count : {std::size_t{20}, std::size_t{21}}) {
    CAPTURE(count);
    JournalFiles files;
    files.input_of(count);
    REQUIRE(files.open() != nullptr);
    files.folder.write("in", "");
    files.input_of(count, 1000);
    CHECK(files.open() == nullptr);
    REQUIRE(files.problems.size() == count);
    CHECK(files.problems[19].starts_with("20:1: this line has changed since it was read. Put it"));
    if (count == 21) CHECK(files.problems[20] == " 1 more lines have changed");
  }
}

TEST_CASE("blank lines and the results in dead letters are no changes beside a changed line") {
  JournalFiles files;
  const std::string last_line = "http://a/5\n";
  files.folder.write("in",
                     "{\"url\":\"http://a/1\",\"last\":{\"n\":1}}\n\n\nhttp://a/4\n" + last_line);
  REQUIRE(files.open() != nullptr);
  files.folder.write(
      "in", "{\"url\":\"http://a/1\",\"last\":{\"n\":2}}\n \t\nx\nhttp://b/\n" + last_line);
  CHECK(files.open() == nullptr);
  REQUIRE(files.problems.size() == 2);
  CHECK(files.problems[0].starts_with("3:1: this line has changed since it was read"));
  CHECK(files.problems[1].starts_with("4:1: this line has changed since it was read"));
}

TEST_CASE("hosts behind the first 20,000 share queues") {
  JournalFiles files;
  files.folder.write("in", "http://a/1\n");
  REQUIRE(files.open() != nullptr);
  // As if the input had 19,998 other hosts.
  open_database(files.folder / "j.db", Database::Mode::Write)
      ->execute(
          "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 19999) "
          "INSERT INTO host(number, name) SELECT i, 'http://h' || i FROM n");
  files.folder.append("in", "http://b/2\nhttp://c/3\nhttp://c/4\nhttp://a/5\n");
  const auto journal = files.open();
  REQUIRE(journal != nullptr);
  std::vector<std::string> hosts(5);
  for (const auto& job : take(*journal, 9)) hosts.at(job.number - 1) = job.host;
  const auto shared = "other hosts " + std::to_string(hash_line(0, "http://c") % 1000);
  CHECK(hosts == std::vector<std::string>{"http://a", "http://b", shared, shared, "http://a"});
}

TEST_CASE("ids, keys and files in ascending order, and jobs of a single queue, need no index") {
  struct Row {
    const char* first;
    const char* second;
    int is_ascending;
  };
  for (const auto& row : {Row{"a", "b", 1}, Row{"b", "a", 0}, Row{"9", "10", 1}, Row{"10", "9", 0},
                          Row{"ab", "aba", 1}, Row{"ab", "aa", 0}}) {
    CAPTURE(row.first);
    CAPTURE(row.second);
    const auto line = [](const std::string& text) {
      return R"({"url":"http://a/","id":")" + text + R"(","key":")" + text + R"(","output":")" +
             text + "\"}\n";
    };
    JournalFiles files;
    files.folder.write("in", line(row.first) + line(row.second));
    REQUIRE(files.open() != nullptr);
    const Database database(files.folder / "j.db", Database::Mode::Read);
    const auto has_index = [&database](const std::string& name) {
      return database.number("SELECT count(*) FROM sqlite_master WHERE name = 'job_" + name + "'");
    };
    for (const auto* const column : {"id", "key", "output"}) {
      CAPTURE(column);
      const std::string name = column;
      CHECK(database.number("SELECT value FROM meta WHERE name = '" + name + "s_ascending'") ==
            row.is_ascending);
      CHECK(has_index(name) == 1 - row.is_ascending);
    }
    CHECK(has_index("lane") == 0);
  }
  for (const auto* const second : {"http://b/", R"({"url":"http://a/","priority":"low"})"}) {
    JournalFiles files;
    files.folder.write("in", std::string("http://a/\n") + second);
    REQUIRE(files.open() != nullptr);
    const Database database(files.folder / "j.db", Database::Mode::Read);
    CHECK(database.number("SELECT count(*) FROM sqlite_master WHERE name = 'job_lane'") == 1);
  }
}

TEST_CASE("an import that a crash ended is not taken for a journal") {
  JournalFiles files;
  files.input_of(3);
  files.folder.write("j.db.new", "half of a database");
  const auto journal = files.open();
  REQUIRE(journal != nullptr);
  CHECK(journal->counts().queued == 3);
}

TEST_CASE("what is no journal is refused") {
  JournalFiles files;
  files.input_of(1);
  files.folder.write("j.db", "something else entirely, and long enough to be no header of SQLite");
  CHECK_THROWS_WITH_AS(files.open(), doctest::Contains("the file is damaged, or is not a journal"),
                       StoreError);
  files.folder.write("j.db", "");
  CHECK_THROWS_WITH_AS(files.open(), doctest::Contains("is not a journal of httpretry batch"),
                       StoreError);
}

TEST_CASE("a journal belongs to one process, also within one process") {
  JournalFiles files;
  files.input_of(1);
  const auto journal = files.open();
  CHECK_THROWS_WITH_AS(
      files.open(),
      doctest::Contains(("is in use by process " + std::to_string(::getpid())).c_str()),
      StoreError);
  std::filesystem::create_symlink(files.folder / "j.db", files.folder / "link");
  CHECK_THROWS_WITH_AS(JournalLock(files.folder / "link"), doctest::Contains("is in use"),
                       StoreError);
  // Asking is no harm.
  CHECK(read_status(files.folder / "j.db").process == ::getpid());
  CHECK_THROWS_AS(files.open(), StoreError);
}

TEST_CASE("a dry run counts requests by host and policy") {
  const Folder folder;
  BatchOptions options;
  options.input = folder.write("in", R"(http://a/1
http://b/1
http://a/2
{"url":"http://a/3","body":"x","policy":"curl"}
{"url":"http://a/4","body":"x","key":true,"set":{"max_attempts":2},"not_before":"2030-01-01T00:00:00Z"}
)");
  const auto report = check_input(options);
  CHECK(report.good);
  CHECK(report.jobs == 5);
  using Counted = std::vector<std::pair<std::string, std::uint64_t>>;
  CHECK(report.hosts == Counted{{"http://a", 4}, {"http://b", 1}});
  CHECK(report.policies == Counted{{"standard", 3}, {"curl", 1}, {"standard with settings", 1}});
  CHECK(report.unsafe == 1);
  CHECK(report.later == 1);
  CHECK_FALSE(folder.has("in.httpretry.db"));
}
