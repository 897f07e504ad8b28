// --help: formats the help texts of the tables for a terminal of 80 columns.
#include "cli/commands.hpp"
#include "cli/reference.hpp"
#include "lib/core/base/text.hpp"
#include "send/flags.hpp"

#include <algorithm>

namespace httpretry::cli {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kColumn = 30;  // the column at which the help of a flag begins

// Returns the text, broken between words into lines of at most kWidth columns. The caller has
// already written `column` characters of the first line; the other lines begin with `indent`
// spaces. A newline in the text becomes an empty line between paragraphs.
std::string wrapped(std::string_view text, std::size_t column, std::size_t indent) {
  std::string lines;
  while (!text.empty()) {
    // Adds one word, with a line break or a space before it unless it is the first of its line.
    const auto word_end = std::min(text.find_first_of(" \n"), text.size());
    // True if nothing of `text` is on this line yet. A space at the end is the indent.
    const bool at_line_start = lines.empty() || lines.back() == '\n' || lines.back() == ' ';
    if (!at_line_start && column + 1 + word_end > kWidth) {
      lines += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (!at_line_start) {
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

std::string lines_of(const FlagGroup& group) {
  auto text = std::string(group.title) + ":\n";
  for (const auto& flag : group.flags) text += line_of(flag);
  return text;
}

std::string flags_text(const Command& command) {
  std::string text;
  for (const auto& group : command.flags()) text += '\n' + lines_of(group);
  return text;
}

// Returns whether a topic names the flag: "--retry", "retry", "-o" or "--no-location".
bool names(std::string_view topic, const Flag& flag) {
  if (topic.size() == 2 && topic[0] == '-' && topic[1] == flag.letter) return true;
  if (topic.starts_with("--")) topic.remove_prefix(2);
  return topic == flag.name || (topic.starts_with("no-") && topic.substr(3) == flag.name);
}

// Returns the part of a command's help that `topic` names: the title of a group of options, such as
// "retries", or an option. For an option that the command does not have, returns what is known
// about it, such as what to use instead. Throws UsageError for any other topic.
std::string part_of_help(const Command& command, const std::string& topic) {
  std::string topics = "all";  // for the message; the caller has handled "all"
  for (const auto& group : command.flags()) {
    if (equal_ignoring_case(group.title, topic)) return lines_of(group);
    topics += ", " + to_lower(group.title);
  }
  for (const auto& group : command.flags()) {
    for (const auto& flag : group.flags) {
      if (names(topic, flag)) return line_of(flag);
    }
  }
  const auto option = topic.starts_with('-') ? topic : "--" + topic;
  // Users try curl's options with the command that sends requests, which has no name.
  const auto about = command.name.empty() ? about_unknown_option(option) : std::string();
  if (!about.empty()) return wrapped(option + about, /*column=*/0, /*indent=*/0);
  throw UsageError("option --help: \"" + topic + "\" is neither an option nor one of " + topics);
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

std::string help_text(const Command& command, const std::string& topic) {
  if (!topic.empty() && topic != "all") return part_of_help(command, topic);
  const bool sends = command.name.empty();
  auto text = command.synopsis() + '\n';
  if (sends) text += other_commands();
  text += '\n' + wrapped(command.about, /*column=*/0, /*indent=*/0) + flags_text(command) +
          examples_of(command);
  if (sends) text += statuses();
  return text;
}

}  // namespace httpretry::cli
