// httpretry: sends HTTP requests as curl does, and retries them according to a policy.
#include "cli/commands.hpp"

#include "cli/exit_status.hpp"
#include "cli/input.hpp"
#include "cli/message.hpp"
#include "cli/output.hpp"
#include "cli/policy_options.hpp"

#include <httpretry/http/headers.hpp>
#include <httpretry/http/shown_value.hpp>
#include <httpretry/json/problem.hpp>

#include <fcntl.h>
#include <algorithm>
#include <csignal>
#include <exception>
#include <sstream>
#include <vector>

namespace httpretry::cli {
namespace {

// Prints a help text. A reader such as `head` may close the pipe early, which is no error here.
void print_help(const std::string& text) {
  std::signal(SIGPIPE, SIG_DFL);
  write_stdout(text);
}

int run(const Command& command, const Args& args) {
  try {
    return command.run(args);
  } catch (const HelpRequested&) {
    const auto help = std::ranges::find_if(
        args, [](const std::string& arg) { return arg == "-h" || arg == "--help"; });
    const bool has_topic = args.end() - help > 1;
    print_help(help_text(command, has_topic ? help[1] : ""));
    return kOk;
  }
}

// Returns the arguments that stand for "help WORD...": those of a command with --help after them,
// or --help with a topic.
Args without_help_command(const Args& args) {
  Args words(args.begin() + 1, args.end());
  const bool is_command =
      !words.empty() && std::ranges::any_of(commands(), [&](const Command& command) {
        return (std::string(command.name) + ' ').starts_with(words.front() + ' ');
      });
  words.insert(is_command ? words.end() : words.begin(), "--help");
  return words;
}

// Returns the two-word commands that begin with `family`, such as "policy".
std::vector<const Command*> members(const std::string& family) {
  std::vector<const Command*> found;
  for (const auto& command : commands()) {
    if (command.name.starts_with(family + " ")) found.push_back(&command);
  }
  return found;
}

// Handles arguments that begin with the first word of two-word commands, such as "policy" of
// "policy check", but name none of these commands. Prints a summary of them for -h and --help, and
// returns kOk. Otherwise throws UsageError.
int run_family(const Args& args) {
  const auto& family = args.front();    // "policy"
  std::vector<std::string_view> names;  // the second words: "check", "explain" …
  std::string help;
  std::string list;
  for (const auto* command : members(family)) {
    names.push_back(command->name.substr(family.size() + 1));
    list += (list.empty() ? "" : ", ") + std::string(names.back());
    help += command->synopsis() + "\n    " + std::string(command->summary) + '\n';
  }
  if (args.size() == 1) throw UsageError(family + " needs a command: one of " + list);
  if (args[1] == "-h" || args[1] == "--help") {
    print_help(help);
    return kOk;
  }
  throw UsageError(family + ": unknown command \"" + args[1] + "\"" + did_you_mean(args[1], names));
}

// Returns the error for a word in place of a URL. `meant` is what the user probably wants instead.
UsageError not_a_url(const std::string& word, const std::string& meant) {
  return UsageError("\"" + word + "\" is not a URL; did you mean " + meant +
                    "? (For a host of that name, use http://" + word + "/.)");
}

// Throws UsageError if the first URL of the command line is probably a mistake, such as a part of a
// command or a method. In "check policy.json" the user forgot "policy" and does not want
// http://check/; in "polcy check" the user mistyped it.
void check_first_url(const std::string& url) {
  // Is it the second word of a command, as "check" is of "policy check"?
  for (const auto& command : commands()) {
    const auto space = command.name.find(' ');
    const bool has_second = space != std::string_view::npos;
    if (has_second && command.name.substr(space + 1) == url) {
      throw not_a_url(url, "httpretry " + std::string(command.name));
    }
  }
  // Is it a method, without the -X that must precede it?
  for (const std::string_view method :
       {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}) {
    if (equal_ignoring_case(url, method)) throw not_a_url(url, "-X " + std::string(method));
  }
  // A text with one of these characters is meant as a URL.
  if (url.find_first_of("./:?#") != std::string::npos) return;
  // Is it a mistyped first word of a command? The caller has handled the correct ones.
  std::vector<std::string_view> first_words;
  for (const auto& command : commands()) {
    const auto first_word = command.name.substr(0, command.name.find(' '));
    if (!first_word.empty()) first_words.push_back(first_word);  // empty: the command that sends
  }
  const auto meant = nearest(url, first_words);
  if (!meant.empty()) throw not_a_url(url, "httpretry " + std::string(meant));
}

// Returns the command that the first one or two words name, or nullptr. The command that sends has
// no name.
const Command* named_command(const Args& args) {
  std::string name;
  for (std::size_t words = 1; words <= 2 && words <= args.size(); ++words) {
    name += (words == 1 ? "" : " ") + args[words - 1];
    for (const auto& command : commands()) {
      if (command.name == name && !name.empty()) return &command;
    }
  }
  return nullptr;
}

// Runs the command that the first one or two words name, or sends if they name none. Returns the
// exit status.
int run(const Args& args) {
  if (!args.empty() && args.front() == "help") return run(without_help_command(args));
  if (const auto* command = named_command(args)) {
    const auto words = 1 + std::ranges::count(command->name, ' ');
    return run(*command, Args(args.begin() + words, args.end()));
  }
  // No command has that name. "policy" alone is the first word of several.
  if (!args.empty() && !members(args.front()).empty()) return run_family(args);
  if (!args.empty() && !args.front().starts_with('-')) check_first_url(args.front());
  return run(commands().front(), args);  // the command that sends
}

// Prints the error without secrets: a URL given in place of a number or a file may contain a
// password.
int print_error(const std::exception& error, int status) {
  print_message("httpretry: " + shown_value("", error.what()));
  return status;
}

// Opens the standard streams that are closed. Otherwise the next file that is opened would get the
// number of one, and messages would be written into it. The mode makes reading or writing fail.
void reserve_standard_streams() {
  for (const int stream : {0, 1, 2}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    static_cast<void>(::open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY));
  }
}

}  // namespace
}  // namespace httpretry::cli

// Runs the command that the command line names. If it throws, prints the error and returns the exit
// status for its type. Otherwise returns the status of the command.
int main(int argc, char** argv) {
  using namespace httpretry::cli;
  reserve_standard_streams();  // before any other file is opened
  // With these signals ignored, write() fails on a closed pipe, or on a file that exceeds `ulimit
  // -f`. We report that and remove temporary files.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  const int first_argument = argc > 0 ? 1 : 0;  // after the name of the program
  const Args args(argv + first_argument, argv + argc);
  try {
    return run(args);
  } catch (const UsageError& error) {
    print_error(error, kUsage);
    const auto* const command = named_command(args);
    print_message("httpretry: run httpretry " +
                  (command != nullptr ? std::string(command->name) + " " : std::string()) +
                  "--help for a list of options");
    return kUsage;
  } catch (const BadPolicyFile& error) {
    // what() has a line for each problem, which begins with its position and needs no "httpretry:".
    std::istringstream lines(error.what());
    for (std::string line; std::getline(lines, line);) print_message(line);
    return kBadPolicyFile;
  } catch (const ReadError& error) {
    return print_error(error, kReadError);
  } catch (const WriteError& error) {
    return print_error(error, kWriteError);
  } catch (const std::exception& error) {
    return print_error(error, kInternalError);
  }
}
