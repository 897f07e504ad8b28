#include "value_types.hpp"

#include "lib/core/base/text.hpp"

#include <httpretry/http/headers.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace httpretry::detail::policy_file {
namespace {

using namespace std::chrono_literals;
using JsonType = JsonNode::Type;

using policy::kLongestDuration;

constexpr std::string_view kDigits = "0123456789";

// Returns the digits at the front of a text.
std::string_view digits_of(std::string_view text) {
  return text.substr(0, text.find_first_not_of(kDigits));
}

struct Unit {
  std::string_view name;
  Duration size;
};
constexpr Unit kUnits[] = {{"h", 1h},   {"m", 1min}, {"s", 1s},
                           {"ms", 1ms}, {"us", 1us}, {"ns", 1ns}};

// Returns a duration of `whole` units and a decimal fraction of a unit. For "1.5s", the arguments
// are 1, "5" and a second. Returns nullopt if the result is not a whole number of nanoseconds.
std::optional<Duration> amount(std::uint64_t whole, std::string_view fraction, Duration unit) {
  while (!fraction.empty() && fraction.back() == '0') fraction.remove_suffix(1);
  if (fraction.size() > 13) return std::nullopt;  // 13 digits of an hour can be whole nanoseconds
  // Nanoseconds of the fraction: for "1.5s", 5 times a second, divided by 10 for each digit. This
  // multiplies first, because a digit of an hour's or a minute's fraction need not be a whole
  // number of nanoseconds by itself.
  __extension__ using Wide = __int128;
  // An empty fraction is not a number, and counts as 0.
  auto part = Wide{to_number<std::int64_t>(fraction).value_or(0)} * unit.count();
  for (std::size_t i = 0; i < fraction.size(); ++i) {
    if (part % 10 != 0) return std::nullopt;
    part /= 10;
  }
  return static_cast<Duration::rep>(whole) * unit + Duration(static_cast<Duration::rep>(part));
}

constexpr Text kMethod("a method");
constexpr const char* kUnitList = "; the units are h, m, s, ms, us and ns";

// Returns the unit that people mean by a word such as "sec", or "" if it is not known.
std::string_view unit_meant(std::string_view word) {
  const auto name = to_lower(trimmed(word));
  constexpr std::pair<std::string_view, std::string_view> kBeginnings[] = {
      {"milli", "ms"}, {"msec", "ms"}, {"ms", "ms"}, {"micro", "us"}, {"us", "us"},
      {"nano", "ns"},  {"ns", "ns"},   {"sec", "s"}, {"min", "m"},    {"h", "h"}};
  if (name.empty() || name == "s") return "s";
  if (name == "m") return "m";
  for (const auto& [beginning, unit] : kBeginnings) {
    if (name.starts_with(beginning)) return unit;
  }
  return {};
}

// Returns why a text is not a duration, with what to write instead. `whole` is the text, and `rest`
// its end, from the first unit on that is wrong. "5sec" becomes "5s", and "2d" becomes "48h".
std::string no_duration(std::string_view whole, std::string_view rest) {
  const auto before = whole.substr(0, whole.size() - rest.size());
  const auto unit = unit_meant(rest);
  const auto days = to_number<std::int64_t>(before);
  const bool in_days = (rest == "d" || rest.starts_with("day")) && days && *days <= 365;
  const auto meant = in_days ? std::to_string(*days * 24) + "h" : std::string(before).append(unit);
  const bool is_clear = in_days || (!before.empty() && !unit.empty() && meant != whole);
  const auto advice = is_clear ? '"' + meant + '"' : R"(it like "250ms", "1.5s" or "1h30m")";
  return "is not a duration: write " + advice + kUnitList;
}

// Returns what to write instead of a string where a number is expected, or "": "; write 0.2" for
// "20%", and "; write 4, without quotes" for "4".
std::string number_meant(const JsonNode& json) {
  if (!json.is(JsonType::String)) return {};
  auto text = std::string_view(json.text);
  const bool is_percent = text.ends_with('%');
  if (is_percent) text.remove_suffix(1);
  text = trimmed(text);
  double number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = failure == std::errc() && end == text.data() + text.size();
  if (!is_number || !std::isfinite(number)) return {};
  return is_percent ? "; write " + text_of(number / 100)
                    : "; write " + std::string(text) + ", without quotes";
}

}  // namespace

bool refuse(const JsonNode& json, Problems& problems, std::string message) {
  problems.error(json, std::move(message));
  return false;
}

bool expect(const JsonNode& json, JsonType type, std::string_view what, Problems& problems) {
  if (json.is(type)) return true;
  return refuse(json, problems, "expected " + std::string(what) + ", found " + described(json));
}

// Returns the value of a number, or nullopt if it is out of the range of a double.
std::optional<double> number_in(const JsonNode& json) {
  double number = 0;
  const auto* const end = json.text.data() + json.text.size();
  const auto result = std::from_chars(json.text.data(), end, number);
  if (result.ec == std::errc::result_out_of_range) return std::nullopt;
  return number;
}

// Returns the duration in a text such as "1h30m" or "1.5s": numbers with units, each unit at most
// once and the longest first. The second value is empty. If the text is not such a duration, the
// second value is the problem, for example "is negative".
std::pair<Duration, std::string> duration_in(std::string_view text) {
  if (text.starts_with('-')) return {{}, "is negative"};
  const auto whole = text;
  Duration sum{};
  const auto* next_unit = std::begin(kUnits);  // the longest unit that may follow
  do {
    // Takes the number from the front of the text: digits, and the fraction if there is a point.
    const auto digits = digits_of(text);
    if (digits.empty()) return {{}, no_duration(whole, text)};
    text.remove_prefix(digits.size());
    std::string_view fraction;
    if (text.starts_with('.')) {
      fraction = digits_of(text.substr(1));
      if (fraction.empty()) return {{}, no_duration(whole, text)};
      text.remove_prefix(1 + fraction.size());
    }
    // Takes the unit: everything up to the next number. Only shorter units may follow.
    const auto name = text.substr(0, text.find_first_of(kDigits));
    const auto* const unit = std::ranges::find(next_unit, std::end(kUnits), name, &Unit::name);
    if (unit == std::end(kUnits)) return {{}, no_duration(whole, text)};
    next_unit = unit + 1;
    text.remove_prefix(name.size());
    // Adds both to the sum. Compares the number of units first, so that the product cannot
    // overflow.
    const auto most_units = static_cast<std::uint64_t>(kLongestDuration / unit->size);
    const auto units = to_number<std::uint64_t>(digits);  // nullopt if it overflows
    if (!units || *units > most_units) return {{}, "is longer than 365 days"};
    const auto duration = amount(*units, fraction, unit->size);
    if (!duration) return {{}, "is finer than a nanosecond"};
    sum += *duration;
    if (sum > kLongestDuration) return {{}, "is longer than 365 days"};
  } while (!text.empty());
  return {sum, {}};
}

// Reads a duration such as "250ms", or "none" (kForever) if the value may be without a limit.
// Returns false and reports a problem if it is something else.
bool DurationType::parse(const JsonNode& json, Duration& value, Problems& problems) const {
  if (json.is(JsonType::Number)) {
    const auto number_text = described(json);
    if (number_text.front() == '-') {
      return refuse(json, problems, number_text + " is negative, and has no unit");
    }
    // The most frequent mistake is 5 instead of "5s".
    const auto in_seconds = std::string(json.text) + 's';
    const bool needs_only_unit = duration_in(in_seconds).second.empty();  // not so for 1e5
    return refuse(json, problems,
                  number_text + " has no unit; write a string such as \"" +
                      (needs_only_unit ? number_text : "1.5") + "s\"");
  }
  if (!expect(json, JsonType::String, "a duration such as \"1.5s\"", problems)) return false;
  if (may_be_none_ && json.text == "none") {
    value = kForever;
    return true;
  }
  const auto [duration, problem] = duration_in(json.text);
  if (!problem.empty()) return refuse(json, problems, described(json) + " " + problem);
  if (must_be_over_zero_ && duration == 0ns) {
    const auto* const hint = may_be_none_ ? "; \"none\" means no limit" : "";
    return refuse(json, problems, described(json) + " must be greater than 0" + hint);
  }
  value = duration;
  return true;
}

// Returns the number in `json` if it is within the limits. Otherwise reports a problem and returns
// nullopt. `limits.parts` says how fine the number may be, and is one of these: 1 for whole
// numbers, 1000 for thousandths, 0 for any number.
std::optional<double> number_within(const JsonNode& json, const NumberLimits& limits,
                                    Problems& problems) {
  if (!json.is(JsonType::Number)) {
    problems.error(json, "expected " + std::string(limits.what) + ", found " + described(json) +
                             number_meant(json));
    return std::nullopt;
  }
  const auto number = number_in(json);  // nullopt if no double is large enough
  if (!number || *number < limits.least || *number > limits.most || std::isnan(*number)) {
    const bool is_under = number && *number < limits.least;
    const auto least = text_of(limits.least);
    auto message = described(json) + " is out of range: ";
    // "1 to 10", or "at least 1" if the number is too small and the upper limit is huge: such a
    // limit is no help for a small number.
    constexpr double kHuge = 1e6;
    message += is_under && limits.most >= kHuge ? "at least " + least
                                                : least + " to " + text_of(limits.most);
    if (is_under && !limits.note.empty()) message += "; " + std::string(limits.note);
    problems.error(json, std::move(message));
    return std::nullopt;
  }
  // The number counted in parts must be whole: with 1000 parts, 0.25 is 250. A decimal such as 0.1
  // is not exact as a double, so thousandths are compared with a tolerance. If `limits.parts` is 0,
  // `in_parts` is 0, which is whole, so every number passes.
  const auto in_parts = *number * limits.parts;
  const auto tolerance = limits.parts > 1 ? 1e-6 * std::max(1.0, in_parts) : 0;
  if (std::abs(in_parts - std::round(in_parts)) <= tolerance) return number;
  problems.error(json, described(json) + (limits.parts == 1 ? " is not a whole number"
                                                            : " is finer than a thousandth"));
  return std::nullopt;
}

OrderedJson DurationType::print(const Duration& value) const { return to_text(value); }

OrderedJson plain_number(double number) {
  constexpr double kExact = 1e15;  // up to here, a double holds every whole number
  // JSON has no infinity and no NaN. They become strings, which are refused when they are read.
  if (!std::isfinite(number)) return text_of(number);
  if (number == std::floor(number) && std::abs(number) < kExact) {
    return static_cast<std::int64_t>(number);
  }
  return number;
}

std::size_t Words::find(std::string_view word) const {
  std::size_t i = 0;
  const auto equals_word = [&](std::string_view one) {
    return any_case_ ? equal_ignoring_case(one, word) : one == word;
  };
  // An empty word is the place of a value that no file can name, so it is never found.
  while (i < size_ && (word.empty() || !equals_word((*this)[i]))) ++i;
  return i;
}

std::vector<std::string_view> Words::all() const {
  std::vector<std::string_view> words;
  for (std::size_t i = 0; i < size_; ++i) {
    if (!(*this)[i].empty()) words.push_back((*this)[i]);
  }
  return words;
}

// Returns the number of the word in the file. Returns nullopt and reports a problem with all words
// if it is unknown.
std::optional<std::size_t> Words::parse(const JsonNode& json, Problems& problems) const {
  const auto number = json.is(JsonType::String) ? find(json.text) : size_;
  if (number < size_) return number;
  const auto words = all();
  std::string list;
  for (const auto word : words) list += (list.empty() ? "" : ", ") + std::string(word);
  const bool left_out = json.is(JsonType::String) &&
                        std::find(left_out_.begin(), left_out_.end(), json.text) != left_out_.end();
  problems.error(json, described(json) + (left_out ? " is not in this version, which has: " + list
                                                   : " is not one of " + list +
                                                         problems.suggestion(json.text, words)));
  return std::nullopt;
}

bool Text::parse(const JsonNode& json, std::string& value, Problems& problems) const {
  if (!expect(json, JsonType::String, what_, problems)) return false;
  value = json.text;
  return good_ == nullptr || good_(json.text) ||
         refuse(json, problems, described(json) + " is not " + std::string(what_));
}

OrderedJson Text::print(const std::string& value) const {
  return value.empty() ? OrderedJson() : OrderedJson(value);
}

constinit const List<Text> kMethods(
    kMethod, "an array of methods",
    "an empty list matches nothing; leave it out to match every method");

}  // namespace httpretry::detail::policy_file
