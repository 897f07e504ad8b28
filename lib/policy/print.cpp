// A set of policies as a file that gives the same set.
#include "lib/policy/policy_set_data.hpp"
#include "lib/policy/values.hpp"

#include <httpretry/retry/decide.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

namespace httpretry {
namespace policy_file {
namespace {

template <class Value>
const Value& as(const void* field) {
  return *static_cast<const Value*>(field);
}

constexpr auto kMostThousandths = std::numeric_limits<std::int64_t>::max();

template <class Number>
std::string spelled(Number number) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

std::string thousandths(std::int64_t amount) {
  if (amount < 0) return "-" + thousandths(-std::max(amount, -kMostThousandths));
  auto text = spelled(amount / 1000);
  if (amount % 1000 == 0) return text;
  auto rest = spelled(amount % 1000 + 1000);
  rest.front() = '.';
  return text + rest.substr(0, rest.find_last_not_of('0') + 1);
}

std::string list(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const auto& text : texts) out += (out.size() > 1 ? ", " : "") + quoted_text(text);
  return out + "]";
}

std::string words_of(std::uint8_t bits, Words words) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (((bits >> i) & 1U) != 0) texts.emplace_back(words[i]);
  }
  return list(texts);
}

std::string hints(const std::vector<HintSource>& sources) {
  std::vector<std::string> texts;
  texts.reserve(sources.size());
  for (const auto source : sources) texts.emplace_back(to_string(source));
  return list(texts);
}

// A name and a value on a line each, within braces.
class Lines {
 public:
  explicit Lines(std::string indent) : indent_(std::move(indent)) {}
  void add(std::string_view key, std::string_view value) {
    if (!text_.empty()) text_ += ",";
    text_ += "\n" + indent_ + "  " + (key.empty() ? "" : quoted_text(key) + ": ");
    text_ += value;
  }
  [[nodiscard]] std::string within(std::string_view braces) const {
    const auto end = text_.empty() ? std::string() : "\n" + indent_;
    return braces.substr(0, 1).data()[0] + text_ + end + braces.substr(1, 1).data()[0];
  }
  [[nodiscard]] std::string inner() const { return indent_ + "  "; }

 private:
  std::string indent_;
  std::string text_;
};

Mask word_at(const Shape& shape, std::string_view name, bool has, void* object) {
  if (!has) return kAll;
  return Mask{1} << as<std::uint8_t>(shape.find(name)->field(object));
}

std::string print_object(const Shape& shape, void* object, const std::string& indent);

// The value of one key of the object; empty where a file leaves it out.
std::string print_member(const Key& key, void* object, const std::string& indent) {
  if (key.shape == nullptr) return print_value(key, key.field(object));
  auto* const inner = key.existing(object);
  return inner == nullptr ? "\"none\"" : print_object(*key.shape, inner, indent);
}

std::string print_object(const Shape& shape, void* object, const std::string& indent) {
  const auto kind = word_at(shape, "kind", !shape.kinds.empty(), object);
  const auto jitter = word_at(shape, "jitter", !shape.jitters.empty(), object);
  Lines lines(indent);
  for (const auto& key : shape.keys) {
    if (key.field == nullptr || (key.kinds & kind) == 0 || (key.jitters & jitter) == 0) continue;
    const auto value = print_member(key, object, lines.inner());
    if (!value.empty()) lines.add(key.name, value);
  }
  return lines.within("{}");
}

std::string print_reference(const ResolvedPolicy& resolved, const std::string& indent) {
  return resolved.name.empty() ? print_policy(resolved, indent) : quoted_text(resolved.name);
}

std::string print_entry(const PolicySet::Data::Entry& entry, const std::string& indent) {
  Lines lines(indent);
  if (entry.named) lines.add("name", quoted_text(entry.resolved.endpoint));
  lines.add("match", print_pattern(entry.pattern, lines.inner()));
  lines.add("policy", print_reference(entry.resolved, lines.inner()));
  return lines.within("{}");
}

bool is_built_in(const ResolvedPolicy& resolved) {
  return resolved.name.empty() && resolved.preset == standard().preset &&
         *resolved.policy == *standard().policy;
}

}  // namespace

std::string print_value(const Key& key, const void* field) {
  switch (key.form) {
    case Form::Duration:
    case Form::Limit: return quoted_text(httpretry::to_text(as<Duration>(field)));
    case Form::Attempts: {
      const auto& count = as<std::optional<int>>(field);
      return count ? spelled(*count) : "\"unlimited\"";
    }
    case Form::Count: return spelled(as<int>(field));
    case Form::Number: return spelled(as<double>(field));
    case Form::Thousandths: return thousandths(as<std::int64_t>(field));
    case Form::Flag: return as<bool>(field) ? "true" : "false";
    case Form::Word: return quoted_text(key.words[as<std::uint8_t>(field)]);
    case Form::Statuses: return print_statuses(as<StatusSet>(field));
    case Form::ErrorCodes: return print_error_codes(as<std::vector<ErrorRule>>(field));
    case Form::Transports: return words_of(as<std::uint8_t>(field), key.words);
    case Form::Hints: return hints(as<std::vector<HintSource>>(field));
    case Form::Values:
    case Form::Methods: {
      const auto& texts = as<std::vector<std::string>>(field);
      return texts.empty() ? std::string() : list(texts);
    }
    case Form::Header:
    case Form::Pointer:
    case Form::Element: {
      const auto& text = as<std::string>(field);
      return text.empty() ? std::string() : quoted_text(text);
    }
    case Form::Text: {
      const auto& text = as<std::optional<std::string>>(field);
      return text ? quoted_text(*text) : std::string();
    }
    case Form::Port: {
      const auto& port = as<std::optional<std::uint16_t>>(field);
      return port ? spelled(*port) : std::string();
    }
    default: return {};
  }
}

std::string print_policy(const ResolvedPolicy& resolved, std::string_view indent) {
  auto policy = *resolved.policy;
  auto text = print_object(policy_shape(), &policy, std::string(indent));
  if (resolved.preset == "standard" || preset_json(resolved.preset) == nullptr) return text;
  return text.insert(
      1, "\n" + std::string(indent) + "  \"preset\": " + quoted_text(resolved.preset) + ",");
}

std::string print_key(const RetryPolicy& policy, std::string_view key) {
  auto copy = policy;
  return print_member(*policy_shape().find(key), &copy, {});
}

std::string print_pattern(const EndpointPattern& pattern, std::string_view indent) {
  auto copy = pattern;
  return print_object(match_shape(), &copy, std::string(indent));
}

}  // namespace policy_file

std::string PolicySet::print() const {
  using namespace policy_file;
  Lines file("");
  file.add("version", "1");
  if (!is_built_in(data_->fallback)) {
    file.add("default", print_reference(data_->fallback, file.inner()));
  }
  Lines policies(file.inner());
  for (const auto& policy : data_->policies) {
    policies.add(policy.name, print_policy(policy, policies.inner()));
  }
  if (!data_->policies.empty()) file.add("policies", policies.within("{}"));
  Lines endpoints(file.inner());
  for (const auto& entry : data_->entries) endpoints.add({}, print_entry(entry, endpoints.inner()));
  if (!data_->entries.empty()) file.add("endpoints", endpoints.within("[]"));
  return file.within("{}") + "\n";
}

}  // namespace httpretry
