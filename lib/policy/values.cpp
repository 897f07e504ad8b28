#include "lib/policy/values.hpp"

#include <httpretry/http/headers.hpp>
#include <httpretry/retry/decide.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace httpretry::policy_file {
namespace {

using namespace std::chrono_literals;

// A value that was read goes where it belongs, or, where it was only looked at, nowhere.
template <class Field, class Value>
bool put(Value value, void* field) {
  if (field != nullptr) *static_cast<Field*>(field) = std::move(value);
  return true;
}

bool refuse(const JsonNode& json, Problems& report, std::string message) {
  report.error(json, std::move(message));
  return false;
}

bool read_duration(const Key& key, const JsonNode& json, void* field, Problems& report) {
  if (json.is(JsonNode::Type::Number)) {
    const auto value = described(json);
    if (value.front() == '-') return refuse(json, report, value + " is negative, and has no unit");
    return refuse(json, report, value + " has no unit; write a string such as \"" + value + "s\"");
  }
  if (!expect(json, JsonNode::Type::String, "a duration such as \"1.5s\"", report)) return false;
  const auto limit = key.form == Form::Limit;
  if (limit && json.text == "none") return put<Duration>(kForever, field);
  const auto [duration, problem] = duration_in(json.text);
  if (!problem.empty()) return refuse(json, report, described(json) + " " + problem);
  if (key.least > 0 && duration == 0ns) {
    const auto instead = limit ? "; \"none\" means no limit" : "";
    return refuse(json, report, described(json) + " must be more than 0" + instead);
  }
  return put<Duration>(duration, field);
}

std::string plain(double number) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

// What was expected: a limit that nobody comes near is left out, where it is not the one passed.
std::string range(const Key& key, bool under) {
  if (under && key.most >= 1e6) return "at least " + plain(key.least);
  return plain(key.least) + " to " + plain(key.most);
}

// Empty, and a problem, where it is no number of the key's range.
std::optional<double> ranged(const Key& key, const JsonNode& json, Problems& report) {
  if (!expect(json, JsonNode::Type::Number, "a number", report)) return std::nullopt;
  const auto number = number_in(json);
  if (number && *number >= key.least && *number <= key.most) return number;
  const auto under = number && *number < key.least;
  auto why = described(json) + " is out of range: " + range(key, under);
  if (under && key.name == "max_attempts") why += "; the first send counts";
  report.error(json, std::move(why));
  return std::nullopt;
}

template <class Field>
bool read_whole(const Key& key, const JsonNode& json, void* field, Problems& report) {
  const auto number = ranged(key, json, report);
  if (!number) return false;
  if (*number != std::floor(*number)) {
    return refuse(json, report, described(json) + " is not a whole number");
  }
  return put<Field>(static_cast<int>(*number), field);
}

bool read_attempts(const Key& key, const JsonNode& json, void* field, Problems& report) {
  if (json.is(JsonNode::Type::String) && json.text == "unlimited") {
    return put<std::optional<int>>(std::nullopt, field);
  }
  if (!json.is(JsonNode::Type::Number)) {
    return refuse(json, report, "expected a number or \"unlimited\", found " + described(json));
  }
  return read_whole<std::optional<int>>(key, json, field, report);
}

bool read_thousandths(const Key& key, const JsonNode& json, void* field, Problems& report) {
  const auto number = ranged(key, json, report);
  if (!number) return false;
  const auto thousandths = std::round(*number * 1000);
  if (std::abs(thousandths - *number * 1000) > 1e-6 * std::max(1.0, thousandths)) {
    return refuse(json, report, described(json) + " is finer than a thousandth");
  }
  return put<std::int64_t>(static_cast<std::int64_t>(thousandths), field);
}

// The number of the word among `words`; empty, and a problem, where it is none of them.
std::optional<std::size_t> word_in(const JsonNode& json, Words words, Problems& report) {
  const auto found = std::find(words.begin(), words.end(), json.text);
  if (json.is(JsonNode::Type::String) && found != words.end() && !found->empty()) {
    return static_cast<std::size_t>(found - words.begin());
  }
  report.error(json, not_one_of(json, words, report));
  return std::nullopt;
}

bool read_word(const Key& key, const JsonNode& json, void* field, Problems& report) {
  const auto word = word_in(json, key.words, report);
  return word && put<std::uint8_t>(static_cast<std::uint8_t>(*word), field);
}

bool read_transports(const JsonNode& json, void* field, Problems& report) {
  if (!expect(json, JsonNode::Type::Array, "an array", report)) return false;
  unsigned bits = 0;
  auto good = true;
  for (const auto* const child : json.children) {
    const auto word = word_in(*child, transport_words(), report);
    if (word) bits |= 1U << *word;
    good = good && word;
  }
  return good && put<std::uint8_t>(static_cast<std::uint8_t>(bits), field);
}

bool read_hints(const JsonNode& json, void* field, Problems& report) {
  if (!expect(json, JsonNode::Type::Array, "an array", report)) return false;
  std::vector<HintSource> headers;
  auto good = true;
  for (const auto* const child : json.children) {
    const auto words = hint_words();
    const auto found = std::find_if(words.begin(), words.end(), [&](std::string_view word) {
      return equal_ignoring_case(word, child->text);
    });
    if (child->is(JsonNode::Type::String) && found != words.end()) {
      headers.push_back(static_cast<HintSource>(found - words.begin()));
    } else {
      good = word_in(*child, words, report).has_value() && good;
    }
  }
  return good && put<std::vector<HintSource>>(std::move(headers), field);
}

// Numbers, true and false as they are spelled: that is how they are compared.
bool read_values(const JsonNode& json, void* field, Problems& report) {
  if (!expect(json, JsonNode::Type::Array, "an array of values", report)) return false;
  if (json.children.empty()) {
    return refuse(json, report, "an empty list fits nothing; left out, being there is enough");
  }
  std::vector<std::string> values;
  auto good = true;
  for (const auto* const child : json.children) {
    if (child->is(JsonNode::Type::String) || child->is(JsonNode::Type::Number)) {
      values.emplace_back(child->text);
    } else if (child->is(JsonNode::Type::Boolean)) {
      values.emplace_back(child->boolean ? "true" : "false");
    } else {
      good = refuse(*child, report,
                    "expected a string, a number, true or false, found " + described(*child));
    }
  }
  return good && put<std::vector<std::string>>(std::move(values), field);
}

bool is_pointer(std::string_view text) {
  if (text.substr(0, 1) != "/") return false;
  for (auto tilde = text.find('~'); tilde != text.npos; tilde = text.find('~', tilde + 1)) {
    const auto next = text.substr(tilde + 1, 1);
    if (next != "0" && next != "1") return false;
  }
  return true;
}

// "Code", or from the root "/Error/Code".
bool is_element(std::string_view text) {
  if (text.substr(0, 1) == "/") text.remove_prefix(1);
  if (text.empty() || text.back() == '/' || text.find("//") != text.npos) return false;
  return text.find_first_of(" \t\r\n<>&\"'=?!") == text.npos && text.front() != '/';
}

bool read_text(const Key& key, const JsonNode& json, void* field, Problems& report) {
  struct Rule {
    Form form;
    bool (*good)(std::string_view);
    std::string_view what;
  };
  constexpr Rule kRules[] = {
      {Form::Header, valid_header_name, "a header's name"},
      {Form::Pointer, is_pointer, "a JSON pointer such as \"/error/reason\""},
      {Form::Element, is_element, "an XML element's name"},
  };
  const auto* const rule = std::find_if(std::begin(kRules), std::end(kRules),
                                        [&](const Rule& one) { return one.form == key.form; });
  if (!expect(json, JsonNode::Type::String, rule->what, report)) return false;
  if (!rule->good(json.text)) {
    return refuse(json, report, described(json) + " is not " + std::string(rule->what));
  }
  return put<std::string>(std::string(json.text), field);
}

bool read_pattern_text(const Key& key, const JsonNode& json, void* field, Problems& report) {
  if (!key.words.empty() && !word_in(json, key.words, report)) return false;
  if (!expect(json, JsonNode::Type::String, "a string", report)) return false;
  return put<std::optional<std::string>>(std::string(json.text), field);
}

bool read_port(const Key& key, const JsonNode& json, void* field, Problems& report) {
  int port = 0;
  return read_whole<int>(key, json, &port, report) &&
         put<std::optional<std::uint16_t>>(static_cast<std::uint16_t>(port), field);
}

bool read_methods(const JsonNode& json, void* field, Problems& report) {
  if (!expect(json, JsonNode::Type::Array, "an array of methods", report)) return false;
  if (json.children.empty()) {
    return refuse(json, report, "an empty list fits nothing; left out, it is every method");
  }
  std::vector<std::string> methods;
  auto good = true;
  for (const auto* const child : json.children) {
    good = expect(*child, JsonNode::Type::String, "a method", report) && good;
    methods.emplace_back(child->text);
  }
  return good && put<std::vector<std::string>>(std::move(methods), field);
}

bool read_flag(const JsonNode& json, void* field, Problems& report) {
  return expect(json, JsonNode::Type::Boolean, "true or false", report) &&
         put<bool>(json.boolean, field);
}

bool read_number(const Key& key, const JsonNode& json, void* field, Problems& report) {
  const auto number = ranged(key, json, report);
  return number && put<double>(*number, field);
}

}  // namespace

std::optional<double> number_in(const JsonNode& json) {
  double number = 0;
  const auto* const end = json.text.data() + json.text.size();
  const auto result = std::from_chars(json.text.data(), end, number);
  if (result.ec == std::errc::result_out_of_range) return std::nullopt;
  return number;
}

std::string not_one_of(const JsonNode& json, Words words, const Problems& report) {
  auto message = described(json) + " is not one of ";
  auto first = true;
  for (const auto word : words) {
    if (word.empty()) continue;
    if (!std::exchange(first, false)) message += ", ";
    message += word;
  }
  return message + report.suggestion(json.text, words);
}

bool expect(const JsonNode& json, JsonNode::Type type, std::string_view what, Problems& report) {
  if (json.is(type)) return true;
  return refuse(json, report, "expected " + std::string(what) + ", found " + described(json));
}

bool read_value(const Key& key, const JsonNode& json, void* field, Problems& report) {
  switch (key.form) {
    case Form::Duration:
    case Form::Limit: return read_duration(key, json, field, report);
    case Form::Attempts: return read_attempts(key, json, field, report);
    case Form::Count: return read_whole<int>(key, json, field, report);
    case Form::Number: return read_number(key, json, field, report);
    case Form::Thousandths: return read_thousandths(key, json, field, report);
    case Form::Flag: return read_flag(json, field, report);
    case Form::Word: return read_word(key, json, field, report);
    case Form::Statuses: return read_statuses(json, static_cast<StatusSet*>(field), report);
    case Form::ErrorCodes:
      return read_error_codes(json, static_cast<std::vector<ErrorRule>*>(field), report);
    case Form::Transports: return read_transports(json, field, report);
    case Form::Hints: return read_hints(json, field, report);
    case Form::Values: return read_values(json, field, report);
    case Form::Header:
    case Form::Pointer:
    case Form::Element: return read_text(key, json, field, report);
    case Form::Text: return read_pattern_text(key, json, field, report);
    case Form::Port: return read_port(key, json, field, report);
    case Form::Methods: return read_methods(json, field, report);
    default: return false;
  }
}

}  // namespace httpretry::policy_file
