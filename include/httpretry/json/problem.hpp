// Problem: something wrong in a file that a user wrote, with its position.
#pragma once

#include <httpretry/export.hpp>

#include <span>
#include <string>
#include <string_view>

namespace httpretry {

// An error in a policy file or a scenario file; or, as a warning, something in it that has no
// effect.
struct HTTPRETRY_API Problem {
  Problem() = default;

  std::string file;
  int line = 0;  // from 1
  int column = 0;
  std::string pointer;  // "/policies/careful/max_attempts"
  std::string message;
  bool warning = false;
};

// "policy.json:14:9: /policies/careful/max_attemps: unknown key; did you mean \"max_attempts\"?"
[[nodiscard]] HTTPRETRY_API std::string to_string(const Problem& problem);

// The one of `names` that is most like a misspelt word: a third of its letters may be wrong, and
// one in any case. Empty where none is like it.
[[nodiscard]] HTTPRETRY_API std::string_view nearest(std::string_view word,
                                                     std::span<const std::string_view> names);

// The end of an error message: `; did you mean "max_attempts"?`, or nothing.
[[nodiscard]] HTTPRETRY_API std::string did_you_mean(std::string_view word,
                                                     std::span<const std::string_view> names);

}  // namespace httpretry
