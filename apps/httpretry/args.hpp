// The command line, read by one table: the flags of a verb, each with what it does and its line in
// --help.
//
// A parser of our own, for the habits that curl's users have: "-sSL", "-XPOST", "-d@file", a value
// that begins with a dash, an option that is given twice, and a flag of theirs that we know and do
// not have yet, which must not be taken for a URL.
#pragma once

#include <httpretry/time.hpp>

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry::cli {

// What is wrong with a command line: exit status 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Flag {
  char letter;             // '\0': it has none
  std::string_view name;   // without dashes
  std::string_view value;  // what --help calls it; empty: it takes none; "[=V]": only after a "="
  std::string_view help;
  std::function<void(const std::string&)> apply;  // not set: refused as not built yet
  [[nodiscard]] bool takes_value() const { return !value.empty() && value.front() != '['; }
};

// Applies the flags and answers with what is left. Throws UsageError.
std::vector<std::string> parse(const std::vector<std::string>& args,
                               const std::vector<Flag>& flags);

// The lines of --help, in the order of the table.
std::string help_lines(const std::vector<Flag>& flags);

// The nearest of `words` to a misspelt one; empty where none is near.
std::string nearest(std::string_view wrong, const std::vector<std::string>& words);

// Values of flags; `flag` is for the message.
Duration parse_seconds(const std::string& text, std::string_view flag);  // "2", "0.5"
long parse_count(const std::string& text, std::string_view flag);        // 0 and more
double parse_unit(const std::string& text, std::string_view flag);       // 0 to 1
// One of the words; throws with all of them otherwise.
std::string one_of(const std::string& text, std::string_view flag,
                   const std::vector<std::string>& words);

}  // namespace httpretry::cli
