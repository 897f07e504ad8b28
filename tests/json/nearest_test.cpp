#include "lib/core/json/detail/json.hpp"

#include <doctest/doctest.h>

#include <array>

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
