// Suggestions for misspelled words.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace httpretry::cli {

// The word most similar to `wrong`; empty if none is similar.
std::string_view nearest(std::string_view wrong, std::span<const std::string_view> words);

// "; did you mean "WORD"?", or an empty text.
std::string did_you_mean(std::string_view wrong, std::span<const std::string_view> words);

}  // namespace httpretry::cli
