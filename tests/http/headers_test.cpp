#include "tests/retry/random.hpp"

#include <httpretry/http/headers.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using httpretry::equal_ignoring_case;
using httpretry::Headers;

namespace {

// What Headers is, as a plain list.
struct Model {
  std::vector<std::pair<std::string, std::string>> fields;

  static auto is(const std::string& name) {
    return [&name](const auto& field) { return equal_ignoring_case(field.first, name); };
  }
  void set(const std::string& name, const std::string& value) {
    const auto first = std::find_if(fields.begin(), fields.end(), is(name));
    if (first == fields.end()) {
      fields.emplace_back(name, value);
      return;
    }
    *first = {name, value};
    fields.erase(std::remove_if(first + 1, fields.end(), is(name)), fields.end());
  }
  void remove(const std::string& name) { std::erase_if(fields, is(name)); }
  const std::string* get(const std::string& name) const {
    const auto found = std::find_if(fields.begin(), fields.end(), is(name));
    return found == fields.end() ? nullptr : &found->second;
  }
};

// Several of one size, of one first letter, or different by their case only.
const std::vector<std::string> kNames{"Accept", "Action", "accept", "Cookie", "A",  "a",
                                      "X-Tag",  "X-Tab",  "ETag",   "Expect", "~x", "^x"};

void check_same(const Headers& headers, const Model& model) {
  REQUIRE(headers.size() == model.fields.size());
  for (std::size_t i = 0; i < headers.size(); ++i) {
    REQUIRE(headers[i].name == model.fields[i].first);
    REQUIRE(headers[i].value == model.fields[i].second);
  }
  for (const auto& name : kNames) {
    const auto* value = model.get(name);
    REQUIRE(headers.get(name).has_value() == (value != nullptr));
    if (value != nullptr) REQUIRE(headers[name] == *value);
  }
}

}  // namespace

TEST_CASE("a header is found in any case and repeated ones stay in order") {
  Headers headers{{"Accept", "text/plain"}, {"X-Tag", "a"}, {"x-tag", "b"}};

  CHECK(headers.get("ACCEPT") == "text/plain");
  CHECK(headers.get("X-TAG") == "a");
  CHECK(headers.get_all("x-tag") == std::vector<std::string_view>{"a", "b"});
  CHECK_FALSE(headers.get("X-Ta").has_value());
}

TEST_CASE("set replaces all headers of a name, at the position of the first") {
  Headers headers{{"A", "1"}, {"B", "2"}, {"a", "3"}, {"C", "4"}};

  headers.set("A", "9");

  CHECK(headers == Headers{{"A", "9"}, {"B", "2"}, {"C", "4"}});
  CHECK(headers.remove("b") == 1);
  CHECK(headers.remove("b") == 0);
  CHECK(headers == Headers{{"A", "9"}, {"C", "4"}});
}

TEST_CASE("a header may be made from the text of another one") {
  Headers headers{{"X-Key", std::string(100, 'k')}};
  for (int i = 0; i < 8; ++i) headers.add("X-Copy", *headers.get("X-Key"));
  headers.set("X-Other", *headers.get("X-Copy"));
  headers.set(headers[0].name, headers[1].value);
  for (const auto field : headers) CHECK(field.value == std::string(100, 'k'));
  CHECK(headers.size() == 10);
}

TEST_CASE("a header may be made from the text of a short one") {
  Headers headers{{"A", "b"}};
  headers.add(headers[0].name, std::string(100, 'c'));
  headers.add("D", headers[0].value);
  CHECK(headers[1].name == "A");
  CHECK(headers[2].value == "b");
}

TEST_CASE("a header may be made from the text of another one, however full the memory is") {
  for (std::size_t size = 0; size < 600; ++size) {
    CAPTURE(size);
    Headers headers{{"AB", "cd"}, {"F", std::string(size, 'f')}};
    headers.add(headers[0].name, headers[0].name);
    headers.add(headers[0].value, headers[2].value);
    CHECK(headers ==
          Headers{{"AB", "cd"}, {"F", std::string(size, 'f')}, {"AB", "AB"}, {"cd", "AB"}});
  }
}

TEST_CASE("a control byte is found in each place of a value of each size") {
  for (std::size_t size = 1; size <= 40; ++size) {
    const std::string good(size, 'v');
    CAPTURE(size);
    CHECK(httpretry::valid_header_value(good));
    for (std::size_t place = 0; place < size; ++place) {
      CAPTURE(place);
      for (const char bad : {'\0', '\n', '\r', '\x1f', '\x7f'}) {
        auto value = good;
        value[place] = bad;
        CHECK_FALSE(httpretry::valid_header_value(value));
      }
      for (const char unusual : {'\t', ' ', '~', '\x80', '\xff'}) {
        auto value = good;
        value[place] = unusual;
        CHECK(httpretry::valid_header_value(value));
      }
    }
  }
}

TEST_CASE("nothing that would end a header line early is accepted") {
  Headers headers;
  using namespace std::string_view_literals;
  for (auto value : {"a\r\nX: b"sv, "a\nb"sv, "a\rb"sv, "a\0b"sv, "\x7f"sv, "\x01"sv}) {
    CHECK_THROWS_AS(headers.add("X", value), std::invalid_argument);
    CHECK_THROWS_AS(headers.set("X", value), std::invalid_argument);
    CHECK_FALSE(headers.try_add("X", value));
  }
  for (auto name : {""sv, "a b"sv, "a:"sv, "a\r"sv, "\xc3\xa4"sv}) {
    CHECK_THROWS_AS(headers.add(name, "v"), std::invalid_argument);
    CHECK_FALSE(headers.try_add(name, "v"));
  }
  CHECK(headers.empty());
  CHECK(headers.try_add("X", " a\tb "));
  CHECK(headers == Headers{{"X", "a\tb"}});
}

TEST_CASE("received lines become headers, or are rejected") {
  Headers headers;
  for (auto line : {"A: 1\r\n", "B:2\n", "C:\t 3 ", "D:", "E: \r\n", "F: a:b\r\n"})
    CHECK(headers.try_add_line(line));
  CHECK(headers == Headers{{"A", "1"}, {"B", "2"}, {"C", "3"}, {"D", ""}, {"E", ""}, {"F", "a:b"}});
  for (auto line : {"", "\r\n", "no colon\r\n", ": no name", "A : 1", " A: 1", "A: 1\r\nB: 2\r\n",
                    "A: 1\r\r\n", "A: \x01"})
    CHECK_FALSE(headers.try_add_line(line));
  CHECK(headers.size() == 6);
}

TEST_CASE("a received line may continue the last header") {
  Headers headers;
  REQUIRE(headers.try_add_line("A: 1\r\n"));
  CHECK(headers.try_continue(" 2\r\n"));
  CHECK(headers.try_continue("\t \r\n"));
  CHECK(headers.try_continue("   3 4\t\n"));
  REQUIRE(headers.try_add_line("B:\r\n"));
  CHECK(headers.try_continue("  \r\n"));
  CHECK(headers.try_continue("  b: c"));
  CHECK(headers == Headers{{"A", "1 2 3 4"}, {"B", "b: c"}});
  CHECK(headers.line(1) == std::string_view("B: b: c"));
  CHECK_FALSE(headers.try_continue(" \x01\r\n"));
  CHECK(headers == Headers{{"A", "1 2 3 4"}});
  std::string value = "1 2 3 4";
  for (int i = 0; i < 1000; ++i) {
    CHECK(headers.try_continue(" and more"));
    value += " and more";
  }
  CHECK(headers == Headers{{"A", value}});
  headers.add("C", "3");
  CHECK(headers.line(0) == "A: " + value);
  CHECK(headers["C"] == "3");
}

TEST_CASE("an invalid header value is not in the message") {
  Headers headers;
  try {
    headers.add("Authorization", "secret\r\n");
    FAIL("was accepted");
  } catch (const std::invalid_argument& refused) {
    CHECK(std::string_view(refused.what()).find("secret") == std::string_view::npos);
    CHECK(std::string_view(refused.what()).find("Authorization") != std::string_view::npos);
  }
}

TEST_CASE("control characters for a terminal are escaped") {
  struct Row {
    std::string_view text;
    std::string_view shown;
  };
  using namespace std::string_view_literals;
  for (const auto& row : std::vector<Row>{
           {"", ""},
           {"plain ~ text", "plain ~ text"},
           {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
            "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
           {"\x1b[2J\r\n\t\x7f", "\\x1b[2J\\x0d\\x0a\\x09\\x7f"},
           {"a\0b"sv, "a\\x00b"},
           {"\xc2\x9b"
            "2J \xc2\x80 \xc2\xa0",
            "\\xc2\\x9b2J \\xc2\\x80 \xc2\xa0"},  // U+009B is CSI
           {"\x9b 2J", "\\x9b 2J"},               // and so is its byte in ISO 8859
           {"\xe0\x82\x9b", "\\xe0\\x82\\x9b"},   // nor in a form that is too long
           {"caf\xe9", "caf\\xe9"},               // ISO 8859-1
           {"\xed\xa0\x80 \xe2\x82", "\\xed\\xa0\\x80 \\xe2\\x82"}}) {  // a surrogate; cut off
    CAPTURE(row.text);
    CHECK(httpretry::printable(row.text) == row.shown);
  }
}

TEST_CASE("lines are as libcurl wants them") {
  Headers headers{{"A", "  padded\t"}, {"Empty", ""}};
  CHECK(std::string_view(headers.line(0)) == "A: padded");
  CHECK(std::string_view(headers.line(1)) == "Empty;");
  CHECK(headers[1].value.empty());
  CHECK(headers[0].value == "padded");
}

TEST_CASE("headers are walked through with names and values, and asked by name") {
  Headers headers{{"A", "1"}, {"B", "2"}};
  std::string all;
  for (const auto& [name, value] : headers) all.append(name).append(value);
  for (auto& [name, value] : headers) all.append(name).append(value);
  for (auto [name, value] : headers) all.append(name).append(value);
  CHECK(all == "A1B2A1B2A1B2");
  CHECK(headers["b"] == "2");
  CHECK(headers["c"].empty());
  CHECK(headers.begin()->value == "1");
}

TEST_CASE("after any changes, headers are what a plain list would be") {
  httpretry_test::Random random(7);
  CAPTURE(random.seed());
  for (int round = 0; round < 300; ++round) {
    Headers headers;
    Model model;
    for (int step = 0; step < 40; ++step) {
      const auto last = static_cast<std::int64_t>(kNames.size()) - 1;
      const auto& name = kNames[static_cast<std::size_t>(random.between(0, last))];
      const std::string value(static_cast<std::size_t>(random.between(0, 40)), 'v');
      const auto change = random.between(0, 20);
      if (change < 8) {
        headers.add(name, value);
        model.fields.emplace_back(name, value);
      } else if (change < 12) {
        headers.set(name, value);
        model.set(name, value);
      } else if (change < 16) {
        headers.remove(name);
        model.remove(name);
      } else if (change < 20) {
        headers = Headers(headers);
      } else {
        headers.clear();
        model.fields.clear();
      }
      check_same(headers, model);
    }
  }
}
