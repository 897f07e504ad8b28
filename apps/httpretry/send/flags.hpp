// Shared by the tables of the flags of sending.
#pragma once

#include "send/options.hpp"

namespace httpretry::cli {

using Text = const std::string&;

template <class Target>
auto store(Target& target) {
  return [&target](Text value) { target = value; };
}
inline auto enable(bool& target) {
  return [&target](Text) { target = true; };
}
inline auto append(std::vector<std::string>& target) {
  return [&target](Text value) { target.push_back(value); };
}

// Where the response goes.
std::vector<Flag> file_flags(SendOptions& to);
// What of it is shown.
std::vector<Flag> response_flags(SendOptions& to);

}  // namespace httpretry::cli
