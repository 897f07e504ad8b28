#include "lib/core/retry/body_reader.hpp"

#include <doctest/doctest.h>

#include <array>
#include <random>
#include <string>
#include <vector>

using httpretry::policy::json_values;
using httpretry::policy::JsonPointer;
using httpretry::policy::kBodyDepth;
using httpretry::policy::kBodyText;
using httpretry::policy::kBodyValues;
using httpretry::policy::xml_values;

using namespace std::string_view_literals;

namespace {

std::vector<std::string> texts(const std::vector<httpretry::policy::BodyValue>& values) {
  std::vector<std::string> all;
  for (const auto& value : values) all.push_back(value.text);
  return all;
}

std::vector<std::string> json(std::string_view text, std::string_view pointer) {
  const std::array pointers = {JsonPointer(pointer)};
  return texts(json_values(text, pointers));
}

std::vector<std::string> xml(std::string_view text, std::string_view path) {
  const std::array paths = {path};
  return texts(xml_values(text, paths));
}

using Texts = std::vector<std::string>;

std::string repeated(std::string_view text, std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

}  // namespace

TEST_CASE("values at a JSON pointer, as text") {
  CHECK(json(R"({"a":{"b":"c"}})", "/a/b") == Texts{"c"});
  CHECK(json(R"({"a":[1,-2,3.50,true,false,null]})", "/a/*") ==
        Texts{"1", "-2", "3.50", "true", "false"});
  CHECK(json(R"({"a":[{"b":1},{"b":2}]})", "/a/1/b") == Texts{"2"});
  CHECK(json(R"({"a":[{"b":1},{"b":2}]})", "/a/*/b") == Texts{"1", "2"});
  CHECK(json(R"({"a/b":{"~":1}})", "/a~1b/~0") == Texts{"1"});
  CHECK(json(R"({"a":{"*":1,"x":2}})", "/a/*") == Texts{"1"});
  CHECK(json(R"({"":1})", "/") == Texts{"1"});
  CHECK(json(R"("top")", "") == Texts{"top"});
  CHECK(json(R"({"a":{"b":{}}})", "/a/b") == Texts{""});
  CHECK(json(R"({"a":"\u00e4\n"})", "/a") == Texts{"\xc3\xa4\n"});
  CHECK(json(R"({"a":1})", "/b").empty());
  CHECK(json(R"({"code":1,"codes":2,"cod":3})", "/code") == Texts{"1"});  // all of a name counts
  CHECK(json(R"({"a":{"b":1}})", "/a").size() == 1);
  CHECK(json(R"({"a":1})", "/a/b").empty());
  CHECK(json(R"({"a":1})", "no pointer").empty());
}

TEST_CASE("a name is found whatever stands around it") {
  CHECK(json("{ \"a\" \t\r\n: 1 }", "/a") == Texts{"1"});
  CHECK(json(R"({"x:":":","a":"b:c","b":{"a":":"}})", "/a") == Texts{"b:c"});
  CHECK(json(R"({":":1,"a":2})", "/:") == Texts{"1"});
  CHECK(json(R"([":",{"a":":"},"a"])", "/1/a") == Texts{":"});
}

TEST_CASE("a name may have any length") {
  for (const std::size_t length : std::vector<std::size_t>{1, 62, 63, 64, 65, 1000}) {
    CAPTURE(length);
    const auto name = repeated("n", length);
    const auto longer = "{\"" + name + "n\":1,\"" + name + "\":2}";
    CHECK(json(longer, "/" + name) == Texts{"2"});
    CHECK(json("{\"x\":\"" + name + "\"}", "/" + name).empty());  // only as a value
  }
}

TEST_CASE("a value at several pointers comes once for each, in their order") {
  const std::array<JsonPointer, 4> pointers{"/b"sv, "/a/*"sv, "/a/0"sv, "/a"sv};
  const auto values = json_values(R"({"a":["x"],"b":1})", pointers);
  std::vector<std::string_view> paths;
  for (const auto& value : values) paths.push_back(value.path);
  CHECK(paths == std::vector{"/a"sv, "/a/*"sv, "/a/0"sv, "/b"sv});
}

TEST_CASE("a name may be spelled with escapes") {
  const std::array<JsonPointer, 8> kPointers{"/a"sv,    "/b/a"sv, "/a/*/b"sv, "/a/0"sv,
                                             "/b/~0"sv, ""sv,     "/"sv,      "/ab"sv};
  constexpr std::array<std::string_view, 5> kNames{"a", "b", "ab", "~", ""};
  const auto seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937 random(seed);
  const auto one_of = [&](std::size_t count) { return random() % count; };
  const auto escaped = [](std::string_view name) {
    std::string text;
    for (const char c : name) {
      constexpr std::string_view kDigits = "0123456789abcdef";
      text += "\\u00";
      text += kDigits[static_cast<unsigned char>(c) / 16];
      text += kDigits[static_cast<unsigned char>(c) % 16];
    }
    return text;
  };
  std::size_t found = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string plain;
    std::string spelled;
    const auto both = [&](std::string_view text) {
      plain += text;
      spelled += text;
    };
    const auto value = [&](const auto& self, int depth) -> void {
      const auto kind = one_of(depth == 4 ? 2 : 4);
      if (kind == 0) return both(R"("text")");
      if (kind == 1) return both("7");
      both(kind == 2 ? "[" : "{");
      for (auto left = one_of(4); left-- > 0;) {
        if (kind == 3) {
          const auto name = kNames[one_of(kNames.size())];
          plain += '"' + std::string(name) + "\":";
          spelled += '"' + escaped(name) + "\":";
        }
        self(self, depth + 1);
        if (left > 0) both(",");
      }
      both(kind == 2 ? "]" : "}");
    };
    value(value, 0);
    CAPTURE(plain);
    const auto one = json_values(plain, kPointers);
    const auto other = json_values(spelled, kPointers);
    REQUIRE(one.size() == other.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      REQUIRE(one[i].path == other[i].path);
      REQUIRE(one[i].text == other[i].text);
    }
    found += one.size();
  }
  CHECK(found > 1000);
}

TEST_CASE("of broken JSON, what came before counts") {
  CHECK(json(R"({"a":"x","b":)", "/a") == Texts{"x"});
  CHECK(json(R"({"a":"x"} trailing)", "/a") == Texts{"x"});
  CHECK(json("", "/a").empty());
  CHECK(json("{\"a\":\"\xff\"}", "/a").empty());
  CHECK(json(R"({"a":1e999999})", "/a").empty());
  CHECK(json("\xEF\xBB\xBF{\"a\":1}", "/a") == Texts{"1"});
  CHECK(json(R"({"a":{"a":{"a":}}})", "/a/a/a").empty());
}

TEST_CASE("a depth bomb is left alone") {
  CHECK(json(repeated("[", 60000), "/0").size() <= 1);
  CHECK(json(repeated("{\"a\":", 12000), "/a/a/a").size() <= 1);
  CHECK(xml(repeated("<a>", 20000), "b").empty());
  CHECK(json("[" + repeated("1,", 30000) + "1]", "/*").size() == kBodyValues);
}

TEST_CASE("values are read down to the limit of their depth, and cut at the limit of their size") {
  const auto nested = [](std::size_t depth) {
    return json(repeated("[", depth) + "1" + repeated("]", depth), repeated("/0", depth));
  };
  CHECK(nested(kBodyDepth) == Texts{"1"});
  CHECK(nested(kBodyDepth + 1).empty());
  const auto text = repeated("x", kBodyText);
  CHECK(json('"' + text + "\"", "") == Texts{text});
  CHECK(json('"' + text + "y\"", "") == Texts{text});
}

TEST_CASE("elements are read down to the limit of their depth") {
  CHECK(xml(repeated("<a>", kBodyDepth - 1) + "<b>x</b>", "b") == Texts{"x"});
  CHECK(xml(repeated("<a>", kBodyDepth) + "<b>x</b>", "b").empty());
}

TEST_CASE("elements by path and by name") {
  const auto* text =
      "<?xml version='1.0'?><s:E xmlns:s='u'><Code a='>'> A&amp;B </Code><Code/></s:E>";
  CHECK(xml(text, "/E/Code") == Texts{"A&B", ""});
  CHECK(xml(text, "Code") == Texts{"A&B", ""});
  CHECK(xml(text, "/Code").empty());
  CHECK(xml(text, "/E").size() == 1);
  CHECK(xml("<a><b><![CDATA[<c>&amp;]]></b></a>", "b") == Texts{"<c>&amp;"});
  CHECK(xml("<a><b>&#65;&#x42;&lt;&unknown;&#1000;</b></a>", "b") == Texts{"AB<&unknown;&#1000;"});
  CHECK(xml("<a><b>x<!-- y --><i>z</i>w</b></a>", "b") == Texts{"xw"});
}

TEST_CASE("what only looks like an element is none") {
  for (const auto* text :
       {"<a x='<Code>1</Code>'/>", "<a x=\"<Code>1</Code>\"></a>", "<a><!--<Code>1</Code>--></a>",
        "<a><![CDATA[<Code>1</Code>]]></a>", "<a><?p <Code>1</Code>?></a>",
        "<!DOCTYPE a [<!ENTITY b '<Code>1</Code>'>]><a>&b;</a>", "<a><Code>1</Cod></a>",
        "<a><Code>1", "<a><Code>1</a>", "<a></a><Code>1</Code>", "< Code>1</Code>",
        "<a><Code 1</Code>", "<a><!--", "<a><Code>1</Code", "</Code>"}) {
    CAPTURE(std::string(text));
    CHECK(xml(text, "Code").empty());
  }
}
