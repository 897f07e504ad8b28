#include "lib/core/base/encoding.hpp"
#include "lib/core/base/random.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace httpretry;

TEST_CASE("base64 is that of RFC 4648, with its padding") {
  const std::vector<std::pair<std::string_view, std::string_view>> rows = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"fooba", "Zm9vYmE="},
      {"foobar", "Zm9vYmFy"},
      {"\xfb\xff\xbf", "+/+/"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.second);
    CHECK(encode_base64(row.first) == row.second);
    CHECK(decode_base64(row.second) == row.first);
  }
}

TEST_CASE("base64 is decoded to what was encoded, and bad base64 is not decoded") {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    CHECK(decode_base64(encode_base64(bytes)) == bytes);
    bytes += static_cast<char>(i * 37);
  }
  for (const auto* text : {"A", "AA", "AAA", "A===", "AA=A", "====", "AA==AAAA", "A A="}) {
    CHECK_FALSE(decode_base64(text).has_value());
  }
}

TEST_CASE("text is UTF-8 if each of its characters is") {
  for (const auto* text : {"", "a", "plain", "\xc3\xa9", "a\xc3\xa9", "\xc3\xa9z",
                           "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80!"}) {
    CAPTURE(text);
    CHECK(is_utf8(text));
  }
  for (const auto* text :
       {"\xff", "a\xff", "\xffz", "\xc3", "z\xc3", "\xc3\xa9\xa9", "\xc3\xa9z\xed\xa0\x80"}) {
    CHECK_FALSE(is_utf8(text));
  }
}

TEST_CASE("each byte of a random text has two digits, and is drawn") {
  CHECK(random_hex(0).empty());
  CHECK(random_hex(1).size() == 2);
  constexpr std::size_t kBytes = 17;  // three draws
  std::vector<std::set<char>> seen(2 * kBytes);
  for (int round = 0; round < 100; ++round) {
    const auto text = random_hex(kBytes);
    REQUIRE(text.size() == 2 * kBytes);
    for (std::size_t i = 0; i < text.size(); ++i) seen[i].insert(text[i]);
  }
  for (const auto& digits : seen) CHECK(digits.size() > 1);
}

TEST_CASE("random numbers are at least 0 and less than 1, and in both halves") {
  int low = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto number = random_number();
    CHECK(number >= 0);
    CHECK(number < 1);
    if (number < 0.5) ++low;
  }
  CHECK(low > 300);
  CHECK(low < 700);
}
