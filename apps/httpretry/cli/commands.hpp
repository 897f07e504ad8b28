// The table of the program's commands. What --help, the manual page and the completions say of them
// comes from here, and from the tables of their flags.
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
  std::string_view summary;   // a few words
  std::string_view about;     // sentences; a line end begins a paragraph
  std::vector<Example> examples;
  FlagTable (*flags)();
  // Takes what stands behind the name and answers with the exit status; throws UsageError for what
  // cannot be understood.
  int (*run)(const Args&);

  // "httpretry plan [options] [METHOD URL]"
  [[nodiscard]] std::string synopsis() const;
};

// Sending first.
std::span<const Command> commands();

// Runs what the first words name; answers with the exit status.
int run(const Args& args);

// One file each.
int send(const Args& args);
int plan(const Args& args);
int policy_check(const Args& args);
int policy_explain(const Args& args);
int policy_presets(const Args& args);
int policy_schema(const Args& args);
int serve(const Args& args);
int completion(const Args& args);
int manual(const Args& args);

// Their flags, for those who read about them.
FlagTable send_table();
FlagTable plan_table();
FlagTable policy_check_table();
FlagTable policy_explain_table();
FlagTable policy_presets_table();
FlagTable policy_schema_table();
FlagTable serve_table();
FlagTable completion_table();
FlagTable manual_table();

// What --help prints.
std::string help_text(const Command& command);
// The manual page as Markdown.
std::string manual_in_markdown();

// What the manual page says beside them.
struct Entry {
  std::string_view name;
  std::string_view meaning;
};
std::span<const Entry> exit_statuses();
std::span<const Entry> stop_reasons();
std::span<const Entry> sent_words();   // "sent" of --trace and of a report
std::span<const Entry> differences();  // from curl
std::span<const Entry> outcomes();     // of --outcomes and of a scenario
std::span<const Entry> environment();

}  // namespace httpretry::cli
