#include "send/flags.hpp"

#include "cli/input.hpp"
#include "send/data.hpp"

#include <sstream>

namespace httpretry::cli {
namespace {

constexpr const char* kBlanks = " \t\r\f\v";
constexpr int kMaxDepth = 16;  // stops a file that includes itself

// Throws UsageError with this message if more than a comment follows the position in the line.
void refuse_text_after(std::size_t at, const std::string& line, const char* message) {
  const auto rest = line.find_first_not_of(kBlanks, at);
  if (rest != std::string::npos && line[rest] != '#') throw UsageError(message);
}

// Returns the value in quotes on a line of a -K file, with its escapes replaced: "a\tb" has a tab.
// `at` is the position after the first quote. Throws UsageError if the second quote is missing, or
// if more than a comment follows it.
std::string quoted(const std::string& line, std::size_t at) {
  // The letters of escapes, and the characters that they stand for. A backslash before any other
  // character stands for that character.
  constexpr std::string_view kLetters = "tnrv";
  constexpr std::string_view kMeanings = "\t\n\r\v";
  std::string text;
  for (; at < line.size() && line[at] != '"'; ++at) {
    if (line[at] != '\\' || at + 1 == line.size()) {
      text += line[at];
      continue;
    }
    ++at;  // to the character after the backslash
    const auto letter = kLetters.find(line[at]);
    text += letter == std::string_view::npos ? line[at] : kMeanings[letter];
  }
  if (at >= line.size()) throw UsageError("the closing quote is missing");
  refuse_text_after(at + 1, line, "unexpected text after the closing quote");
  return text;
}

// Returns a line of a -K file as command-line arguments: {"--name"}, {"--name=value"} or {"-n",
// "value"}. Returns none for an empty line or a comment. As in curl, the name may lack the dashes,
// and "=" or ":" may then separate it from the value. A value with spaces must be in quotes. Throws
// UsageError if the quotes are missing or wrong.
Args arguments(const std::string& line) {
  const auto begin = line.find_first_not_of(kBlanks);
  if (begin == std::string::npos || line[begin] == '#') return {};
  const bool dashed = line[begin] == '-';
  // After dashes, only a blank ends the name, so all of "--name=value" becomes `name`.
  const auto separators = std::string(kBlanks) + (dashed ? "" : "=:");
  const auto name_end = std::min(line.find_first_of(separators, begin), line.size());
  auto name = (dashed ? "" : "--") + line.substr(begin, name_end - begin);
  const auto value_begin = line.find_first_not_of(separators, name_end);
  const bool has_value = value_begin != std::string::npos && line[value_begin] != '#';
  if (!has_value) return {std::move(name)};
  const bool in_quotes = line[value_begin] == '"';
  const auto value_end = std::min(line.find_first_of(kBlanks, value_begin), line.size());
  if (!in_quotes) refuse_text_after(value_end, line, "a value with spaces must be in quotes");
  auto value =
      in_quotes ? quoted(line, value_begin + 1) : line.substr(value_begin, value_end - value_begin);
  if (name.starts_with("--")) return {name + '=' + value};
  return {std::move(name), std::move(value)};
}

}  // namespace

// Implements -K: applies the options in a file, one per line, to `to`. A file may include others
// with its own -K. Throws ReadError if a file cannot be read, and UsageError, with the file and the
// number of the line, for a line with an error.
void read_config(const std::string& path, SendOptions& to) {
  if (!to.read_config) return;  // the first pass over the command line only looks for -m
  if (++to.config_depth > kMaxDepth) {
    throw UsageError("option -K: " + path + ": option files include each other more than " +
                     std::to_string(kMaxDepth) + " levels deep");
  }
  // The descriptor end_of_waits ends the wait for a pipe: after a signal or the time of -m.
  std::istringstream text(read_named(path, kMaxTextFile, to.end_of_waits));
  int line_number = 0;
  for (std::string line; std::getline(text, line);) {
    ++line_number;
    try {
      parse_send(arguments(line), to);
    } catch (const UsageError& error) {
      throw UsageError(path + ":" + std::to_string(line_number) + ": " + error.what());
    }
  }
  --to.config_depth;  // not after an exception, which ends the program
}

}  // namespace httpretry::cli
