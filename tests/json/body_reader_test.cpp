#include "lib/policy/body_reader.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

using httpretry::policy::json_values;
using httpretry::policy::kBodyValues;
using httpretry::policy::xml_values;

namespace {

std::vector<std::string> texts(const std::vector<httpretry::policy::BodyValue>& values) {
  std::vector<std::string> all;
  for (const auto& value : values) all.push_back(value.text);
  return all;
}

std::vector<std::string> json(std::string_view text, std::string_view pointer) {
  const std::array pointers = {pointer};
  return texts(json_values(text, pointers));
}

std::vector<std::string> xml(std::string_view text, std::string_view path) {
  const std::array paths = {path};
  return texts(xml_values(text, paths));
}

using Texts = std::vector<std::string>;

std::string repeated(std::string_view text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
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
