#include "lib/core/json/detail/json.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

namespace {

std::string_view nearest(std::string_view word, std::string_view name) {
  const std::array names = {name};
  return httpretry::nearest(word, names);
}

}  // namespace

TEST_CASE("the number of wrong letters may be limited") {
  constexpr std::string_view names[] = {"api.example.com"};
  CHECK(httpretry::nearest("api.exmaple.co", names, 2) == names[0]);
  CHECK(httpretry::nearest("www.example.com", names, 2).empty());
  CHECK(httpretry::nearest("www.example.com", names) == names[0]);
}

TEST_CASE("a name is near if one letter is wrong, missing or too many, or two are swapped") {
  for (const auto* const word : {"mux", "mx", "maxx", "amx", "mxa"}) {
    CAPTURE(std::string(word));
    CHECK(nearest(word, "max") == "max");
  }
  // Only one of the two letters stands where the other one should.
  for (const auto* const word : {"mxq", "mqa", "xma"}) {
    CAPTURE(std::string(word));
    CHECK(nearest(word, "max").empty());
  }
}

TEST_CASE("a third of the letters may be wrong, and always one") {
  CHECK(nearest("a", "b").empty());  // no letter is right
  CHECK(nearest("ab", "ac") == "ac");
  CHECK(nearest("abcde", "abcdx") == "abcdx");
  CHECK(nearest("abcde", "abcxy").empty());
  CHECK(nearest("abcdef", "abcdxy") == "abcdxy");
  CHECK(nearest("abcdef", "abcxyz").empty());
  CHECK(nearest("abcdef", "abcd") == "abcd");
  CHECK(nearest("abcdef", "abc").empty());
  CHECK(nearest("abcdef", "abcdefgh") == "abcdefgh");
  CHECK(nearest("abcdef", "abcdefghi").empty());
  CHECK(nearest("abcdef", "badcef") == "badcef");
  CHECK(nearest("", "a").empty());
  CHECK(nearest("abc", "").empty());
}

TEST_CASE("of several near names, the nearest one counts, and of those the first") {
  constexpr std::string_view names[] = {"", "abcdxy", "abcdex", "abcdey"};
  CHECK(httpretry::nearest("abcdef", names) == "abcdex");
  CHECK(httpretry::did_you_mean("abcdef", names) == "; did you mean \"abcdex\"?");
  CHECK(httpretry::did_you_mean("qqqqqq", names).empty());
}

TEST_CASE("words of more than 48 letters, and names after the first 200, are not compared") {
  const std::string long_word(48, 'a');
  CHECK(nearest(long_word, std::string(47, 'a')) == std::string(47, 'a'));
  CHECK(nearest(long_word, long_word + "a").empty());
  CHECK(nearest(long_word + "a", long_word).empty());
  CHECK(nearest(std::string(47, 'a'), long_word) == long_word);
  for (const std::size_t place : {0U, 199U, 200U}) {
    CAPTURE(place);
    std::vector<std::string_view> names(201, "zzzzzz");
    names[place] = "abcdef";
    CHECK(httpretry::nearest("abcdex", names) == (place < 200 ? "abcdef" : ""));
  }
}
