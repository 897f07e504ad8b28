// The table of the program's commands. --help, the manual page and the shell completions are
// generated from it and from the tables of flags.
#pragma once

#include "cli/args.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry::cli {

using Args = std::vector<std::string>;

struct Example {
  std::string_view line;
  std::string_view about;
};

struct Command {
  std::string_view name;      // "plan", "policy check"; empty for sending
  std::string_view operands;  // "[METHOD URL]"
  std::string_view summary;   // one line
  std::string_view about;     // sentences; a newline starts a paragraph
  std::span<const Example> examples;
  FlagTable (*flags)();
  // Runs the command with the arguments after its name; returns the exit status. Throws UsageError.
  int (*run)(const Args&);

  // "httpretry plan [options] [METHOD URL]"
  [[nodiscard]] std::string synopsis() const;
};

// Returns all commands. The first is sending, which has no name.
std::span<const Command> commands();

// The commands; each is implemented in its own file.
int send(const Args& args);
int plan(const Args& args);
int policy_check(const Args& args);
int policy_explain(const Args& args);
int policy_presets(const Args& args);
int policy_schema(const Args& args);
int serve(const Args& args);
int simulate(const Args& args);
int batch(const Args& args);
int work(const Args& args);
int completion(const Args& args);
int manual(const Args& args);

// The flags of these commands, for --help, the manual and the completions.
FlagTable send_table();
FlagTable plan_table();
FlagTable policy_explain_table();
FlagTable serve_table();
FlagTable simulate_table();
FlagTable batch_table();
FlagTable work_table();
FlagTable manual_table();

// Returns the output of --help. `topic` is an option such as "--retry" or "retry", or the title of
// a group of options, whose part of the help is returned; "" or "all" stands for the whole help.
// Throws UsageError for any other topic.
std::string help_text(const Command& command, const std::string& topic);
// Returns the manual page in Markdown.
std::string manual_in_markdown();

}  // namespace httpretry::cli
