#include "lib/extras/batch/request_line.hpp"

#include "lib/core/base/encoding.hpp"
#include "lib/extras/batch/text.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace httpretry;
using namespace httpretry::batch;
using Content = RequestLine::Content;

namespace {

RequestLine read(std::string_view text, InputFormat format = InputFormat::Auto) {
  RequestLine line;
  Problems problems("in");
  const bool good = read_request_line(text, format, line, problems);
  for (const auto& problem : problems.take()) MESSAGE(to_string(problem));
  REQUIRE(good);
  return line;
}

std::vector<std::string> line_problems(std::string_view text,
                                       InputFormat format = InputFormat::Auto) {
  RequestLine line;
  Problems problems("in");
  CHECK_FALSE(read_request_line(text, format, line, problems));
  std::vector<std::string> texts;
  for (const auto& problem : problems.take()) texts.push_back(to_string(problem));
  return texts;
}

struct Bad {
  const char* text;
  const char* says;
};

}  // namespace

TEST_CASE("a line may be a URL alone") {
  const auto line = read("  http://a/b?c \t");
  CHECK(line.url == "http://a/b?c");
  CHECK(line.method == "GET");
  CHECK(line.content == Content::None);
  CHECK(read("http://a/{b}", InputFormat::Urls).url == "http://a/{b}");
  CHECK(line.cost == 1);
  CHECK(line.priority == Priority::Normal);
  CHECK_FALSE(line.wants_key);
  CHECK_FALSE(line.not_before.has_value());
  CHECK_FALSE(line.deadline.has_value());
  CHECK(line.text_without_last.empty());
  CHECK(line_problems("  nonsense").front().starts_with("in:1:3: "));
}

TEST_CASE("a line says all of a request and how it is handled") {
  const auto line = read(
      R"({"id":"a1","method":"PUT","url":"http://a/","headers":{"X":"1","Y":["2","3"]},)"
      R"("json":{"n":[1.50,"\u00e4"]},"policy":"p","set":{"max_attempts":9,"backoff":{"initial":"1s"}},)"
      R"("key":"k","output":"d/a.bin","not_before":"2026-11-24T08:00:00Z",)"
      R"("deadline":"2026-11-24T10:00:00+02:00","priority":"low","tag":{"t":null}})");
  CHECK(line.id == "a1");
  CHECK(line.method == "PUT");
  CHECK(line.headers.get_all("Y").size() == 2);
  CHECK(line.content == Content::Json);
  CHECK(line.body == R"({"n":[1.50,"ä"]})");
  CHECK(line.policy == "p");
  REQUIRE(line.settings.size() == 2);
  CHECK(line.settings[1].first == "backoff.initial");
  CHECK(line.settings[1].second == R"("1s")");
  CHECK(line.wants_key);
  CHECK(line.key == "k");
  CHECK(line.output == "d/a.bin");
  CHECK(line.not_before == line.deadline);
  CHECK(line.priority == Priority::Low);
  CHECK(line.tag == R"({"t":null})");
}

TEST_CASE("a body makes it a POST, unless the line names a method") {
  CHECK(read(R"({"url":"http://a/","body":""})").method == "POST");
  CHECK(read(R"({"body_file":"f","url":"http://a/"})").method == "POST");
  CHECK(read(R"({"url":"http://a/","body":"x","method":"GET"})").method == "GET");
  CHECK(read(R"({"url":"http://a/","body_base64":"AAH/"})").body == std::string("\0\1\xff", 3));
}

TEST_CASE("each mistake in a line has its column, what was expected and what is there") {
  const Bad bads[] = {
      {R"({"url":"http://a/","ur":1})", R"(in:1:20: /ur: unknown key; did you mean "url"?)"},
      {R"({"id":"x"})", R"(in:1:1: it has no "url")"},
      {R"({"url":7})", "in:1:8: /url: expected a string, but this is 7"},
      {R"({"url":""})", "in:1:8: /url: must not be empty"},
      {R"({"url":"/x"})", "in:1:8: "},
      {R"({"url":"ftp://a/"})", "in:1:8: "},
      {R"({"url":"http://a/","method":"G T"})", R"(in:1:29: /method: "G T" is not an HTTP method)"},
      {R"({"url":"http://a/","headers":[]})",
       "in:1:30: /headers: expected an object, but this is an array"},
      {R"({"url":"http://a/","headers":{"X":1}})",
       "in:1:35: /headers/X: expected a string or an array"},
      {R"({"url":"http://a/","headers":{"X Y":"1"}})",
       R"(in:1:37: /headers/X Y: "X Y" is not a header)"},
      {R"({"url":"http://a/","body":"x","json":1})",
       "in:1:31: /json: a request has one of json, body"},
      {R"({"url":"http://a/","body":{}})",
       "in:1:27: /body: expected a string, but this is an object"},
      {R"({"url":"http://a/","body_base64":"x"})", "in:1:34: /body_base64: is not base64"},
      {R"({"url":"http://a/","bodyfile":"x"})",
       R"(in:1:20: /bodyfile: unknown key; did you mean "body_file"?)"},
      {R"({"url":"http://a/","set":3})", "in:1:26: /set: expected an object, but this is 3"},
      {R"({"url":"http://a/","key":false})",
       "in:1:26: /key: expected a string, or true for a generated key"},
      {R"({"url":"http://a/","output":"../x"})",
       "in:1:29: /output: must be a relative path without . and .."},
      {R"({"url":"http://a/","output":"/x"})", "in:1:29: /output: must be a relative path"},
      {R"({"url":"http://a/","not_before":"soon"})",
       R"(in:1:33: /not_before: expected a date from 1970 to 2199, such as "2026-)"},
      {R"({"url":"http://a/","deadline":"2026-02-30T00:00:00Z"})",
       "in:1:31: /deadline: expected a date"},
      {R"({"url":"http://a/","deadline":"9999-12-31T23:59:59Z"})",
       R"(in:1:31: /deadline: expected a date from 1970 to 2199, such as "2026-11-24T08:00:00Z", )"
       R"(but this is "9999-12-31T23:59:59Z")"},
      {R"({"url":"http://a/","priority":"urgent"})",
       R"(in:1:31: /priority: expected "high", "normal" or "low")"},
      {R"({"url":"http://a/","id":true})", "in:1:25: /id: expected a string, but this is true"},
      {R"({"url":"http://a/","id":1.5})", "in:1:25: /id: expected a string, but this is 1.5"},
      {R"({"url":"http://a/","id":9223372036854775808})",
       "in:1:25: /id: expected a string, but this is 9223372036854775808"},
      {R"({"url":"http://a/","id":""})", "in:1:25: /id: must not be empty"},
      {R"({"url":"http://a/","cost":-1})",
       "in:1:27: /cost: expected a whole number of at least 0, but this is -1"},
      {R"({"url":"http://a/","cost":"1"})", "in:1:27: /cost: expected a whole number"},
      {R"({"url":"http://a/","priority":1})", R"(in:1:31: /priority: expected "high")"},
      {R"({"url":"http://a/","key":""})", "in:1:26: /key: expected a string, or true"},
      {R"({"url":"http://a/","key":"a\nb"})",
       "in:1:26: /key: a key has at most 255 bytes, and no control character"},
      {R"({"url":"http://a/","url":"http://b/"})", "in:1:20: "},
      {R"({"url":"http://a/"} x)", "in:1:21: "},
      {R"({"url":"http://a/")", "in:1:19: "},
      {"[1]", "in:1:1: "},
  };
  for (const auto& bad : bads) {
    INFO(bad.text);
    const auto texts =
        line_problems(bad.text, bad.text[0] == '[' ? InputFormat::Jsonl : InputFormat::Auto);
    REQUIRE(texts.size() == 1);
    CHECK(texts.front().starts_with(bad.says));
  }
}

TEST_CASE("an id may have 1000 bytes, and a key 255") {
  const auto with = [](const std::string& name, std::size_t length) {
    return R"({"url":"http://a/",")" + name + R"(":")" + std::string(length, 'x') + "\"}";
  };
  using Strings = std::vector<std::string>;
  CHECK(read(with("id", 1000)).id.size() == 1000);
  CHECK(line_problems(with("id", 1001)) == Strings{"in:1:25: /id: an id has at most 1000 bytes"});
  CHECK(read(with("key", 255)).key.size() == 255);
  CHECK(line_problems(with("key", 256)) ==
        Strings{"in:1:26: /key: a key has at most 255 bytes, and no control character"});
}

TEST_CASE("each priority, cost, id and key of a line is read as it is written") {
  const auto with = [](const std::string& member) {
    return read(R"({"url":"http://a/",)" + member + "}");
  };
  CHECK(with(R"("priority":"high")").priority == Priority::High);
  CHECK(with(R"("priority":"normal")").priority == Priority::Normal);
  CHECK(with(R"("cost":0)").cost == 0);
  CHECK(with(R"("cost":7)").cost == 7);
  CHECK(with(R"("id":-5)").id == "-5");
  CHECK(with(R"("key":true)").wants_key);
  CHECK(with(R"("key":true)").key.empty());
  CHECK(with(R"("not_before":"2026-11-24T08:00:00Z")").not_before.has_value());
  CHECK_FALSE(with(R"("not_before":"2026-11-24T08:00:00Z")").deadline.has_value());
  CHECK(with(R"("body_file":"f")").content == Content::File);
  CHECK(with(R"("body_file":"f")").body == "f");
}

TEST_CASE("a line with several mistakes has them all reported") {
  const auto texts = line_problems(R"({"id":[],"method":"?","url":"nope","tga":1})");
  CHECK(texts.size() == 4);
}

TEST_CASE("a dead letter is a line again, without what was last said of it") {
  const auto first = R"({"id":"1","url":"http://a/","last":{"x":"}"}})";
  CHECK(read(first).text_without_last == R"({"id":"1","url":"http://a/"})");
  CHECK(read(R"({"last":1 , "url":"http://a/"})").text_without_last == R"({"url":"http://a/"})");
  CHECK(read(R"({"id":"1", "last":1,"url":"http://a/"})").text_without_last ==
        R"({"id":"1", "url":"http://a/"})");
  CHECK(read(R"({"url":"http://a/" , "last":1})").text_without_last == R"({"url":"http://a/"})");
  CHECK(read(R"({"url":"http://a/"})").text_without_last.empty());
}

TEST_CASE("a line that is written for another run keeps its id, its key and its text") {
  const auto with = [](std::string_view text, std::string_view last) {
    return line_with(text, read(text), "7", "made", last);
  };
  CHECK(with("http://a/ ", "") == R"({"id":"7","key":"made","url":"http://a/"})");
  CHECK(with(R"( {"url":"http://a/"} )", R"({"n":1})") ==
        R"({"id":"7","key":"made","url":"http://a/","last":{"n":1}})");
  CHECK(with(R"({"url":"http://a/","key" : true,"tag":"}"})", "") ==
        R"({"id":"7","url":"http://a/","key" : "made","tag":"}"})");
  CHECK(with(R"({"id":"ä","key":"own","url":"http://a/"})", "") ==
        R"({"id":"ä","key":"own","url":"http://a/"})");
  // Both are lines of an input again, with the same meaning.
  const auto again = read(with(R"({"tag":"ö","key":true,"url":"http://a/"})", R"({"n":1})"));
  CHECK(again.key == "made");
  CHECK(again.id == "7");
  CHECK(again.tag == R"("ö")");
}

TEST_CASE("a tag may be nested as deeply as a dead letter can repeat it, and not deeper") {
  const auto with_tag = [](std::size_t depth, const std::string& value = "") {
    return R"({"url":"http://a/","tag":)" + std::string(depth, '[') + value +
           std::string(depth, ']') + "}";
  };
  const auto text = with_tag(62);
  const auto line = read(text);
  // In the result, which is the member "last", the tag is a member again.
  const auto letter = line_with(text, line, "1", "", R"({"tag":)" + line.tag + "}");
  CHECK(read(letter).tag == line.tag);
  const auto problems = line_problems(with_tag(63));
  REQUIRE(problems.size() == 1);
  CHECK(problems.front() ==
        "in:1:26: /tag: nested deeper than 62, the limit for a tag, which dead letters repeat");
  CHECK(line_problems(with_tag(64)).size() == 1);
  // A value in the deepest array is no further level, and an object is one.
  CHECK(read(with_tag(62, "1")).tag.size() == 125);
  CHECK(read(with_tag(61, R"({"a":1})")).tag.size() == 129);
  CHECK(line_problems(with_tag(62, R"({"a":1})")).size() == 1);
}

TEST_CASE("a URL that is not UTF-8 is written so that it is the same request again") {
  for (const std::string_view url : {"http://a/caf\xe9?q=\xff", "http://a/\xc3\xa9\xc3",
                                     "http://n\xe9:p\xe9@a/%e9\xed\xa0\x80"}) {
    const auto line = read(url);
    const auto again = read(line_with(url, line, "7", "", R"({"n":1})"));
    REQUIRE(again.parsed_url.has_value());
    CHECK(again.parsed_url->to_string() == line.parsed_url->to_string());
    CHECK(is_utf8(again.url));
  }
  const std::string_view url = "http://a/caf\xe9?q=\xff#\xc3\xa9";
  CHECK(line_with(url, read(url), "7", "", "") == R"({"id":"7","url":"http://a/caf%e9?q=%ff#é"})");
}

TEST_CASE("dates are read as RFC 3339 has them, and nothing else is") {
  const auto ms = [](std::string_view text) {
    const auto date = parse_rfc3339(text);
    REQUIRE(date.has_value());
    return std::chrono::floor<std::chrono::milliseconds>(*date).time_since_epoch().count();
  };
  CHECK(ms("1970-01-01T00:00:00Z") == 0);
  CHECK(ms("2000-02-29T12:00:00.25+01:30") == 951820200250);
  CHECK(ms("2026-11-24 08:00:00z") == ms("2026-11-24T03:00:00-05:00"));
  for (const auto* text :
       {"", "2026-11-24", "2026-11-24T08:00:00", "2026-13-01T00:00:00Z", "2026-11-24T24:00:00Z",
        "2026-11-24T08:00:00.Z", "2026-11-24T08:00:00Zx", "26-11-24T08:00:00Z",
        "2026-11-24T08:00:00+2:00", "1969-12-31T00:00:00Z"}) {
    CHECK_FALSE(parse_rfc3339(text).has_value());
  }
}

TEST_CASE("the keys of all lines differ, and those of another journal, too") {
  std::vector<std::string> keys;
  for (const auto* secret :
       {"0123456789abcdef0123456789abcdef", "0123456789abcdef0123456789abcdee"}) {
    for (std::uint64_t line = 1; line <= 1000; ++line) keys.push_back(made_key(secret, line));
  }
  CHECK(keys.front().size() == 32);
  CHECK(keys.front() == made_key("0123456789abcdef0123456789abcdef", 1));
  std::ranges::sort(keys);
  CHECK(std::ranges::adjacent_find(keys) == keys.end());
}

TEST_CASE("the key of a line and the hash of lines are the same in all versions") {
  // These are the first two numbers of SplitMix64 with the seed 0.
  CHECK(made_key("9e3779b97f4a7c143c6ef372fe94f829", 1) == "e220a8397b1dcdaf6e789e6aa1b965f4");
  CHECK(hash_line(0, "") == 0);
  CHECK(hash_line(1, "") == 0xcd9d328f0d27f493U);
  const std::string eight(8, 'x');
  CHECK(hash_line(0, eight) == 0x7a7755406f792145U);
  CHECK(hash_line(0, eight + eight) == 0x1578a72e7168df05U);
  CHECK(hash_line(0x7a7755406f792145U, eight) == 0x27c0c16dbc702300U);
}

TEST_CASE("the hash of lines knows their order, their bounds and every byte") {
  const auto hash = [](std::initializer_list<std::string_view> lines) {
    std::uint64_t value = 0;
    for (const auto line : lines) value = hash_line(value, line);
    return value;
  };
  CHECK(hash({"ab", "c"}) != hash({"a", "bc"}));
  CHECK(hash({"a", "b"}) != hash({"b", "a"}));
  CHECK(hash({"a"}) != hash({"a", ""}));
  std::string line(40, 'x');
  const auto before = hash({line});
  for (auto& c : line) {
    c = 'y';
    CHECK(hash({line}) != before);
    c = 'x';
  }
}
