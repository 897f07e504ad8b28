// How messages quote texts, values and places of a file.
#include "lib/core/json/detail/json.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace httpretry;

namespace {

using Shown = std::vector<std::pair<std::string, std::string>>;

std::string letters(std::size_t count) { return std::string(count, 'a'); }

// Returns the root of the tree.
const JsonNode& read_into(JsonTree& tree, const std::string& text) {
  Problems problems("test");
  read_json(text, tree, problems);
  REQUIRE(tree.root != nullptr);
  return *tree.root;
}

}  // namespace

TEST_CASE("a line of a message is cut after 200 bytes, and not within a character") {
  for (const auto& row : Shown{
           {"", ""},
           {letters(200), letters(200)},
           {letters(201), letters(200) + "..."},
           {letters(198) + "\xc3\xa9", letters(198) + "\xc3\xa9"},
           {letters(198) + "\xc3\xa9z", letters(198) + "\xc3\xa9..."},
           {letters(199) + "\xc3\xa9", letters(199) + "..."},
           {letters(197) + "\xf0\x9f\x98\x80z", letters(197) + "..."},
           {std::string(300, '\x80'), "..."},
           {"tab\t, \x1b, \x7f, \" and \\", "tab\\u0009, \\u001b, \\u007f, \" and \\"},
       }) {
    CAPTURE(row.first);
    CHECK(one_line(row.first) == row.second);
  }
  // Bytes after the end of the text do not count.
  const auto longer = letters(200) + "\xa9";
  CHECK(one_line(std::string_view(longer).substr(0, 200)) == letters(200));
}

TEST_CASE("a value is described by its kind, or by at most 80 bytes of its text") {
  const auto quoted = [](const std::string& text) { return '"' + text + '"'; };
  for (const auto& row : Shown{
           {"[1]", "an array"},
           {"{}", "an object"},
           {"null", "null"},
           {"true", "true"},
           {"false", "false"},
           {"-1.50e3", "-1.50e3"},
           {R"("a\"b\\\n")", R"("a\"b\\\u000a")"},
           {quoted(letters(80)), quoted(letters(80))},
           {quoted(letters(81)), quoted(letters(80)) + "..."},
           {quoted(letters(79) + "\xc3\xa9"), quoted(letters(79)) + "..."},
           {std::string(80, '1'), std::string(80, '1')},
           {std::string(81, '1'), std::string(80, '1') + "..."},
       }) {
    CAPTURE(row.first);
    JsonTree tree;
    CHECK(described(read_into(tree, row.first)) == row.second);
  }
}

TEST_CASE("a value is written on one line, with its numbers as they were") {
  for (const auto& row : Shown{
           {"[ ]", "[]"},
           {"{ }", "{}"},
           {"[1e3, \"x\",\n null, true, false]", R"([1e3,"x",null,true,false])"},
           {R"({"a": [[], {"b": 0.50}], "c": "\""})", R"({"a":[[],{"b":0.50}],"c":"\""})"},
       }) {
    CAPTURE(row.first);
    JsonTree tree;
    CHECK(compact(read_into(tree, row.first)) == row.second);
  }
}

TEST_CASE("a pointer names each step, and ends after about 1000 bytes") {
  JsonTree tree;
  const auto& root = read_into(tree, R"({"a/b~c": [0, {"x": [5, 6, 7]}]})");
  CHECK(pointer_to(root).empty());
  const auto& list = *root.children.front();
  CHECK(pointer_to(list) == "/a~1b~0c");
  CHECK(pointer_to(*list.children[0]) == "/a~1b~0c/0");
  CHECK(pointer_to(*list.children[1]) == "/a~1b~0c/1");
  CHECK(pointer_to(*list.children[1]->children[0]->children[2]) == "/a~1b~0c/1/x/2");
  struct Row {
    std::size_t size;  // of the key of an object
    std::string pointer;
  };
  for (const auto& row : std::vector<Row>{{998, "/" + letters(998) + "/z"},
                                          {999, "/" + letters(999)},  // 1000 bytes with the slash
                                          {1000, "/" + letters(1000)},
                                          {1001, "/" + letters(1000)}}) {
    CAPTURE(row.size);
    JsonTree deep;
    const auto& top = read_into(deep, R"({")" + letters(row.size) + R"(": {"z": 1}})");
    CHECK(pointer_to(*top.children.front()->children.front()) == row.pointer);
  }
}

TEST_CASE("a problem is told with its file, its place, its kind and its pointer") {
  Problem problem;
  problem.file = "policy.json";
  problem.message = "no such file";
  CHECK(to_string(problem) == "policy.json: no such file");
  problem.line = 1;
  problem.column = 2;
  CHECK(to_string(problem) == "policy.json:1:2: no such file");
  problem.pointer = "/a\n";
  CHECK(to_string(problem) == "policy.json:1:2: /a\\u000a: no such file");
  problem.warning = true;
  CHECK(to_string(problem) == "policy.json:1:2: warning: /a\\u000a: no such file");
  auto error = problem;
  error.warning = false;
  error.pointer.clear();
  CHECK(error_lines({problem}).empty());
  CHECK(error_lines({error, problem, error}) ==
        "policy.json:1:2: no such file\npolicy.json:1:2: no such file");
}

TEST_CASE("a thousand problems are kept, and one says that there were more") {
  for (const bool fails : {false, true}) {
    CAPTURE(fails);
    for (const auto count : {kMaxProblems, kMaxProblems + 1}) {
      CAPTURE(count);
      Problems problems("test");
      for (std::size_t i = 0; i < count; ++i) {
        CHECK(problems.full() == (i >= kMaxProblems));
        const Position place{static_cast<int>(count - i), 1};  // the last one stands first
        const bool is_last = i + 1 == count;
        fails&& is_last ? problems.error(place, "/a", "wrong") : problems.warn(place, "/a", "odd");
      }
      CHECK(problems.failed() == fails);
      const auto taken = problems.take();
      const bool more = count > kMaxProblems;
      REQUIRE(taken.size() == (more ? kMaxProblems + 1 : count));
      CHECK(taken.front().line == (more ? 2 : 1));
      CHECK((taken.back().message == "there are more problems than these") == more);
      CHECK(taken.back().line == static_cast<int>(count));
      CHECK(taken.back().pointer == (more ? "" : "/a"));
      CHECK(taken.back().warning == (more ? !fails : true));
    }
  }
}
