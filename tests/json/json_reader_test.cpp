// read_json against nlohmann_json: what that library accepts is read, with the same values, and
// what it refuses is a problem.
#include "lib/core/json/detail/json.hpp"
#include "tests/rounds.hpp"

#include <doctest/doctest.h>

#include <random>
#include <sstream>

using namespace httpretry;

namespace {

// Whether `node` is `json`, as its text has it; a wrong position is none.
bool same(const JsonNode& node, const OrderedJson& json, const std::vector<std::string>& lines) {
  using Type = JsonNode::Type;
  const auto& line = lines.at(static_cast<std::size_t>(node.position.line - 1));
  const auto first = line.at(static_cast<std::size_t>(node.position.column - 1));
  const auto matches = [&](const auto& each) {
    std::size_t i = 0;
    for (const auto& [key, value] : json.items()) {
      const auto& child = *node.children.at(i++);
      if (child.parent != &node || !each(child, key) || !same(child, value, lines)) return false;
    }
    return i == node.children.size();
  };
  switch (json.type()) {
    case OrderedJson::value_t::null: return node.is(Type::Null) && first == 'n';
    case OrderedJson::value_t::boolean:
      return node.is(Type::Boolean) && node.boolean == json.get<bool>() &&
             first == (node.boolean ? 't' : 'f');
    case OrderedJson::value_t::string:
      return node.is(Type::String) && node.text == json.get<std::string>() && first == '"';
    case OrderedJson::value_t::array:
      return node.is(Type::Array) && first == '[' &&
             matches([](const JsonNode& child, const std::string&) { return child.key.empty(); });
    case OrderedJson::value_t::object:
      return node.is(Type::Object) && first == '{' &&
             matches([&](const JsonNode& child, const std::string& key) {
               const auto& its = lines.at(static_cast<std::size_t>(child.key_position.line - 1));
               return child.key == key &&
                      its.at(static_cast<std::size_t>(child.key_position.column - 1)) == '"';
             });
    default:
      return node.is(Type::Number) && node.text.front() == first &&
             OrderedJson::parse(node.text) == json;
  }
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  const std::size_t mark = text.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  std::istringstream stream(text.substr(mark));
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

bool has_duplicates(const Problems& problems, std::vector<Problem> found) {
  return problems.failed() && !found.empty() &&
         found.front().message.find("duplicate key") != std::string::npos;
}

void check_reads_as_nlohmann(const std::string& text) {
  CAPTURE(text);
  const auto wanted = OrderedJson::parse(text, nullptr, false);
  JsonTree tree;
  Problems problems("test");
  read_json(text, tree, problems);
  if (wanted.is_discarded()) {
    CHECK(tree.root == nullptr);
    CHECK(problems.failed());
    return;
  }
  REQUIRE(tree.root != nullptr);
  // nlohmann keeps one of them.
  if (has_duplicates(problems, problems.take())) return;
  CHECK_FALSE(problems.failed());
  CHECK(same(*tree.root, wanted, lines_of(text)));
}

}  // namespace

TEST_CASE("each kind of JSON is read as nlohmann_json reads it") {
  for (const auto* text : {
           "null",
           " true ",
           "false",
           "0",
           "-0",
           "-12.50",
           "1e3",
           "1E+3",
           "1.5e-7",
           "\"\"",
           R"("a\"b\\c\/\b\f\n\r\t")",
           R"("\u00e9\ud83d\ude00")",
           "\"\xC3\xA9 \xF0\x9F\x98\x80\"",
           "\"\x7F\"",
           "[]",
           "[ ]",
           "{}",
           "{ }",
           "[1,[2,[]],{\"a\":{}}]",
           "{\"a\" : 1 ,\n \"b\"\t: [true,\r\n null]}",
           "\xEF\xBB\xBF{\"a\":1}",
           "123456789012345678901234567890",
           "0.1000000000000000055511151231257827",
           // and what is none
           "",
           " ",
           "nul",
           "truefalse",
           "01",
           "-",
           "1.",
           ".5",
           "+1",
           "1e",
           "1e400",
           "\"",
           "\"\\",
           "\"\\x\"",
           "\"\\u12\"",
           "\"\\ud800\"",
           "\"\n\"",
           "\"\xC3\"",
           "\"\xED\xA0\x80\"",
           "\"\xC0\xAF\"",
           "\"\\\"\xC3\"",
           "\"\\n\n\"",
           "[1,]",
           "[,1]",
           "[1 2]",
           "[1",
           "{\"a\"}",
           "{\"a\":}",
           "{\"a\":1,}",
           "{a:1}",
           "{1:1}",
           "{\"a\":1 \"b\":2}",
           "[1}",
           "{\"a\":1]",
           "1 2",
           "{} x",
           "[1]]",
           "//",
       }) {
    check_reads_as_nlohmann(text);
  }
  check_reads_as_nlohmann(std::string("\"a\0b\"", 5));
}

TEST_CASE("texts with changed bytes are read as nlohmann_json reads them, or refused as by it") {
  const std::string whole =
      "{\"id\": \"job-1\", \"url\": \"https://a.example/x?y=1&z=\\\"2\\\"\",\n"
      " \"json\": {\"n\": [1, -2.5, 3e2, null, true], \"t\": \"caf\xC3\xA9\\n\\u00e9\"},\n"
      "\t\"set\": {\"max_attempts\": 9, \"backoff\": {\"initial\": \"1s\"}}, \"tag\": []}";
  std::mt19937 random(7);  // NOLINT: the same each time
  const auto below = [&](std::size_t end) { return random() % end; };
  constexpr std::string_view kBytes = "{}[]\",:\\0123456789eE+-.tfnul \n\t\x01\x7F\xC3\xA9\xFF";
  for (int round = 0; round < rounds(20'000); ++round) {
    auto text = whole;
    for (auto changes = 1 + below(3); changes > 0; --changes) {
      const auto at = below(text.size());
      switch (below(3)) {
        case 0: text[at] = kBytes[below(kBytes.size())]; break;
        case 1: text.erase(at, 1 + below(4)); break;
        default: text.insert(at, 1, kBytes[below(kBytes.size())]);
      }
    }
    check_reads_as_nlohmann(text);
  }
}

TEST_CASE("the limits of depth hold for good texts and bad ones") {
  const auto nested = [](std::size_t depth, const std::string& inner) {
    return std::string(depth, '[') + inner + std::string(depth, ']');
  };
  check_reads_as_nlohmann(nested(kMaxJsonDepth, "1"));
  for (const auto* inner : {"1", "1e2", ""}) {
    JsonTree tree;
    Problems problems("test");
    read_json(nested(kMaxJsonDepth + 1, inner), tree, problems);
    CHECK(tree.root == nullptr);
    const auto found = problems.take();
    REQUIRE(found.size() == 1);
    CHECK(found.front().message == "nested deeper than 64");
    CHECK(found.front().column == static_cast<int>(kMaxJsonDepth) + 1);
  }
}

TEST_CASE("a problem is reported once, whatever is reported between its repetitions") {
  Problems problems("test");
  for (const auto* const message : {"first", "second", "first", "second"}) {
    problems.error({1, 1}, "/a", message);
  }
  const auto found = problems.take();
  REQUIRE(found.size() == 2);
  CHECK(found[0].message == "first");
  CHECK(found[1].message == "second");
}
