#include "send/flags.hpp"

#include "cli/input.hpp"
#include "send/data.hpp"

#include <sstream>

namespace httpretry::cli {
namespace {

constexpr const char* kBlanks = " \t\r\f\v";
constexpr int kMaxDepth = 16;  // stops a file that includes itself

// Returns the text in quotes. `at` is the position after the first quote.
std::string quoted(const std::string& line, std::size_t at) {
  std::string text;
  for (; at < line.size() && line[at] != '"'; ++at) {
    if (line[at] != '\\' || at + 1 == line.size()) {
      text += line[at];
      continue;
    }
    constexpr std::string_view kLetters = "tnrv";
    const auto which = kLetters.find(line[++at]);
    text += which == std::string_view::npos ? line[at] : "\t\n\r\v"[which];
  }
  if (at >= line.size()) throw UsageError("the closing quote is missing");
  if (line.find_first_not_of(kBlanks, at + 1) != std::string::npos &&
      line[line.find_first_not_of(kBlanks, at + 1)] != '#') {
    throw UsageError("unexpected text after the closing quote");
  }
  return text;
}

// Returns a line as command-line arguments. A comment has none.
Args arguments(const std::string& line) {
  const auto begin = line.find_first_not_of(kBlanks);
  if (begin == std::string::npos || line[begin] == '#') return {};
  const bool dashed = line[begin] == '-';
  const auto separators = std::string(kBlanks) + (dashed ? "" : "=:");
  const auto name_end = std::min(line.find_first_of(separators, begin), line.size());
  auto name = (dashed ? "" : "--") + line.substr(begin, name_end - begin);
  const auto at = line.find_first_not_of(separators, name_end);
  if (at == std::string::npos || line[at] == '#') return {std::move(name)};
  const auto value_end = std::min(line.find_first_of(kBlanks, at), line.size());
  auto value = line[at] == '"' ? quoted(line, at + 1) : line.substr(at, value_end - at);
  if (name.starts_with("--")) return {name + '=' + value};
  return {std::move(name), std::move(value)};
}

}  // namespace

void read_config(const std::string& path, SendOptions& to) {
  if (!to.read_config) return;
  if (++to.config_depth > kMaxDepth) {
    throw UsageError("option -K: " + path + ": option files include each other more than " +
                     std::to_string(kMaxDepth) + " levels deep");
  }
  std::istringstream text(read_named(path, kMaxTextFile, to.end_of_waits));
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    try {
      parse_send(arguments(line), to);
    } catch (const UsageError& error) {
      throw UsageError(path + ":" + std::to_string(number) + ": " + error.what());
    }
  }
  --to.config_depth;
}

}  // namespace httpretry::cli
