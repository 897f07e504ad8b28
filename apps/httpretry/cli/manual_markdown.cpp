// httpretry manual --markdown: generates the manual page in Markdown from the same tables.
#include "cli/commands.hpp"
#include "cli/reference.hpp"

#include <algorithm>

namespace httpretry::cli {
namespace {

// Escapes markup. A newline starts a paragraph.
std::string plain(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (std::string_view("\\`*_|<>[]").find(c) != std::string_view::npos) safe += '\\';
    safe += c;
    if (c == '\n') safe += '\n';
  }
  return safe;
}

// Returns code for a table cell.
std::string code(std::string_view text) {
  std::string safe = "`";
  for (const char c : text) {
    if (c == '|') safe += '\\';
    safe += c;
  }
  return safe + '`';
}

std::string row_of(const Flag& flag) {
  std::string row = "| ";
  if (flag.letter != '\0') row += code(std::string("-") + flag.letter) + ", ";
  row += code("--" + std::string(flag.name) + (flag.takes_value() ? " " : "") +
              std::string(flag.value));
  return row + " | " + plain(flag.help) + " |\n";
}

std::string flags_in_markdown(const Command& command) {
  std::string text;
  for (const auto& group : command.flags()) {
    text += "\n| " + std::string(group.title) + " | |\n|---|---|\n";
    for (const auto& flag : group.flags) text += row_of(flag);
  }
  return text;
}

std::string examples_of(const Command& command) {
  std::size_t width = 0;
  for (const auto& [line, about] : command.examples) width = std::max(width, line.size());
  std::string text;
  for (const auto& [line, about] : command.examples) {
    text += (text.empty() ? "\n```sh\n" : "") + std::string(line);
    if (!about.empty()) text += std::string(width - line.size(), ' ') + "  # " + std::string(about);
    text += '\n';
  }
  return text.empty() ? text : text + "```\n";
}

std::string section_of(const Command& command) {
  const auto title = command.name.empty() ? "Sending" : "httpretry " + std::string(command.name);
  return "\n## " + title + "\n\n`" + command.synopsis() + "`\n\n" + plain(command.about) + '\n' +
         examples_of(command) + flags_in_markdown(command);
}

std::string table_in_markdown(const Section& section) {
  auto text = "\n## " + std::string(section.title) + "\n\n| | |\n|---|---|\n";
  for (const auto& [name, meaning] : section.entries) {
    text += "| " + code(name) + " | " + plain(meaning) + " |\n";
  }
  return text;
}

}  // namespace

std::string manual_in_markdown() {
  std::string text = "# The command line\n";
  for (const auto& command : commands()) text += section_of(command);
  for (const auto& section : reference()) text += table_in_markdown(section);
  return text;
}

}  // namespace httpretry::cli
