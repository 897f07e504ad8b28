// Parses a command line with a table of flags. Each entry has the flag's action and its help text.
// --help, the manual page and the shell completions are generated from the same table.
//
// CLI11 and similar libraries do not accept everything that curl accepts: "-sSL", "-XPOST",
// "-d@file", values that begin with a dash, repeated options, options matched to URLs by their
// order, and files of options.
#pragma once

#include <httpretry/http/time.hpp>

#include <algorithm>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry::cli {

// An error in the command line; the exit status is 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Thrown for --help; the arguments after it are not parsed. Only the first of them is read, by the
// caller: the topic of the help.
struct HelpRequested {};

struct Flag {
  char letter;            // '\0': no short form
  std::string_view name;  // without dashes
  // The name of the value in --help; empty if the flag takes no value. "[=V]" is an optional value
  // after "=", and "a|b|c" lists the allowed values.
  std::string_view value;
  std::string_view help;
  std::function<void(const std::string&)> apply;
  // Whether the value may be "", in which case the help says what that means. For other flags "" is
  // an error, because an unset variable in a script must not silently turn off a check.
  bool may_be_empty = false;
  [[nodiscard]] bool takes_value() const { return !value.empty() && value.front() != '['; }
  // Returns the words of "a|b|c", or an empty list if any value is allowed.
  [[nodiscard]] std::vector<std::string> choices() const;
};

inline constexpr bool kMayBeEmpty = true;

// Actions for Flag::apply.
using Text = const std::string&;
template <class Target>
auto store(Target& target) {
  return [&target](Text value) { target = value; };
}
template <class Target, class Value>
auto set(Target& target, Value value) {
  return [&target, value](Text /*value*/) { target = value; };
}
// The action of a flag that turns something on or off. The parser accepts --no-NAME for such a flag
// and then does the opposite.
struct Switch {
  bool* target;
  bool value;
  void operator()(Text /*value*/) const { *target = value; }
};
inline Switch set(bool& target, bool value) { return {&target, value}; }
inline Switch enable(bool& target) { return {&target, true}; }
inline auto append(std::vector<std::string>& target) {
  return [&target](Text value) { target.push_back(value); };
}
// For a flag whose value is one of `words` ("a|b|c"): sets the enumerator with the same index.
template <class Enum>
auto choose(Enum& target, std::string_view words) {
  return [&target, words](Text value) {
    const auto all = "|" + std::string(words) + "|";
    const auto found = all.find("|" + value + "|");
    target = static_cast<Enum>(std::count(all.data(), all.data() + found, '|'));
  };
}

// Returns nullopt for zero, with which a flag turns its limit off.
template <class Value>
std::optional<Value> unless_zero(Value value) {
  return value == Value{} ? std::nullopt : std::optional(value);
}

struct FlagGroup {
  std::string_view title;
  std::vector<Flag> flags;
};
using FlagTable = std::vector<FlagGroup>;

// Returns the table of a command for its names and help texts only. The options that its actions
// would set are never read.
template <class Options>
FlagTable unused_table(FlagTable (*table_of)(Options&)) {
  static Options unused;
  return table_of(unused);
}

// Returns -h, --help, which every command has.
Flag help_flag();
// Returns the table of a command that has no other flags.
FlagTable help_only();

std::vector<Flag> joined(std::vector<Flag> flags, const std::vector<Flag>& more);

// Returns the end of the message about an option that is not in the table ("--name" or "-n"), or ""
// to report the option as unknown. `value` is the text after the option, which may be its value, or
// "".
using AboutUnknown = std::function<std::string(std::string_view option, const std::string& value)>;

// Applies the flags and passes the other arguments to `operand`, in the order of the command line.
// Throws UsageError and HelpRequested.
void parse(const std::vector<std::string>& args, const FlagTable& table,
           const std::function<void(const std::string&)>& operand,
           const AboutUnknown& about_unknown = nullptr);
// Applies the flags and returns the operands.
std::vector<std::string> parse(const std::vector<std::string>& args, const FlagTable& table,
                               const AboutUnknown& about_unknown = nullptr);

// Parse the value of a flag. They throw UsageError, with `flag` as the name in the message.
Duration parse_seconds(const std::string& text, std::string_view flag);     // "2", "0.5", "500ms"
long parse_count(const std::string& text, std::string_view flag);           // 0 or more
std::uint64_t parse_bytes(const std::string& text, std::string_view flag);  // "100", "20K", "3M"
double parse_unit(const std::string& text, std::string_view flag);          // 0 to 1
double parse_per_second(const std::string& text, std::string_view flag);    // "10" or "10/s"

}  // namespace httpretry::cli
