// Status sets, and the rules of error_codes.
#include "lib/policy/keys.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace httpretry::policy_file {
namespace {

using JsonType = JsonNode::Type;

struct StatusRange {
  int first;
  int last;
};

std::optional<int> status_in(std::string_view text) {
  int status = 0;
  const auto* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, status);
  const auto whole = text.size() == 3 && result.ec == std::errc() && result.ptr == end;
  if (!whole || status < 100 || status > 599) return std::nullopt;
  return status;
}

// "5xx", "500-504", and where `single`, "501".
std::optional<StatusRange> range_in(std::string_view text, bool single) {
  if (text.size() == 3 && text.substr(1) == "xx" && text[0] >= '1' && text[0] <= '5') {
    const auto first = (text[0] - '0') * 100;
    return StatusRange{first, first + 99};
  }
  const auto dash = text.find('-');
  if (dash == std::string_view::npos && !single) return std::nullopt;
  const auto first = status_in(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : status_in(text.substr(dash + 1));
  if (!first || !last || *first > *last) return std::nullopt;
  return StatusRange{*first, *last};
}

bool read_status(const JsonNode& item, StatusSet& set, Problems& problems) {
  if (item.is(JsonType::Number)) {
    const auto number = number_in(item);
    if (number && *number >= 100 && *number <= 599 && *number == static_cast<int>(*number)) {
      set.add(static_cast<int>(*number));
      return true;
    }
    problems.error(item, described(item) + " is not a status: 100 to 599");
    return false;
  }
  if (!expect(item, JsonType::String, "a status, or \"5xx\", \"500-504\", \"!501\"", problems)) {
    return false;
  }
  const auto out = item.text.substr(0, 1) == "!";
  const auto range = range_in(out ? item.text.substr(1) : item.text, out);
  if (range && out) set.remove(range->first, range->last);
  if (range && !out) set.add(range->first, range->last);
  if (range) return true;
  auto message = described(item) + " is not one of 408, \"5xx\", \"500-504\", \"!501\"";
  if (status_in(item.text)) message += ": a status is a number, without quotes";
  problems.error(item, std::move(message));
  return false;
}

constexpr auto kFamilies =
    Words::up_to(ErrorRule::Family::Stripe, std::optional(ErrorRule::Family::Custom));

bool read_rule(const JsonNode& json, ErrorRule& rule, Problems& problems) {
  const auto good =
      read_object(json, rule_shape(), &rule, "a family such as \"aws\", or a rule", problems);
  if (!json.is(JsonType::Object)) return false;
  const auto selectors =
      std::count_if(json.children.begin(), json.children.end(), [](const JsonNode* member) {
        return member->key == "json" || member->key == "header" || member->key == "xml";
      });
  if (selectors != 1) problems.error(json, R"(a rule names one of "json", "header", "xml")");
  return good && selectors == 1;
}

// The statuses from `first` to `last` that are in the set, or those that are not, as ranges.
void print_runs(OrderedJson& out, const StatusSet& set, StatusRange within, bool members) {
  for (auto status = within.first; status <= within.last; ++status) {
    if (set.contains(status) != members) continue;
    const auto first = status;
    while (status < within.last && set.contains(status + 1) == members) ++status;
    if (members && status == first) {
      out.push_back(first);
      continue;
    }
    auto text = (members ? "" : "!") + std::to_string(first);
    if (status > first) text += "-" + std::to_string(status);
    out.push_back(std::move(text));
  }
}

}  // namespace

std::optional<StatusSet> Statuses::parse(const JsonNode& json, Problems& problems) const {
  if (!expect(json, JsonType::Array, "an array of statuses", problems)) return std::nullopt;
  StatusSet set;
  auto good = true;
  for (const auto* const item : json.children) good = read_status(*item, set, problems) && good;
  return good ? std::optional(set) : std::nullopt;
}

OrderedJson Statuses::print(const StatusSet& value) const {
  auto out = OrderedJson::array();
  for (auto first = 100; first < 600; first += 100) {
    const StatusRange within{first, first + 99};
    auto count = 0;
    for (auto status = first; status <= within.last; ++status) count += value.contains(status);
    const auto most = count > 50;
    if (most) out.push_back(std::to_string(first / 100) + "xx");
    print_runs(out, value, within, !most);
  }
  return out;
}

OrderedJson Statuses::schema() const {
  const std::string one = "[1-5][0-9][0-9]";
  return schema_items(
      schema_either({{"type", "integer"}, {"minimum", 100}, {"maximum", 599}},
                    schema_pattern("^(!?([1-5]xx|" + one + "-" + one + ")|!" + one + ")$")));
}

bool Selector::read(const JsonNode& json, void* field, Problems& problems) const {
  auto* const rule = static_cast<ErrorRule*>(field);
  if (rule != nullptr) rule->source = source_;
  return text_.read(json, rule == nullptr ? nullptr : &rule->selector, problems);
}

OrderedJson Selector::write(const void* field) const {
  const auto& rule = *static_cast<const ErrorRule*>(field);
  return rule.source == source_ ? text_.write(&rule.selector) : OrderedJson();
}

std::optional<ErrorCodes::Field> ErrorCodes::parse(const JsonNode& json, Problems& problems) const {
  if (!expect(json, JsonType::Array, "an array of rules", problems)) return std::nullopt;
  Field rules;
  auto good = true;
  for (const auto* const item : json.children) {
    auto& rule = rules.emplace_back();
    if (!item->is(JsonType::String)) {
      good = read_rule(*item, rule, problems) && good;
    } else if (const auto family = kFamilies.parse(*item, problems)) {
      rule.family = static_cast<ErrorRule::Family>(*family);
    } else {
      good = false;
    }
  }
  return good ? std::optional(std::move(rules)) : std::nullopt;
}

OrderedJson ErrorCodes::print(const Field& value) const {
  auto out = OrderedJson::array();
  for (const auto& rule : value) {
    const auto own = rule.family == ErrorRule::Family::Custom;
    out.push_back(own ? write_object(rule_shape(), &rule) : OrderedJson(to_string(rule.family)));
  }
  return out;
}

OrderedJson ErrorCodes::schema() const {
  return schema_items(schema_either(kFamilies.schema(), schema_reference(rule_shape().name)));
}

}  // namespace httpretry::policy_file
