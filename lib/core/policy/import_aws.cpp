// Imports the retry settings of AWS from a config file, which has sections with lines
// "key = value", or from an environment.
#include "lib/core/base/text.hpp"
#include "policy_set_data.hpp"

#include <httpretry/policy/policy_builder.hpp>
#include <httpretry/policy/policy_import.hpp>

#include <algorithm>

namespace httpretry {
namespace policy_file {
namespace {

struct Setting {
  std::string key;
  std::string value;
  Position position;  // the position of the value
};

// Removes a comment after a value. It begins with a space and then "#" or ";".
std::string_view without_comment(std::string_view value) {
  for (std::size_t i = 1; i < value.size(); ++i) {
    const auto sign = value[i] == '#' || value[i] == ';';
    if (sign && (value[i - 1] == ' ' || value[i - 1] == '\t')) return value.substr(0, i);
  }
  return value;
}

// Returns whether a user may expect another setting to have an effect on retries.
bool concerns_retries(std::string_view key) {
  constexpr std::string_view kWords[] = {"retr", "attempts", "timeout", "defaults_mode"};
  const auto name = to_lower(key);
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&](std::string_view word) { return name.find(word) != std::string::npos; });
}

class AwsImport {
 public:
  // Imports one profile of a config file, or an environment if `profile` is nullopt.
  AwsImport(const std::string& file_name, std::optional<std::string_view> profile)
      : profile_(profile),
        mode_key_(profile ? "retry_mode" : "AWS_RETRY_MODE"),
        attempts_key_(profile ? "max_attempts" : "AWS_MAX_ATTEMPTS"),
        problems_(file_name) {}

  Result<ImportedPolicies> run(std::string_view text) {
    for (number_ = 1; !text.empty(); ++number_) {
      line_ = take_until(text, '\n');
      if (line_.ends_with('\r')) line_.remove_suffix(1);
      read_line();
    }
    if (problems_.failed()) return made();
    auto where = problems_.file();
    if (profile_) {
      if (std::find(sections_.begin(), sections_.end(), *profile_) == sections_.end()) {
        return Error(Errc::InvalidRequest, where + ": there is no profile " +
                                               quoted_text(*profile_) +
                                               did_you_mean(*profile_, sections_));
      }
      where += ": the profile " + quoted_text(*profile_);
    }
    if (mode_ || attempts_) return made();
    return Error(Errc::InvalidRequest,
                 where + " sets neither " + mode_key_ + " nor " + attempts_key_);
  }

 private:
  [[nodiscard]] Position position(std::string_view part) const {
    return {number_, static_cast<int>(part.data() - line_.data()) + 1};
  }

  void read_line() {
    const auto text = trimmed(line_);
    if (text.empty() || text.front() == '#' || text.front() == ';') return;
    if (!profile_) return read_setting(text);
    // Indented lines belong to the value above them: a group of settings for one service.
    if (text.data() != line_.data()) return;
    if (text.front() != '[') return read_setting(text);
    const auto end = text.find(']');
    if (end == std::string_view::npos) {
      problems_.error(position(text), "", "a section's name has no \"]\"");
    }
    auto name = trimmed(text.substr(1, end - 1));
    // The section is "[profile NAME]". Only the default profile may omit the word.
    if (name.starts_with("profile ")) name = trimmed(name.substr(8));
    sections_.push_back(name);
  }

  void read_setting(std::string_view text) {
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) {
      problems_.error(position(text), "",
                      "expected \"name = value\", found " + quoted_text(one_line(text)));
      return;
    }
    auto key = trimmed(text.substr(0, equals));
    auto value = text.substr(equals + 1);
    if (profile_) {
      value = trimmed(without_comment(value));
      if (sections_.empty() || sections_.back() != *profile_) return;
      return take({to_lower(key), std::string(value), position(value)});
    }
    if (key.starts_with("export ")) key = trimmed(key.substr(7));
    value = trimmed(value);
    const auto quotes = value.size() > 1 && value.front() == value.back() &&
                        (value.front() == '"' || value.front() == '\'');
    if (quotes) value = value.substr(1, value.size() - 2);
    take({std::string(key), std::string(value), position(value)});
  }

  void take(const Setting& setting) {
    if (setting.key == mode_key_ || setting.key == attempts_key_) {
      auto& kept = setting.key == mode_key_ ? mode_ : attempts_;
      if (kept) {
        problems_.error(setting.position, '/' + setting.key,
                        "it stands at line " + std::to_string(kept->position.line) + " too");
      }
      kept = setting;
    } else if (concerns_retries(setting.key)) {
      problems_.warn(setting.position, '/' + setting.key,
                     "is not carried over: only " + mode_key_ + " and " + attempts_key_ + " are");
    }
  }

  Result<ImportedPolicies> made() {
    PolicyBuilder policy;
    set_mode(policy);
    if (attempts_) set_attempts(policy);
    PolicySetBuilder builder;
    builder.policy("aws", policy);
    for (const auto* const host : {"*.amazonaws.com", "*.amazonaws.com.cn", "*.api.aws"}) {
      EndpointPattern pattern;
      pattern.host = host;
      builder.endpoint(pattern, "aws");
    }
    return finish_import(builder, problems_);
  }

  void set_mode(PolicyBuilder& policy) {
    constexpr std::string_view kModes[] = {"legacy", "standard", "adaptive"};
    const auto mode = mode_ ? to_lower(mode_->value) : "standard";
    if (std::find(std::begin(kModes), std::end(kModes), mode) == std::end(kModes)) {
      problems_.error(mode_->position, '/' + mode_->key,
                      quoted_text(one_line(mode_->value)) +
                          " is not one of legacy, standard, adaptive" + did_you_mean(mode, kModes));
    }
    policy.preset(mode == "adaptive" ? "aws-adaptive" : "aws-standard");
    if (mode != "legacy") return;
    // In botocore: five attempts, waits with full jitter of 1, 2, 4, … s, and no budget.
    Backoff backoff;
    backoff.initial = std::chrono::seconds(1);
    policy.max_attempts(5).backoff(backoff).budget(BudgetPolicy());
    problems_.warn(
        mode_->position, '/' + mode_->key,
        "legacy differs between the SDKs: this is what Python's and the command line do");
  }
  void set_attempts(PolicyBuilder& policy) {
    const auto attempts = to_number<int>(attempts_->value).value_or(0);
    if (attempts < 1) {
      problems_.error(
          attempts_->position, '/' + attempts_->key,
          quoted_text(one_line(attempts_->value)) + " is not a number of attempts: at least 1");
    }
    policy.max_attempts(attempts);
  }

  std::optional<std::string_view> profile_;
  std::string mode_key_;  // the names of the two settings that are carried over
  std::string attempts_key_;
  Problems problems_;
  std::string_view line_;
  int number_ = 0;
  std::vector<std::string_view> sections_;  // the sections so far; the last is the current one
  std::optional<Setting> mode_;
  std::optional<Setting> attempts_;
};

}  // namespace
}  // namespace policy_file

Result<ImportedPolicies> import_aws_config(std::string_view text, const std::string& file_name,
                                           std::string_view profile) {
  return policy_file::AwsImport(file_name, profile).run(text);
}

Result<ImportedPolicies> import_aws_environment(std::string_view lines, const std::string& name) {
  return policy_file::AwsImport(name, std::nullopt).run(lines);
}

}  // namespace httpretry
