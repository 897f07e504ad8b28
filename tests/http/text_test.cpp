#include "lib/core/base/text.hpp"

#include <httpretry/http/headers.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <string_view>

using namespace httpretry;
using namespace std::chrono_literals;

TEST_CASE("a number is the whole text, and fits") {
  CHECK(to_number<int>("42") == 42);
  CHECK(to_number<int>("-1") == -1);
  CHECK(to_number<std::uint64_t>("ff", 16) == 255);
  for (const auto* text : {"", " 1", "1 ", "+1", "1.5", "0x1", "99999999999"}) {
    CAPTURE(text);
    CHECK_FALSE(to_number<int>(text));
  }
  CHECK_FALSE(to_number<std::uint64_t>("-1"));
}

TEST_CASE("a text is taken up to a separator, which is taken as well") {
  std::string_view text = "a;b;;c";
  CHECK(take_until(text, ';') == "a");
  CHECK(text == "b;;c");
  CHECK_FALSE(take(text, ';'));
  CHECK(take_until(text, ';') == "b");
  CHECK(take_until(text, ';').empty());
  CHECK(text == "c");
  CHECK(take_until(text, ';') == "c");
  CHECK(text.empty());
  CHECK(take_until(text, ';').empty());
  CHECK_FALSE(take(text, ';'));
  text = ";x";
  CHECK(take(text, ';'));
  CHECK(text == "x");
}

TEST_CASE("a number is as short as it reads back") {
  CHECK(text_of(0.1) == "0.1");
  CHECK(text_of(2) == "2");
  CHECK(text_of(-1.5e300) == "-1.5e+300");
}

TEST_CASE("only spaces and tabs are trimmed") {
  CHECK(trimmed(" \ta b\t ") == "a b");
  CHECK(trimmed(" \t ").empty());
  CHECK(trimmed("a\r") == "a\r");
}

TEST_CASE("letters of ASCII are made lower case, and no others") {
  CHECK(to_lower("AZaz09[@\xC3\x84") == "azaz09[@\xC3\x84");
  CHECK(hex_value('0') == 0);
  CHECK(hex_value('9') == 9);
  CHECK(hex_value('A') == 10);
  CHECK(hex_value('a') == 10);
  CHECK(hex_value('F') == 15);
  CHECK(hex_value('f') == 15);
  for (const char c : {'g', 'G', '`', '@', '/', ':', ' ', '\xe4'}) CHECK_FALSE(hex_value(c));
}

TEST_CASE("the length of a UTF-8 character is 0 where it is not valid") {
  CHECK(character_length("a") == 1);
  CHECK(character_length("\xC3\xA4") == 2);
  CHECK(character_length("\xE2\x82\xAC") == 3);
  CHECK(character_length("\xF0\x9F\x98\x80") == 4);
  CHECK(character_length("\xC2\x80") == 2);  // the first of two bytes
  CHECK(character_length("\xDF\xBF") == 2);  // the last of two bytes
  CHECK(character_length("\xE0\xA0\x80") == 3);
  CHECK(character_length("\xED\x9F\xBF") == 3);  // before the surrogates
  CHECK(character_length("\xEE\x80\x80") == 3);
  CHECK(character_length("\xEF\xBF\xBF") == 3);
  CHECK(character_length("\xF0\x90\x80\x80") == 4);
  CHECK(character_length("\xF4\x8F\xBF\xBF") == 4);  // the last of all
  for (const auto* text :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xC3", "\xE0\x80\x80", "\xED\xA0\x80", "\xE2\x82",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xC3\x7F", "\xC3\xC0", "\xE0\x9F\xBF",
        "\xE2\x82\x28", "\xF0\x8F\xBF\xBF", "\xF0\x9F\x98\xC0"}) {
    CAPTURE(printable(text));
    CHECK(character_length(text) == 0);
  }
  // Bytes after the end of the text are not part of the character.
  CHECK(character_length(std::string_view("\xC3\xA4", 1)) == 0);
  CHECK(character_length(std::string_view("\xF0\x9F\x98\x80", 3)) == 0);
}
