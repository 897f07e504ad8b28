// httpretry completion SHELL: generates completion scripts from the tables of commands and flags.
#include "cli/commands.hpp"
#include "cli/exit_status.hpp"
#include "cli/output.hpp"
#include "cli/text.hpp"

namespace httpretry::cli {
namespace {

constexpr const char* kPresetNames = "httpretry policy presets 2>/dev/null | cut -d' ' -f1";

std::vector<Flag> flags_of(const Command& command) {
  std::vector<Flag> all;
  for (const auto& group : command.flags()) {
    all.insert(all.end(), group.flags.begin(), group.flags.end());
  }
  return all;
}

bool names_file(const Flag& flag) {
  return flag.value.starts_with("FILE") || flag.value == "FOLDER";
}
bool names_preset(const Flag& flag) { return flag.value == "PRESET"; }

// Returns both forms of a flag with `between` in the middle: "-o | --output" in a shell's `case`.
std::string spelled(const Flag& flag, const char* between) {
  std::string text;
  if (flag.letter != '\0') text = std::string("-") + flag.letter + between;
  return text + "--" + std::string(flag.name);
}

std::vector<std::string> first_words() {
  std::vector<std::string> words;
  for (const auto& command : commands().subspan(1)) {
    std::string word(command.name.substr(0, command.name.find(' ')));
    if (words.empty() || words.back() != word) words.push_back(std::move(word));
  }
  return words;
}

// Returns the words that can follow a first word: the commands of "policy", or the choices of
// "completion".
std::vector<std::string> second_words(const std::string& first) {
  std::vector<std::string> words;
  for (const auto& command : commands()) {
    if (command.name.starts_with(first + ' ')) {
      words.emplace_back(command.name.substr(first.size() + 1));
    } else if (command.name == first && command.operands.find('|') != std::string_view::npos) {
      words = Flag{'\0', "", command.operands, "", {}}.choices();
    }
  }
  return words;
}

// Returns each first word that takes a second one, such as "policy", with its second words.
std::vector<std::pair<std::string, std::string>> first_words_with_second() {
  std::vector<std::pair<std::string, std::string>> found;
  for (const auto& first : first_words()) {
    const auto words = second_words(first);
    if (!words.empty()) found.emplace_back(first, join(words, " "));
  }
  return found;
}

// Returns the pattern of a command in a shell's `case`.
std::string pattern_of(const Command& command) {
  return command.name.empty() ? "*" : "'" + std::string(command.name) + "'";
}

// --- bash ---

std::string bash_values(const Flag& flag) {
  if (names_preset(flag)) return "-W \"$(" + std::string(kPresetNames) + ")\"";
  if (const auto choices = flag.choices(); !choices.empty())
    return "-W '" + join(choices, " ") + "'";
  return names_file(flag) ? "-f" : "";
}

// Returns the branch of a command in the `case` of bash(). The branch offers the values of the flag
// before the cursor or, if that takes none, sets the variable `flags` to all flags of the command.
std::string bash_command(const Command& command) {
  std::vector<std::string> names;
  std::string cases;
  for (const auto& flag : flags_of(command)) {
    if (flag.letter != '\0') names.push_back(std::string("-") + flag.letter);
    names.push_back("--" + std::string(flag.name));
    if (!flag.takes_value()) continue;
    const auto values = bash_values(flag);
    cases += "        " + spelled(flag, " | ") + ") _httpretry_words " + values + "; return ;;\n";
  }
  return "    " + pattern_of(command) + ")\n      case $previous in\n" + cases +
         "      esac\n      flags='" + join(names, " ") + "' ;;\n";
}

// Returns the completion script for bash. Bash calls its function _httpretry, which reads the words
// of the command line and sets COMPREPLY to the possible next words. _httpretry_words sets
// COMPREPLY to the words that bash's `compgen` makes from its arguments, such as "-W 'a b'" for
// these words or "-f" for the names of files. Without arguments, it offers nothing.
std::string bash() {
  std::string text = R"(# bash completion for httpretry
_httpretry_words() {
  [ $# -gt 0 ] || return 0
  mapfile -t COMPREPLY < <(compgen "$@" -- "${COMP_WORDS[COMP_CWORD]}")
}

_httpretry() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
  local command=${COMP_WORDS[1]} flags=
  COMPREPLY=()
)";
  // The first word: all commands.
  text +=
      "  if [ \"$COMP_CWORD\" -eq 1 ] && [[ $current != -* ]]; then\n    _httpretry_words -W '" +
      join(first_words(), " ") + "'\n    return\n  fi\n";
  // The second word of commands such as "policy check".
  for (const auto& [first, next_words] : first_words_with_second()) {
    text += "  if [ \"$command\" = " + first + " ] && [ \"$COMP_CWORD\" -eq 2 ]; then\n" +
            "    _httpretry_words -W '" + next_words + "'\n    return\n  fi\n";
  }
  // The flags of each command. The first command sends requests and has no name. Its pattern is
  // "*", so it must be last.
  text += R"(  if [ "$command" = policy ]; then command="policy ${COMP_WORDS[2]}"; fi
  case $command in
)";
  for (const auto& command : commands().subspan(1)) text += bash_command(command);
  return text + bash_command(commands().front()) +
         R"(  esac
  if [[ $current == -* ]]; then
    _httpretry_words -W "$flags"
  else
    _httpretry_words -f
  fi
)"
         "}\n\ncomplete -o filenames -F _httpretry httpretry\n";
}

// --- zsh ---

std::string zsh_quoted(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') safe += '\\';
    safe += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return safe;
}

std::string zsh_values(const Flag& flag) {
  if (flag.value.empty()) return "";
  const auto label = ":" + zsh_quoted(flag.choices().empty() ? flag.value : "value") + ":";
  if (names_preset(flag)) return label + "($(" + zsh_quoted(kPresetNames) + "))";
  if (!flag.choices().empty()) return label + "(" + join(flag.choices(), " ") + ")";
  return names_file(flag) ? label + "_files" : label;
}

// Returns one or two arguments of zsh's function _arguments: for the long name, and for the letter
// if there is one. A "*" before a flag allows it several times. After a flag, "=" or "+" says that
// a value must follow, "=-" that a value must be after "=", and "::value:" that it may be left out.
std::string zsh_flag(const Flag& flag) {
  const std::string help = "[" + zsh_quoted(flag.help) + "]";
  const bool has_optional_value = !flag.takes_value() && !flag.value.empty();
  const auto* after_long = flag.takes_value() ? "=" : has_optional_value ? "=-" : "";
  const auto values = flag.takes_value() ? zsh_values(flag) : std::string();
  auto text = "    '*--" + std::string(flag.name) + after_long + help + values +
              (has_optional_value ? "::value:" : "") + "' \\\n";
  if (flag.letter != '\0') {
    text += std::string("    '*-") + flag.letter + (flag.takes_value() ? "+" : "") + help + values +
            "' \\\n";
  }
  return text;
}

std::string zsh_command(const Command& command) {
  std::string text = "  " + pattern_of(command) + ") _arguments -s -S \\\n";
  for (const auto& flag : flags_of(command)) text += zsh_flag(flag);
  return text + "    '*:operand:_files' ;;\n";
}

// Returns the completion script for zsh. The first word is a command or a URL; `words[2]` has it,
// because `words[1]` is "httpretry". Some commands, such as "policy check", also have a second
// word. After the words, each command has a call of _arguments with its flags, in a `case`.
std::string zsh() {
  std::string text =
      "#compdef httpretry\n"
      "local command=${words[2]}\n";
  text += "if (( CURRENT == 2 )) && [[ ${words[2]} != -* ]]; then\n  compadd -- " +
          join(first_words(), " ") + "\n  _urls\n  return\nfi\n";
  for (const auto& [first, next_words] : first_words_with_second()) {
    text += "if [[ $command == " + first + " ]] && (( CURRENT == 3 )); then\n  compadd -- " +
            next_words + "\n  return\nfi\n";
  }
  text +=
      "if [[ $command == policy ]]; then command=\"policy ${words[3]}\"; fi\n"
      "case $command in\n";
  // The first command sends requests and has no name. Its pattern is "*", so it must be last.
  for (const auto& command : commands().subspan(1)) text += zsh_command(command);
  return text + zsh_command(commands().front()) + "esac\n";
}

// --- fish ---

std::string fish_quoted(std::string_view text) {
  std::string safe = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') safe += '\\';
    safe += c;
  }
  return safe + "'";
}

std::string fish_flag(const Flag& flag, const std::string& condition) {
  auto line = "complete -c httpretry -n " + fish_quoted(condition);
  if (flag.letter != '\0') line += std::string(" -s '") + flag.letter + "'";
  line += " -l " + std::string(flag.name);
  if (flag.takes_value()) line += names_file(flag) ? " -r -F" : " -x";
  if (names_preset(flag)) line += " -a " + fish_quoted("(" + std::string(kPresetNames) + ")");
  if (!flag.choices().empty()) line += " -a " + fish_quoted(join(flag.choices(), " "));
  return line + " -d " + fish_quoted(flag.help) + '\n';
}

std::string fish_condition(const Command& command) {
  if (command.name.empty()) return "not __fish_seen_subcommand_from " + join(first_words(), " ");
  const auto space = command.name.find(' ');
  auto text = "__fish_seen_subcommand_from " + std::string(command.name.substr(0, space));
  if (space == std::string_view::npos) return text;
  return text + "; and __fish_seen_subcommand_from " + std::string(command.name.substr(space + 1));
}

// Returns the completion script for fish: a line `complete` with the first words of all commands,
// one for each first word that takes a second one, and one for each flag of each command. -n is the
// condition under which fish offers the words of -a or the flag, and -f excludes names of files.
std::string fish() {
  std::string text = "# fish completion for httpretry\n";
  text += "complete -c httpretry -f -n __fish_is_first_arg -a " +
          fish_quoted(join(first_words(), " ")) + '\n';
  for (const auto& [first, next_words] : first_words_with_second()) {
    text += "complete -c httpretry -f -n " +
            fish_quoted("__fish_seen_subcommand_from " + first +
                        "; and not __fish_seen_subcommand_from " + next_words) +
            " -a " + fish_quoted(next_words) + '\n';
  }
  for (const auto& command : commands()) {
    const auto condition = fish_condition(command);
    for (const auto& flag : flags_of(command)) text += fish_flag(flag, condition);
  }
  return text;
}

}  // namespace

// Implements `httpretry completion SHELL`: prints the script for the shell.
int completion(const Args& args) {
  const auto shells = parse(args, help_only());
  if (shells.size() != 1) throw UsageError("completion needs one of bash, zsh, fish");
  const auto& shell = shells.front();
  const std::string text = shell == "bash"   ? bash()
                           : shell == "zsh"  ? zsh()
                           : shell == "fish" ? fish()
                                             : "";
  if (text.empty()) throw UsageError("completion: \"" + shell + "\" is not one of bash, zsh, fish");
  write_stdout(text);
  return kOk;
}

}  // namespace httpretry::cli
