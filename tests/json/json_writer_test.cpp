// JsonWriter against nlohmann_json: what it writes is what that library dumps.
#include "lib/core/json/detail/json.hpp"
#include "tests/rounds.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>

using namespace httpretry;

namespace {

using Layout = JsonWriter::Layout;

void write(JsonWriter& json, const OrderedJson& value) {
  switch (value.type()) {
    case OrderedJson::value_t::null: return json.null();
    case OrderedJson::value_t::boolean: return json.value(value.get<bool>());
    case OrderedJson::value_t::number_integer: return json.value(value.get<std::int64_t>());
    case OrderedJson::value_t::number_unsigned: return json.value(value.get<std::uint64_t>());
    case OrderedJson::value_t::number_float: return json.value(value.get<double>());
    case OrderedJson::value_t::string: return json.value(value.get<std::string>());
    case OrderedJson::value_t::array:
      json.begin_array();
      for (const auto& item : value) write(json, item);
      return json.end_array();
    case OrderedJson::value_t::object:
      json.begin_object();
      for (const auto& [name, member] : value.items()) write(json.key(name), member);
      return json.end_object();
    default: FAIL("no such value");
  }
}

std::string written(const OrderedJson& value, Layout layout) {
  std::string text;
  JsonWriter json(text, layout);
  write(json, value);
  return text;
}

class RandomJson {
 public:
  explicit RandomJson(std::uint64_t seed) : random_(seed) {}

  OrderedJson value(int depth) {
    switch (below(depth > 0 ? 8 : 6)) {
      case 0: return nullptr;
      case 1: return below(2) == 0;
      case 2: return static_cast<std::int64_t>(random_());
      case 3: return random_() >> below(64);
      case 4: return number();
      case 5: return text();
      case 6: {
        auto array = OrderedJson::array();
        for (auto left = below(4); left > 0; --left) array.push_back(value(depth - 1));
        return array;
      }
      default: {
        auto object = OrderedJson::object();
        for (auto left = below(4); left > 0; --left) {
          object["k" + std::to_string(left)] = value(depth - 1);
        }
        return object;
      }
    }
  }

  // Of all sizes, and those that a report has.
  double number() {
    if (below(2) == 0) return static_cast<double>(below(100'000'000)) / 1e6;
    const auto bits = random_();
    double any = 0;
    std::memcpy(&any, &bits, sizeof any);
    return std::isfinite(any) ? any : 0;
  }

  // Mostly plain, with control characters, two to four bytes a character, and broken ones.
  std::string text() {
    static const std::string_view parts[] = {
        "plain", "\"",       "\\",   "\n",       "\x1b[2J",      "é",        "€",        "𝄞",
        "\x7f",  "\xC2\x9b", "\xff", "\xe2\x82", "\xed\xa0\x80", "\xf0\x9f", "\xc0\xaf", " "};
    std::string made;
    for (auto left = below(6); left > 0; --left) made += parts[below(std::size(parts))];
    return made;
  }

  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

 private:
  std::mt19937_64 random_;
};

}  // namespace

TEST_CASE("what is written is what nlohmann_json reads, in both layouts") {
  const auto* const chosen = std::getenv("HTTPRETRY_SEED");
  const auto seed = chosen != nullptr ? std::strtoull(chosen, nullptr, 10) : std::random_device{}();
  CAPTURE(seed);
  RandomJson random(seed);
  for (int round = 0; round < rounds(20'000); ++round) {
    const auto value = random.value(3);
    // Bytes that are not UTF-8 are replaced by both; the texts that follow have none.
    const auto dumped = value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
    const auto line = written(value, Layout::Line);
    CAPTURE(dumped);
    CAPTURE(line);
    REQUIRE(OrderedJson::accept(line));
    // Compared as texts of one library: a double is the same only with all of its digits.
    CHECK(OrderedJson::parse(line).dump() == OrderedJson::parse(dumped).dump());
    CHECK(OrderedJson::parse(written(value, Layout::Spaced)).dump() ==
          OrderedJson::parse(dumped).dump());
  }
}

TEST_CASE("the layout with a member a line is that of OrderedJson::dump(2)") {
  const auto value = OrderedJson::parse(
      R"({"a": [], "b": {}, "c": [1, [2.5], {"d": null}], "e": {"f": true}, "g": 1000.0,
          "h": 0.001, "i": 100000.0, "j": -0.0, "k": 1312.4, "l": "x"})");
  CHECK(written(value, Layout::Spaced) == value.dump(2));
  CHECK(written(value, Layout::Line) == value.dump());
}

TEST_CASE("an empty list or object is on one line, wherever it begins") {
  const std::string key(120, 'k');
  for (const auto& empty : {OrderedJson::array(), OrderedJson::object()}) {
    const OrderedJson json = {{key, empty}};
    CHECK(json_text(json, /*levels=*/1) == "{\n  \"" + key + "\": " + empty.dump() + "\n}");
  }
}

TEST_CASE("text for people has a line for each member of the outer levels") {
  const auto json = OrderedJson::parse(R"({"a": 1, "b": [true, {"c": null}]})");
  CHECK(json_text(json, /*levels=*/0) == R"({"a": 1, "b": [true, {"c": null}]})");
  CHECK(json_text(json, /*levels=*/1) == "{\n  \"a\": 1,\n  \"b\": [true, {\"c\": null}]\n}");
  CHECK(json_text(json, /*levels=*/2) ==
        "{\n  \"a\": 1,\n  \"b\": [\n    true,\n    {\"c\": null}\n  ]\n}");
}

TEST_CASE("a list has a line for each item if it does not fit into 100 columns") {
  const auto with_text = [](std::size_t size) {
    const OrderedJson json = {{"k", OrderedJson::array({std::string(size, 'x'), 7})}};
    return json_text(json, /*levels=*/1);
  };
  // Two spaces, "k": , a bracket, the text in quotes, a comma, a space, the number and a bracket.
  const std::string fits(86, 'x');
  CHECK(with_text(86) == "{\n  \"k\": [\"" + fits + "\", 7]\n}");
  CHECK(with_text(87) == "{\n  \"k\": [\n    \"" + fits + "x\",\n    7\n  ]\n}");
}

TEST_CASE("a terminal finds nothing to obey, and JSON no number that is none") {
  CHECK(written("\x1b \x7f \xC2\x9b\t", Layout::Line) == R"("\u001b \u007f \u009b\t")");
  CHECK(written(std::numeric_limits<double>::infinity(), Layout::Line) == "null");
}
