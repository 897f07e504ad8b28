// Imports the retry settings of AWS from a config file, which has sections with lines
// "key = value", or from an environment.
#include "lib/core/base/text.hpp"
#include "policy_set_data.hpp"

#include <httpretry/policy/policy_builder.hpp>
#include <httpretry/policy/policy_import.hpp>

#include <algorithm>

namespace httpretry {
namespace detail::policy_file {
namespace {

constexpr std::string_view kDefaultProfile = "default";

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

std::string_view without_quotes(std::string_view text) {
  const bool is_quoted = text.size() > 1 && text.front() == text.back() &&
                         (text.front() == '"' || text.front() == '\'');
  return is_quoted ? text.substr(1, text.size() - 2) : text;
}

// Returns whether a user may expect another setting to have an effect on retries.
bool concerns_retries(std::string_view key) {
  constexpr std::string_view kWords[] = {"retr", "attempts", "timeout", "defaults_mode"};
  const auto name = to_lower(key);
  return std::ranges::any_of(kWords, [&](auto word) { return name.find(word) != name.npos; });
}

class AwsImport {
 public:
  // Imports one profile of a config file, or an environment if `profile` is nullopt.
  AwsImport(const std::string& file_name, std::optional<std::string_view> profile)
      : profile_(profile),
        mode_key_(profile ? "retry_mode" : "AWS_RETRY_MODE"),
        attempts_key_(profile ? "max_attempts" : "AWS_MAX_ATTEMPTS"),
        problems_(file_name) {}

  // Reads the text, and returns its settings as policies. Returns an error if one of its lines or
  // values is wrong, if the profile does not exist, or if neither of the two settings is set.
  Result<ImportedPolicies> run(std::string_view text) {
    for (line_number_ = 1; !text.empty(); ++line_number_) {
      line_ = take_until(text, '\n');
      if (line_.ends_with('\r')) line_.remove_suffix(1);
      read_line();
    }
    if (problems_.failed()) return finish();  // returns an error with the problems
    auto source = problems_.file();
    if (profile_) {
      if (std::ranges::find(profiles_, *profile_) == profiles_.end()) {
        const auto* prefix = *profile_ == kDefaultProfile ? "" : "profile ";
        return Error(Errc::InvalidRequest, source + ": there is no section [" + prefix +
                                               one_line(*profile_) + "]" +
                                               did_you_mean(*profile_, profiles_));
      }
      source += ": the profile " + quoted_text(*profile_);
    }
    if (mode_ || attempts_) return finish();
    return Error(Errc::InvalidRequest,
                 source + " sets neither " + mode_key_ + " nor " + attempts_key_);
  }

 private:
  [[nodiscard]] Position position(std::string_view part) const {
    return {line_number_, static_cast<int>(part.data() - line_.data()) + 1};
  }

  // Reads one line: a setting, or the header of a section. Skips comments and empty lines.
  void read_line() {
    const auto text = trimmed(line_);
    if (text.empty() || text.front() == '#' || text.front() == ';') return;
    if (!profile_) {  // an environment has no sections
      const auto assignment = text.starts_with("export ") ? trimmed(text.substr(7)) : text;
      // Skips the variables of other programs, and the further lines of their values.
      if (assignment.starts_with("AWS_")) read_setting(assignment);
      return;
    }
    // Skips indented lines. They belong to the value above them, a group of settings for a service.
    if (text.data() != line_.data()) return;
    if (text.front() != '[') return read_setting(text);
    const auto end = text.find(']');
    if (end == std::string_view::npos) {
      // Goes on, to find further problems. The name is then the rest of the line.
      problems_.error(position(text), "", "the name of a section has no \"]\"");
    }
    auto name = trimmed(text.substr(1, end - 1));
    // The section of a profile is "[profile NAME]". AWS ignores "[NAME]" in a config file, unlike
    // in its credentials file, except "[default]". A name with spaces is in quotes.
    const bool has_word = name.starts_with("profile ");
    if (has_word) name = without_quotes(trimmed(name.substr(name.find(' '))));
    const bool is_profile = has_word || name == kDefaultProfile;
    is_in_profile_ = is_profile && name == *profile_;
    if (is_profile) profiles_.push_back(name);
  }

  // Reads "key = value". In a config file, only the section of the profile counts, and a comment
  // may follow. In an environment, the value may be in quotes.
  void read_setting(std::string_view text) {
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) {
      problems_.error(position(text), "",
                      "expected \"name = value\", found " + quoted_text(one_line(text)));
      return;
    }
    const auto key = trimmed(text.substr(0, equals));
    if (profile_ && !is_in_profile_) return;
    const auto rest = text.substr(equals + 1);
    const auto value = profile_ ? trimmed(without_comment(rest)) : without_quotes(trimmed(rest));
    store({.key = profile_ ? to_lower(key) : std::string(key),
           .value = std::string(value),
           .position = position(value)});
  }

  // Stores one of the two settings, and reports a repeated one. Warns of others that concern
  // retries.
  void store(const Setting& setting) {
    if (setting.key == mode_key_ || setting.key == attempts_key_) {
      auto& stored = setting.key == mode_key_ ? mode_ : attempts_;
      if (stored) {
        problems_.error(setting.position, '/' + setting.key,
                        "it is also set on line " + std::to_string(stored->position.line));
      }
      stored = setting;
    } else if (concerns_retries(setting.key)) {
      problems_.warn(setting.position, '/' + setting.key,
                     "is not imported: only " + mode_key_ + " and " + attempts_key_ + " are");
    }
  }

  // Returns the policy of the settings for the hosts of AWS, or the errors.
  Result<ImportedPolicies> finish() {
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

  // Sets the preset of the retry mode. Without this setting, the mode is "standard". Reports an
  // unknown mode, which makes the import fail.
  void set_mode(PolicyBuilder& policy) {
    constexpr std::string_view kModes[] = {"legacy", "standard", "adaptive"};
    const auto mode = mode_ ? to_lower(mode_->value) : "standard";
    if (std::ranges::find(kModes, mode) == std::end(kModes)) {  // so mode_ is set
      problems_.error(mode_->position, '/' + mode_->key,
                      quoted_text(one_line(mode_->value)) +
                          " is not one of legacy, standard, adaptive" + did_you_mean(mode, kModes));
    }
    policy.preset(mode == "adaptive" ? "aws-adaptive" : "aws-standard");
    if (mode != "legacy") return;
    // In botocore: five attempts, waits of 1, 2, 4, … s with full jitter, and no budget. A default
    // Backoff has full jitter and doubles each wait.
    Backoff backoff;
    backoff.initial = std::chrono::seconds(1);
    policy.max_attempts(5).backoff(backoff).budget(BudgetPolicy());
    problems_.warn(
        mode_->position, '/' + mode_->key,
        "legacy differs between the SDKs: imported as in the SDK for Python and the AWS CLI");
  }
  void set_attempts(PolicyBuilder& policy) {
    const auto attempts = to_number<int>(attempts_->value).value_or(0);
    if (attempts < 1) {
      problems_.error(attempts_->position, '/' + attempts_->key,
                      quoted_text(one_line(attempts_->value)) +
                          " is not a number of attempts; expected at least 1");
    }
    policy.max_attempts(attempts);
  }

  std::optional<std::string_view> profile_;
  std::string mode_key_;  // the names of the two settings that are carried over
  std::string attempts_key_;
  Problems problems_;
  std::string_view line_;
  int line_number_ = 0;
  std::vector<std::string_view> profiles_;  // the profiles so far
  bool is_in_profile_ = false;              // the current section is that of the profile
  std::optional<Setting> mode_;
  std::optional<Setting> attempts_;
};

}  // namespace
}  // namespace detail::policy_file

Result<ImportedPolicies> import_aws_config(std::string_view text, const std::string& file_name,
                                           std::string_view profile) {
  return policy_file::AwsImport(file_name, profile).run(text);
}

Result<ImportedPolicies> import_aws_environment(std::string_view lines, const std::string& name) {
  return policy_file::AwsImport(name, std::nullopt).run(lines);
}

}  // namespace httpretry
