#include "lib/policy/types.hpp"

#include <httpretry/http/headers.hpp>
#include <httpretry/retry/decide.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace httpretry::policy_file {
namespace {

using namespace std::chrono_literals;
using JsonType = JsonNode::Type;

std::nullopt_t refuse(const JsonNode& json, Problems& problems, std::string message) {
  problems.error(json, std::move(message));
  return std::nullopt;
}

std::string text_of(double number) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

// The words of an array, by their numbers; `find` may be kinder than Words::find.
template <class Find>
std::optional<std::vector<std::size_t>> words_in(const JsonNode& json, const Words& words,
                                                 Problems& problems, Find find) {
  if (!expect(json, JsonType::Array, "an array", problems)) return std::nullopt;
  std::vector<std::size_t> numbers;
  auto good = true;
  for (const auto* const child : json.children) {
    const auto found = child->is(JsonType::String) ? find(child->text) : words.size();
    if (found < words.size()) {
      numbers.push_back(found);
    } else {
      good = words.parse(*child, problems).has_value() && good;
    }
  }
  return good ? std::optional(std::move(numbers)) : std::nullopt;
}

constexpr auto kTransports = Words::up_to(TransportKind::Partial);
constexpr auto kHeaders = Words::up_to(ServerDelaySource::GrpcRetryPushback);

// A header's name, in any case.
std::string pattern_of_any_case(const Words& among) {
  std::string names;
  for (const auto word : among.all()) {
    if (!names.empty()) names += "|";
    for (const auto c : word) {
      const auto letter = c >= 'a' && c <= 'z';
      names +=
          letter ? std::string{'[', static_cast<char>(c - 'a' + 'A'), c, ']'} : std::string(1, c);
    }
  }
  return "^(" + names + ")$";
}

}  // namespace

bool expect(const JsonNode& json, JsonType type, std::string_view what, Problems& problems) {
  if (json.is(type)) return true;
  problems.error(json, "expected " + std::string(what) + ", found " + described(json));
  return false;
}

std::optional<double> number_in(const JsonNode& json) {
  double number = 0;
  const auto* const end = json.text.data() + json.text.size();
  const auto result = std::from_chars(json.text.data(), end, number);
  if (result.ec == std::errc::result_out_of_range) return std::nullopt;
  return number;
}

OrderedJson schema_either(OrderedJson one, OrderedJson other) {
  return {{"anyOf", OrderedJson::array({std::move(one), std::move(other)})}};
}
OrderedJson schema_reference(std::string_view definition) {
  return {{"$ref", "#/definitions/" + std::string(definition)}};
}
OrderedJson schema_pattern(std::string_view pattern) {
  return {{"type", "string"}, {"pattern", pattern}};
}
OrderedJson schema_items(OrderedJson of, bool not_empty) {
  OrderedJson array = {{"type", "array"}, {"items", std::move(of)}};
  if (not_empty) array["minItems"] = 1;
  return array;
}
OrderedJson schema_name() { return {{"type", "string"}, {"minLength", 1}}; }

std::optional<Duration> DurationType::parse(const JsonNode& json, Problems& problems) const {
  if (json.is(JsonType::Number)) {
    const auto value = described(json);
    if (value.front() == '-')
      return refuse(json, problems, value + " is negative, and has no unit");
    return refuse(json, problems,
                  value + " has no unit; write a string such as \"" + value + "s\"");
  }
  if (!expect(json, JsonType::String, "a duration such as \"1.5s\"", problems)) return std::nullopt;
  if (limit_ && json.text == "none") return kForever;
  const auto [duration, problem] = duration_in(json.text);
  if (!problem.empty()) return refuse(json, problems, described(json) + " " + problem);
  if (zero_ == Zero::Refused && duration == 0ns) {
    const auto* const instead = limit_ ? "; \"none\" means no limit" : "";
    return refuse(json, problems, described(json) + " must be more than 0" + instead);
  }
  return duration;
}

OrderedJson DurationType::print(const Duration& value) const { return to_text(value); }

OrderedJson DurationType::schema() const {
  std::string text = zero_ == Zero::Refused ? "(?=.*[1-9])" : "(?=.)";
  for (const auto* const unit : {"h", "m", "s", "ms", "us", "ns"}) {
    text += "([0-9]+(\\.[0-9]+)?" + std::string(unit) + ")?";
  }
  return schema_pattern(limit_ ? "^(none|" + text + ")$" : "^" + text + "$");
}

std::optional<double> number_within(const JsonNode& json, const Range& range, Problems& problems) {
  if (!expect(json, JsonType::Number, "a number", problems)) return std::nullopt;
  const auto number = number_in(json);
  if (!number || *number < range.least || *number > range.most || std::isnan(*number)) {
    // A limit that no real value is near is not worth telling, unless it is the one passed.
    constexpr double kFar = 1e6;
    const auto under = number && *number < range.least;
    auto why = described(json) + " is out of range: ";
    why += under && range.most >= kFar ? "at least " + text_of(range.least)
                                       : text_of(range.least) + " to " + text_of(range.most);
    if (under && !range.note.empty()) why += "; " + std::string(range.note);
    return refuse(json, problems, std::move(why));
  }
  const auto scaled = *number * range.parts;
  if (std::abs(scaled - std::round(scaled)) <= 1e-6 * std::max(1.0, scaled) * (range.parts > 1)) {
    return number;
  }
  return refuse(json, problems,
                described(json) +
                    (range.parts == 1 ? " is not a whole number" : " is finer than a thousandth"));
}

OrderedJson plain_number(double number) {
  constexpr double kExact = 1e15;  // up to here, a double holds every whole number
  // JSON has no number for these. As a string it is refused where it is read.
  if (!std::isfinite(number)) return text_of(number);
  if (number == std::floor(number) && std::abs(number) < kExact) {
    return static_cast<std::int64_t>(number);
  }
  return number;
}

OrderedJson number_schema(const Range& range) {
  return {{"type", range.parts == 1 ? "integer" : "number"},
          {"minimum", plain_number(range.least)},
          {"maximum", plain_number(range.most)}};
}

std::optional<std::int64_t> Thousandths::parse(const JsonNode& json, Problems& problems) const {
  const auto number = number_within(json, range_, problems);
  if (!number) return std::nullopt;
  return static_cast<std::int64_t>(std::round(*number * 1000));
}

OrderedJson Thousandths::print(const std::int64_t& value) const {
  return plain_number(static_cast<double>(value) / 1000);
}

std::optional<Attempts::Field> Attempts::parse(const JsonNode& json, Problems& problems) const {
  if (json.is(JsonType::String) && json.text == "unlimited") return std::make_optional(Field());
  if (!json.is(JsonType::Number)) {
    return refuse(json, problems, "expected a number or \"unlimited\", found " + described(json));
  }
  const auto number = number_within(json, range_, problems);
  if (!number) return std::nullopt;
  return std::make_optional(Field(static_cast<int>(*number)));
}

OrderedJson Attempts::print(const Field& value) const {
  return value ? OrderedJson(*value) : OrderedJson("unlimited");
}

OrderedJson Attempts::schema() const {
  return schema_either(number_schema(range_), {{"const", "unlimited"}});
}

std::optional<bool> Flag::parse(const JsonNode& json, Problems& problems) const {
  if (!expect(json, JsonType::Boolean, "true or false", problems)) return std::nullopt;
  return json.boolean;
}

std::size_t Words::find(std::string_view word) const {
  std::size_t i = 0;
  while (i < size_ && (word.empty() || (*this)[i] != word)) ++i;
  return i;
}

std::vector<std::string_view> Words::all() const {
  std::vector<std::string_view> words;
  for (std::size_t i = 0; i < size_; ++i) {
    if (!(*this)[i].empty()) words.push_back((*this)[i]);
  }
  return words;
}

std::optional<std::size_t> Words::parse(const JsonNode& json, Problems& problems) const {
  const auto number = json.is(JsonType::String) ? find(json.text) : size_;
  if (number < size_) return number;
  const auto words = all();
  auto message = described(json) + " is not one of ";
  for (const auto word : words) {
    if (word != words.front()) message += ", ";
    message += word;
  }
  return refuse(json, problems, message + problems.suggestion(json.text, words));
}

std::optional<std::string> Text::parse(const JsonNode& json, Problems& problems) const {
  if (!expect(json, JsonType::String, what_, problems)) return std::nullopt;
  if (good_ == nullptr || good_(json.text)) return std::string(json.text);
  return refuse(json, problems, described(json) + " is not " + std::string(what_));
}

OrderedJson Text::print(const std::string& value) const {
  return value.empty() ? OrderedJson() : OrderedJson(value);
}

OrderedJson Text::schema() const {
  return pattern_.empty() ? schema_name() : schema_pattern(pattern_);
}

// Numbers, true and false are kept as they are spelled: so they are compared.
std::optional<Strings::Field> Strings::parse(const JsonNode& json, Problems& problems) const {
  const auto values = of_ == Of::Values;
  if (!expect(json, JsonType::Array, values ? "an array of values" : "an array of methods",
              problems)) {
    return std::nullopt;
  }
  if (json.children.empty()) {
    return refuse(json, problems,
                  values ? "an empty list fits nothing; left out, being there is enough"
                         : "an empty list fits nothing; left out, it is every method");
  }
  Field strings;
  auto good = true;
  for (const auto* const child : json.children) {
    if (child->is(JsonType::String) || (values && child->is(JsonType::Number))) {
      strings.emplace_back(child->text);
    } else if (values && child->is(JsonType::Boolean)) {
      strings.emplace_back(child->boolean ? "true" : "false");
    } else {
      good = expect(*child, JsonType::String,
                    values ? "a string, a number, true or false" : "a method", problems);
    }
  }
  return good ? std::optional(std::move(strings)) : std::nullopt;
}

OrderedJson Strings::print(const Field& value) const {
  return value.empty() ? OrderedJson() : OrderedJson(value);
}

OrderedJson Strings::schema() const {
  if (of_ == Of::Methods) return schema_items(schema_name(), true);
  return schema_items({{"type", {"string", "number", "boolean"}}}, true);
}

std::optional<std::uint8_t> Transports::parse(const JsonNode& json, Problems& problems) const {
  const auto kinds = words_in(json, kTransports, problems,
                              [](std::string_view word) { return kTransports.find(word); });
  if (!kinds) return std::nullopt;
  unsigned bits = 0;
  for (const auto kind : *kinds) bits |= 1U << kind;
  return static_cast<std::uint8_t>(bits);
}

OrderedJson Transports::print(const std::uint8_t& value) const {
  auto list = OrderedJson::array();
  for (std::size_t i = 0; i < kTransports.size(); ++i) {
    if (((value >> i) & 1U) != 0) list.push_back(kTransports[i]);
  }
  return list;
}

OrderedJson Transports::schema() const { return schema_items(kTransports.schema()); }

std::optional<DelayHeaders::Field> DelayHeaders::parse(const JsonNode& json,
                                                       Problems& problems) const {
  const auto numbers = words_in(json, kHeaders, problems, [](std::string_view word) {
    std::size_t i = 0;
    while (i < kHeaders.size() && !equal_ignoring_case(kHeaders[i], word)) ++i;
    return i;
  });
  if (!numbers) return std::nullopt;
  Field headers;
  for (const auto number : *numbers) headers.push_back(static_cast<ServerDelaySource>(number));
  return headers;
}

OrderedJson DelayHeaders::print(const Field& value) const {
  auto list = OrderedJson::array();
  for (const auto source : value) list.push_back(to_string(source));
  return list;
}

OrderedJson DelayHeaders::schema() const {
  return schema_items(
      schema_either(kHeaders.schema(), schema_pattern(pattern_of_any_case(kHeaders))));
}

}  // namespace httpretry::policy_file
