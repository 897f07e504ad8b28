// The tables of the manual page other than the commands and flags.
#pragma once

#include <span>
#include <string_view>

namespace httpretry::cli {

struct Entry {
  std::string_view name;
  std::string_view meaning;
};
struct Section {
  std::string_view title;
  std::span<const Entry> entries;
};

// Returns the sections in the order of the manual page.
std::span<const Section> reference();

// Returns the options of curl 7.88 that are refused, each with the reason and what to use instead.
std::span<const Entry> refused_options();

// Returns the exit statuses, which --help also shows.
std::span<const Entry> exit_statuses();

}  // namespace httpretry::cli
