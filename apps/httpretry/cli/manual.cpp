// httpretry manual: generates the manual page in man(7) format from the tables.
#include "cli/commands.hpp"
#include "cli/exit_status.hpp"
#include "cli/output.hpp"
#include "cli/reference.hpp"

namespace httpretry::cli {
namespace {

// Returns a text for the manual page, with everything escaped that troff would interpret: dashes,
// backslashes, and dots or single quotes at the start of a line. A newline becomes a request for a
// new paragraph.
std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    const bool line_start = safe.empty() || safe.back() == '\n';
    if (line_start && (c == '.' || c == '\'')) safe += "\\&";  // prints nothing
    if (c == '-') {
      safe += "\\-";
    } else if (c == '\\') {
      safe += "\\e";
    } else if (c == '\n') {
      safe += "\n.PP\n";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string entry(const std::string& term, std::string_view text) {
  return ".TP\n" + term + '\n' + escaped(text) + '\n';
}

std::string flag_term(const Flag& flag) {
  std::string term;
  if (flag.letter != '\0') term = "\\fB" + escaped(std::string("-") + flag.letter) + "\\fR, ";
  term += "\\fB" + escaped("--" + std::string(flag.name)) + "\\fR";
  if (flag.takes_value()) term += ' ';
  return flag.value.empty() ? term : term + "\\fI" + escaped(flag.value) + "\\fR";
}

std::string flags_section(const Command& command, const char* heading) {
  std::string text;
  for (const auto& group : command.flags()) {
    if (*heading != '\0') text += heading + std::string(" \"") + std::string(group.title) + "\"\n";
    for (const auto& flag : group.flags) text += entry(flag_term(flag), flag.help);
  }
  return text;
}

std::string other_commands() {
  std::string text = ".SH COMMANDS\n";
  for (const auto& command : commands().subspan(1)) {
    text += ".SS \"" + escaped(command.synopsis()) + "\"\n" + escaped(command.about) + '\n' +
            flags_section(command, "");
  }
  return text;
}

std::string examples() {
  std::string text = ".SH EXAMPLES\n";
  for (const auto& command : commands()) {
    for (const auto& [line, about] : command.examples) {
      text += ".TP\n\\fB" + escaped(line) + "\\fR\n" +
              escaped(about.empty() ? command.summary : about) + '\n';
    }
  }
  return text;
}

std::string synopsis() {
  std::string text = ".SH SYNOPSIS\n";
  for (const auto& command : commands()) {
    text += (command.name.empty() ? "" : ".br\n") + escaped(command.synopsis()) + '\n';
  }
  return text;
}

std::string section_of(const Section& section) {
  std::string text = ".SH \"";
  for (const char c : section.title) text += static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  text += "\"\n";
  for (const auto& [name, meaning] : section.entries) text += entry(escaped(name), meaning);
  return text;
}

std::string page() {
  auto text = std::string(".TH HTTPRETRY 1 \"\" \"httpretry ") + HTTPRETRY_VERSION +
              "\" \"User Commands\"\n"
              ".SH NAME\nhttpretry \\- send HTTP requests, and retry them according to a policy\n";
  text += synopsis();
  text += ".SH DESCRIPTION\n" + escaped(commands().front().about) + '\n';
  text += ".SH OPTIONS\n" + flags_section(commands().front(), ".SS");
  text += other_commands() + examples();
  for (const auto& section : reference()) text += section_of(section);
  return text + ".SH \"SEE ALSO\"\n.BR curl (1)\n";
}

FlagTable manual_flags(bool& markdown) {
  return {{"Options",
           {{'\0', "markdown", "", "print Markdown instead", enable(markdown)}, help_flag()}}};
}

}  // namespace

FlagTable manual_table() { return unused_table<bool>(manual_flags); }

int manual(const Args& args) {
  bool markdown = false;
  if (!parse(args, manual_flags(markdown)).empty()) throw UsageError("manual takes no operands");
  write_stdout(markdown ? manual_in_markdown() : page());
  return kOk;
}

}  // namespace httpretry::cli
