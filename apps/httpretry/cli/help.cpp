// --help: formats the help texts of the tables for a terminal of 80 columns.
#include "cli/commands.hpp"
#include "cli/reference.hpp"

#include <algorithm>

namespace httpretry::cli {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kColumn = 30;  // the column at which the help of a flag begins

// Returns the text with lines that are broken between words, so that they fit into kWidth columns.
// The caller has already written `column` characters of the first line; the other lines begin with
// `indent` spaces. A newline in the text becomes an empty line between paragraphs.
std::string wrapped(std::string_view text, std::size_t column, std::size_t indent) {
  std::string lines;
  while (!text.empty()) {
    // Adds one word, with a line break or a space before it unless it is the first of its line.
    const auto word_end = std::min(text.find_first_of(" \n"), text.size());
    const bool line_is_empty = lines.empty() || lines.back() == '\n' || lines.back() == ' ';
    if (!line_is_empty && column + 1 + word_end > kWidth) {
      lines += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (!line_is_empty) {
      lines += ' ';
      ++column;
    }
    lines += text.substr(0, word_end);
    column += word_end;
    if (word_end < text.size() && text[word_end] == '\n') {
      lines += "\n\n" + std::string(indent, ' ');
      column = indent;
    }
    text.remove_prefix(std::min(word_end + 1, text.size()));
  }
  return lines + '\n';
}

std::string line_of(const Flag& flag) {
  std::string line = "      ";
  if (flag.letter != '\0') line = std::string("  -") + flag.letter + ", ";
  line += "--" + std::string(flag.name);
  if (flag.takes_value()) line += ' ';
  line += flag.value;
  line += line.size() + 1 < kColumn ? std::string(kColumn - line.size(), ' ')
                                    : '\n' + std::string(kColumn, ' ');
  return line + wrapped(flag.help, kColumn, kColumn);
}

std::string flags_of(const Command& command) {
  std::string text;
  for (const auto& group : command.flags()) {
    text += '\n' + std::string(group.title) + ":\n";
    for (const auto& flag : group.flags) text += line_of(flag);
  }
  return text;
}

std::string examples_of(const Command& command) {
  std::string text;
  for (const auto& [line, about] : command.examples) {
    text += (text.empty() ? "\nExamples:\n  " : "  ") + std::string(line) + '\n';
    if (!about.empty()) text += "      " + wrapped(about, 6, 6);
  }
  return text;
}

std::string other_commands() {
  std::string text = "\nCommands (each has its own --help):\n";
  for (const auto& command : commands().subspan(1)) {
    const auto name = "  " + std::string(command.name);
    text += name + std::string(kColumn - name.size(), ' ') + std::string(command.summary) + '\n';
  }
  return text;
}

std::string statuses() {
  std::string text = "\nExit status:\n";
  for (const auto& [numbers, meaning] : exit_statuses()) {
    const auto left = "  " + std::string(numbers);
    text += left + std::string(14 - left.size(), ' ') + wrapped(meaning, 14, 14);
  }
  return text;
}

}  // namespace

std::string help_text(const Command& command) {
  const bool sends = command.name.empty();
  auto text = command.synopsis() + '\n';
  if (sends) text += other_commands();
  text += '\n' + wrapped(command.about, 0, 0) + flags_of(command) + examples_of(command);
  if (sends) text += statuses();
  return text;
}

}  // namespace httpretry::cli
