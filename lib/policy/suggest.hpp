// What somebody who misspelt a word may have meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace httpretry::policy_file {

// The nearest of `names`, or an empty view where none is near.
std::string_view nearest(std::string_view word, std::span<const std::string_view> names);

// "; did you mean \"max_attempts\"?", or nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> names);

}  // namespace httpretry::policy_file
