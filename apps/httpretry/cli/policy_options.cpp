#include "cli/policy_options.hpp"

#include "cli/input.hpp"
#include "cli/text.hpp"

#include <algorithm>

namespace httpretry::cli {
namespace {

constexpr const char* kPolicyVariable = "HTTPRETRY_POLICY";

std::pair<std::string, std::string> parse_setting(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw UsageError("option --set: \"" + text + "\" is not KEY=VALUE, such as max_attempts=6");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

// Changes `write a string such as "5s"` to `write 5s`, because settings on the command line have no
// quotes.
std::string without_quotes(std::string message) {
  constexpr std::string_view kAdvice = "write a string such as \"";
  const auto at = message.find(kAdvice);
  if (at == std::string::npos) return message;
  const auto end = message.find('"', at + kAdvice.size());
  if (end != std::string::npos) message.erase(end, 1);
  return message.replace(at, kAdvice.size(), "write ");
}

PolicySet from_file(const std::string& path, int cancel) {
  auto checked = check_policies(read_policy_file(path, cancel), path);
  if (checked.set) return *std::move(checked.set);
  std::string lines;
  for (const auto& problem : checked.problems) {
    if (!problem.warning) lines += to_string(problem) + '\n';
  }
  throw BadPolicyFile(lines);
}

PolicySet from_preset(const std::string& name) {
  auto resolved = resolve_preset(name);
  if (!resolved) throw UsageError("option --preset: " + resolved.error().message);
  return PolicySet(*std::move(resolved));
}

// Returns the policies of --policy or --preset. Without these flags, returns those of the file in
// $HTTPRETRY_POLICY or, if that is not set, the preset `standard`. Does not apply the settings
// (--set). Throws UsageError, BadPolicyFile and, when the descriptor `cancel` becomes readable
// while a file is read, WaitEnded.
PolicySet base_policies(const PolicyChoice& choice, int cancel) {
  if (choice.file && choice.preset) {
    throw UsageError(
        "--policy and --preset cannot be combined; a policy file can name presets itself");
  }
  if (choice.file) return from_file(*choice.file, cancel);
  if (choice.preset) return from_preset(*choice.preset);
  const auto file = environment_variable(kPolicyVariable);
  if (file.empty()) return PolicySet();  // `standard` for every request
  try {
    return from_file(file, cancel);
  } catch (const BadPolicyFile& error) {
    throw BadPolicyFile(std::string(error.what()) +  // ends with a newline
                        "httpretry: the variable HTTPRETRY_POLICY names this file\n");
  }
}

}  // namespace

void PolicyChoice::set(std::string key, std::string value) {
  std::erase_if(settings, [&](const auto& earlier) { return earlier.first == key; });
  settings.emplace_back(std::move(key), std::move(value));
}

// Returns whether a setting (--set) changes the key of a policy, or a part of it: "backoff" also
// finds "backoff.initial".
bool PolicyChoice::has_setting(std::string_view key) const {
  return std::ranges::any_of(settings, [key](const auto& setting) {
    const std::string_view name = setting.first;
    return name.starts_with(key) && (name.size() == key.size() || name[key.size()] == '.');
  });
}

// Returns the flags that choose and change the policies. Each has a letter ('\0': it has none), a
// name, the name of its value in --help, a help text, and an action that stores the value in
// `choice`, which must outlive the flags.
std::vector<Flag> policy_flags(PolicyChoice& choice) {
  return {
      {'\0', "policy", "FILE", "use the policies in FILE (default: $HTTPRETRY_POLICY)",
       store(choice.file)},
      {'\0', "preset", "PRESET", "use a built-in policy; httpretry policy presets lists them",
       store(choice.preset)},
      {'\0', "set", "KEY=VALUE", "set one key of the policies, such as backoff.initial=200ms",
       [&](const std::string& value) {
         auto [key, text] = parse_setting(value);
         choice.set(std::move(key), std::move(text));
       }},
  };
}

std::string read_policy_file(const std::string& path, int cancel) {
  // A URL may contain a password, so the message does not repeat it.
  if (path.find("://") != std::string::npos) {
    throw BadPolicyFile("expected the name of a policy file, and not a URL\n");
  }
  try {
    return read_whole(path, kMaxTextFile, cancel);
  } catch (const WaitEnded& error) {
    throw WaitEnded("cannot read " + path + ": " + error.what());
  } catch (const ReadError& error) {
    throw BadPolicyFile(path + ": " + error.what() + '\n');
  }
}

bool uses_standard(const PolicyChoice& choice) {
  return !choice.file && !choice.preset && environment_variable(kPolicyVariable).empty();
}

PolicySet chosen_policies(const PolicyChoice& choice, int cancel) {
  auto set = base_policies(choice, cancel);
  if (choice.settings.empty()) return set;
  auto overridden = with_settings(set, choice.settings, "--set");
  if (!overridden) throw UsageError(without_quotes(overridden.error().message));
  return *std::move(overridden);
}

}  // namespace httpretry::cli
