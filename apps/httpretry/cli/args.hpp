// The command line, read by one table: the flags of a command, each with what it does and its line
// in --help. The help, the manual page and the shells' completions are made from the same table.
//
// A parser of our own rather than CLI11 or its like, for the habits that curl's users have: "-sSL",
// "-XPOST", "-d@file", a value that begins with a dash, an option that is given twice and counts
// twice, options and URLs that belong together by their order, and a file of options.
#pragma once

#include <httpretry/http/time.hpp>

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

// Somebody asked for --help: whatever else stands on the command line does not matter.
struct HelpAsked {};

struct Flag {
  char letter;             // '\0': it has none
  std::string_view name;   // without dashes
  std::string_view value;  // what --help calls it; empty: it takes none; "[=V]": only after a "=";
                           // "a|b|c": one of these
  std::string_view help;
  std::function<void(const std::string&)> apply;
  [[nodiscard]] bool takes_value() const { return !value.empty() && value.front() != '['; }
  // "a", "b", "c"; empty where anything goes.
  [[nodiscard]] std::vector<std::string> choices() const;
};

struct FlagGroup {
  std::string_view title;
  std::vector<Flag> flags;
};
using FlagTable = std::vector<FlagGroup>;

// -h, --help: every command has it.
Flag help_flag();

// Applies the flags, and `operand` to what is none, in the order of the command line. Throws
// UsageError and HelpAsked.
void parse(const std::vector<std::string>& args, const FlagTable& table,
           const std::function<void(const std::string&)>& operand);
// The same, and answers with the operands.
std::vector<std::string> parse(const std::vector<std::string>& args, const FlagTable& table);

// The nearest of `words` to a misspelt one; empty where none is near.
std::string nearest(std::string_view wrong, const std::vector<std::string>& words);
// "; did you mean "WORD"?", or nothing.
std::string did_you_mean(std::string_view wrong, const std::vector<std::string>& words);

// Values of flags; `flag` is for the message.
Duration parse_seconds(const std::string& text, std::string_view flag);     // "2", "0.5"
long parse_count(const std::string& text, std::string_view flag);           // 0 and more
std::uint64_t parse_bytes(const std::string& text, std::string_view flag);  // "100", "20K", "3M"
double parse_unit(const std::string& text, std::string_view flag);          // 0 to 1

}  // namespace httpretry::cli
