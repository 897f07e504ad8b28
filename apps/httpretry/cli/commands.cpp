#include "cli/commands.hpp"

#include "cli/output.hpp"

#include <unistd.h>
#include <array>
#include <csignal>

namespace httpretry::cli {
namespace {

Command sending() {
  return {"",
          "URL...",
          "send requests",
          "Sends requests as curl does, and retries them by a policy. The answer goes to standard "
          "output, what people read to standard error. An attempt that failed is never shown: only "
          "the answer that counts is.",
          {{"httpretry https://api.example.com/v1/items", "a GET, tried up to four times"},
           {"httpretry --trace --retry 6 -d @order.json --idempotency-key URL",
            "a POST that may be repeated, and what becomes of it"},
           {"httpretry --policy policy.json --report - -o items.json URL",
            "by a file of policies; the report goes to standard output"},
           {"httpretry --until json:/state=DONE URL", "ask until the answer says so"},
           {"httpretry -Z --parallel-max 8 -O URL1 -O URL2", "download two files at once"}},
          send_table,
          send};
}

Command planning() {
  return {
      "plan",
      "[METHOD URL]",
      "what would happen, without a network",
      "What would happen to a request, by the same code that sends: in virtual time, without a "
      "network.\n"
      "Without a scenario every attempt fails in a way that the policy retries, and the table "
      "shows the range of each wait; with one, the exact decisions (draws of 0.5 where neither "
      "--random nor --seed is given). METHOD is GET where it is left out.\n"
      "A timeout takes the policy's attempt_timeout, or 30 s where it has none; a real one then "
      "lasts until max_elapsed_time. Connections do not grow old in here: a kept one that "
      "turns out to be dead is sent on anew, at once, and not counted.",
      {{"httpretry plan --preset google-drive", "each wait's least, mean and most"},
       {"httpretry plan --outcomes 503,timeout,429:retry-after=7,200 POST URL",
        "the decisions for these outcomes"},
       {"httpretry plan --preset gcs --format svg > gcs.svg", "a drawing, for a document"}},
      plan_table,
      plan};
}

Command checking() {
  return {"policy check",
          "FILE...",
          "say what is wrong with policy files",
          "Prints a line for each problem of the files, with its place and what was expected. Exit "
          "status 1 where a file cannot be used; warnings alone are no failure.",
          {{"httpretry policy check policy.json", ""}},
          policy_check_table,
          policy_check};
}

Command explaining() {
  return {
      "policy explain",
      "FILE METHOD URL",
      "which policy a request gets, and why",
      "Names the entry that wins, the others that match or nearly do and why they lost, and each "
      "value in force with the place it comes from.",
      {{"httpretry policy explain policy.json GET https://api.example.com/v1/items", ""}},
      policy_explain_table,
      policy_explain};
}

Command listing_presets() {
  return {"policy presets",
          "[NAME]",
          "list the built-in policies, or print one",
          "With a name, prints a policy that can be pasted into a file.",
          {{"httpretry policy presets google-drive", ""}},
          policy_presets_table,
          policy_presets};
}

Command printing_schema() {
  return {"policy schema",
          "",
          "print the JSON Schema of policy files",
          "Editors complete and check policy files by it.",
          {},
          policy_schema_table,
          policy_schema};
}

Command serving() {
  return {"serve",
          "",
          "a server that misbehaves on purpose",
          "Each request takes the next step of the scenario. The address is the first line on "
          "standard output; then comes a JSON line for each request, written before the answer.",
          {{"httpretry serve --outcomes 503,reset,200", "three requests: two that fail, one good"}},
          serve_table,
          serve};
}

Command completing() {
  return {"completion",
          "bash|zsh|fish",
          "print a completion script for a shell",
          "For bash: source <(httpretry completion bash). The installed program brings them along.",
          {},
          completion_table,
          completion};
}

Command printing_manual() {
  return {"manual",
          "",
          "print the manual page",
          "The source of httpretry(1): httpretry manual | man -l -",
          {},
          manual_table,
          manual};
}

const std::array<Command, 9>& table() {
  static const std::array<Command, 9> commands{sending(),    planning(),        checking(),
                                               explaining(), listing_presets(), printing_schema(),
                                               serving(),    completing(),      printing_manual()};
  return commands;
}

// Who looks at its beginning only has seen enough.
void show_help(const std::string& text) {
  std::signal(SIGPIPE, SIG_DFL);
  write_all(STDOUT_FILENO, text, -1, "standard output");
}

std::string words_behind(const std::string& verb) {
  std::string words;
  for (const auto& command : table()) {
    if (!command.name.starts_with(verb + " ")) continue;
    words += (words.empty() ? "" : ", ") + std::string(command.name.substr(verb.size() + 1));
  }
  return words;
}

// "policy": not a command itself, but the first word of some.
int run_family(const std::string& verb, const Args& args) {
  const bool asks = !args.empty() && (args.front() == "-h" || args.front() == "--help");
  std::vector<std::string> words;
  std::string lines;
  for (const auto& command : table()) {
    if (!command.name.starts_with(verb + " ")) continue;
    words.emplace_back(command.name.substr(verb.size() + 1));
    lines += command.synopsis() + "\n    " + std::string(command.summary) + '\n';
  }
  if (asks) {
    show_help(lines);
    return 0;
  }
  if (args.empty()) throw UsageError(verb + ": one of " + words_behind(verb) + " is missing");
  const auto near = nearest(args.front(), words);
  throw UsageError(verb + ": \"" + args.front() + "\" is unknown" +
                   (near.empty() ? "" : "; did you mean " + near + "?"));
}

// "check policy.json" is no request for http://check/: somebody has left out the family's name.
void refuse_half_a_command(const Args& args) {
  if (args.empty()) return;
  for (const auto& command : table()) {
    const auto space = command.name.find(' ');
    if (space == std::string_view::npos || command.name.substr(space + 1) != args[0]) continue;
    throw UsageError("\"" + args[0] + "\" is not a URL; did you mean httpretry " +
                     std::string(command.name) + "? (A host of that name is http://" + args[0] +
                     "/.)");
  }
}

int run_command(const Command& command, const Args& args) {
  try {
    return command.run(args);
  } catch (const HelpAsked&) {
    show_help(help_text(command));
    return 0;
  }
}

}  // namespace

std::string Command::synopsis() const {
  std::string text = "httpretry";
  if (!name.empty()) text += ' ' + std::string(name);
  const auto groups = flags();
  const bool only_help = groups.size() == 1 && groups.front().flags.size() == 1;
  if (!only_help) text += " [options]";
  if (!operands.empty()) text += ' ' + std::string(operands);
  return text;
}

std::span<const Command> commands() { return table(); }

int run(const Args& args) {
  std::string name;
  for (std::size_t words = 1; words <= 2 && words <= args.size(); ++words) {
    name += (words == 1 ? "" : " ") + args[words - 1];
    for (const auto& command : table()) {
      if (command.name != name || name.empty()) continue;
      return run_command(command,
                         Args(args.begin() + static_cast<std::ptrdiff_t>(words), args.end()));
    }
  }
  if (!args.empty() && !words_behind(args.front()).empty()) {
    return run_family(args.front(), Args(args.begin() + 1, args.end()));
  }
  refuse_half_a_command(args);
  return run_command(table().front(), args);
}

}  // namespace httpretry::cli
