// The retry settings of AWS: of a config file, which has sections with lines "key = value", and of
// an environment.
#include "lib/policy/import.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

namespace httpretry {
namespace policy_file {
namespace {

constexpr std::string_view kSpace = " \t\r";

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(kSpace)));
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return result;
}

// A comment behind a value begins with a sign that a space stands before.
std::string_view without_comment(std::string_view value) {
  for (std::size_t i = 1; i < value.size(); ++i) {
    const auto sign = value[i] == '#' || value[i] == ';';
    if (sign && kSpace.find(value[i - 1]) != std::string_view::npos) return value.substr(0, i);
  }
  return value;
}

struct Setting {
  std::string key;
  std::string_view value;
  Position position;  // of the value
};

struct Section {
  std::string name;
  std::vector<Setting> settings;
};

class AwsReader {
 public:
  AwsReader(std::string_view text, Problems& problems) : rest_(text), problems_(problems) {}

  // The first section is what stands before any.
  std::vector<Section> sections(bool environment) {
    std::vector<Section> all(1);
    while (next_line()) {
      const auto text = trimmed(line_);
      if (text.empty() || text.front() == '#' || text.front() == ';') continue;
      // What is indented belongs to the value above it: a group of settings for one service.
      if (!environment && kSpace.find(line_.front()) != std::string_view::npos) continue;
      if (!environment && text.front() == '[') {
        begin_section(text, all);
      } else {
        add_setting(text, environment, all.back());
      }
    }
    return all;
  }

 private:
  bool next_line() {
    if (rest_.empty()) return false;
    line_ = rest_.substr(0, rest_.find('\n'));
    rest_.remove_prefix(std::min(rest_.size(), line_.size() + 1));
    ++number_;
    return true;
  }
  [[nodiscard]] Position position(std::string_view part) const {
    return {number_, static_cast<int>(part.data() - line_.data()) + 1};
  }
  void begin_section(std::string_view text, std::vector<Section>& all) {
    const auto end = text.find(']');
    if (end == std::string_view::npos) {
      problems_.error(position(text), "", "a section's name has no \"]\"");
    }
    auto name = trimmed(text.substr(1, end - 1));
    // "[profile NAME]"; only the default one may go without the word.
    if (name.substr(0, 8) == "profile ") name = trimmed(name.substr(8));
    all.emplace_back().name = name;
  }
  void add_setting(std::string_view text, bool environment, Section& section) {
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) {
      problems_.error(position(text), "",
                      "expected \"name = value\", found " + quoted_text(one_line(text)));
      return;
    }
    auto key = trimmed(text.substr(0, equals));
    auto value = text.substr(equals + 1);
    if (environment && key.substr(0, 7) == "export ") key = trimmed(key.substr(7));
    value = trimmed(environment ? value : without_comment(value));
    const auto quotes = value.size() > 1 && value.front() == value.back() &&
                        (value.front() == '"' || value.front() == '\'');
    if (environment && quotes) value = value.substr(1, value.size() - 2);
    section.settings.push_back(
        {environment ? std::string(key) : lower(key), value, position(value)});
  }

  std::string_view rest_;
  std::string_view line_;
  int number_ = 0;
  Problems& problems_;
};

struct Names {
  std::string_view mode;
  std::string_view attempts;
};
constexpr Names kInConfig{"retry_mode", "max_attempts"};
constexpr Names kInEnvironment{"AWS_RETRY_MODE", "AWS_MAX_ATTEMPTS"};

// Of other settings, those that somebody may expect to have an effect on retries.
bool concerns_retries(std::string_view key) {
  constexpr std::string_view kWords[] = {"retr", "attempts", "timeout", "defaults_mode"};
  const auto name = lower(key);
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&](std::string_view word) { return name.find(word) != std::string::npos; });
}

class AwsPolicy {
 public:
  AwsPolicy(const Names& names, Problems& problems) : names_(names), problems_(problems) {}

  void take(const Section& section) {
    for (const auto& setting : section.settings) {
      if (setting.key == names_.mode || setting.key == names_.attempts) {
        auto& kept = setting.key == names_.mode ? mode_ : attempts_;
        if (kept != nullptr) {
          problems_.error(setting.position, '/' + setting.key,
                          "it stands at line " + std::to_string(kept->position.line) + " too");
        }
        kept = &setting;
      } else if (concerns_retries(setting.key)) {
        problems_.warn(setting.position, '/' + setting.key,
                       "is not carried over: only " + std::string(names_.mode) + " and " +
                           std::string(names_.attempts) + " are");
      }
    }
  }
  [[nodiscard]] bool found() const { return mode_ != nullptr || attempts_ != nullptr; }

  Result<ImportedPolicies> made() {
    PolicyBuilder policy;
    by_mode(policy);
    by_attempts(policy);
    PolicySetBuilder builder;
    builder.policy("aws", policy);
    for (const auto* const host : {"*.amazonaws.com", "*.amazonaws.com.cn", "*.api.aws"}) {
      EndpointPattern pattern;
      pattern.host = host;
      builder.endpoint(pattern, "aws");
    }
    return imported(builder, problems_);
  }

 private:
  void by_mode(PolicyBuilder& policy) {
    constexpr std::string_view kModes[] = {"legacy", "standard", "adaptive"};
    const auto mode = mode_ == nullptr ? "standard" : lower(mode_->value);
    if (std::find(std::begin(kModes), std::end(kModes), mode) == std::end(kModes)) {
      problems_.error(mode_->position, '/' + mode_->key,
                      quoted_text(one_line(mode_->value)) +
                          " is not one of legacy, standard, adaptive" + did_you_mean(mode, kModes));
    }
    policy.preset(mode == "adaptive" ? "aws-adaptive" : "aws-standard");
    if (mode != "legacy") return;
    // botocore: five attempts, any share of 1, 2, 4, … s, and no budget.
    Backoff backoff;
    backoff.initial = std::chrono::seconds(1);
    policy.max_attempts(5).backoff(backoff).budget(BudgetPolicy());
    problems_.warn(
        mode_->position, '/' + mode_->key,
        "legacy differs between the SDKs: this is what Python's and the command line do");
  }
  void by_attempts(PolicyBuilder& policy) {
    if (attempts_ == nullptr) return;
    const auto text = attempts_->value;
    int attempts = 0;
    const auto* const end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, attempts);
    if (result.ec != std::errc() || result.ptr != end || attempts < 1) {
      problems_.error(attempts_->position, '/' + attempts_->key,
                      quoted_text(one_line(text)) + " is not a number of attempts: at least 1");
    }
    policy.max_attempts(attempts);
  }

  const Names& names_;
  Problems& problems_;
  const Setting* mode_ = nullptr;
  const Setting* attempts_ = nullptr;
};

Error nothing_in(const std::string& what, const Names& names) {
  return Error(Errc::InvalidRequest, what + " sets neither " + std::string(names.mode) + " nor " +
                                         std::string(names.attempts));
}

}  // namespace
}  // namespace policy_file

Result<ImportedPolicies> import_aws_config(std::string_view text, const std::string& file_name,
                                           std::string_view profile) {
  using namespace policy_file;
  Problems problems(file_name);
  const auto sections = AwsReader(text, problems).sections(false);
  AwsPolicy policy(kInConfig, problems);
  std::vector<std::string_view> names;
  for (auto section = sections.begin() + 1; section != sections.end(); ++section) {
    names.push_back(section->name);
    if (section->name == profile) policy.take(*section);
  }
  if (!problems.failed() && std::find(names.begin(), names.end(), profile) == names.end()) {
    return Error(Errc::InvalidRequest, file_name + ": there is no profile " + quoted_text(profile) +
                                           did_you_mean(profile, names));
  }
  if (!problems.failed() && !policy.found()) {
    return nothing_in(file_name + ": the profile " + quoted_text(profile), kInConfig);
  }
  return policy.made();
}

Result<ImportedPolicies> import_aws_environment(std::string_view lines, const std::string& name) {
  using namespace policy_file;
  Problems problems(name);
  const auto sections = AwsReader(lines, problems).sections(true);
  AwsPolicy policy(kInEnvironment, problems);
  policy.take(sections.front());
  if (!problems.failed() && !policy.found()) return nothing_in(name, kInEnvironment);
  return policy.made();
}

}  // namespace httpretry
