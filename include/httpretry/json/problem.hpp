// Problem: an error or warning about a file that a user wrote, with its position.
#pragma once

#include <httpretry/export.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace httpretry {

// An error in a policy file or a scenario file, or a warning about a part of it that has no effect.
struct HTTPRETRY_API Problem {
  Problem() = default;

  std::string file;
  int line = 0;  // from 1; 0 if unknown
  int column = 0;
  std::string pointer;   // "/policies/careful/max_attempts"
  std::string message;   // a sentence with what was expected
  bool warning = false;  // false: an error
};

// "policy.json:14:9: /policies/careful/max_attemps: unknown key; did you mean \"max_attempts\"?"
[[nodiscard]] HTTPRETRY_API std::string to_string(const Problem& problem);

// Returns the element of `names` that is most similar to a misspelled word, or an empty string if
// none is similar. Up to a third of the letters may be wrong, and always one, but not more than
// `most_wrong`.
[[nodiscard]] HTTPRETRY_API std::string_view nearest(std::string_view word,
                                                     std::span<const std::string_view> names,
                                                     std::size_t most_wrong = SIZE_MAX);

// Returns the end of an error message: `; did you mean "max_attempts"?`, or an empty string.
[[nodiscard]] HTTPRETRY_API std::string did_you_mean(std::string_view word,
                                                     std::span<const std::string_view> names);

}  // namespace httpretry
