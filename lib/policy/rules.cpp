// Status sets and the rules of error_codes: from JSON, and back.
#include "lib/policy/values.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace httpretry::policy_file {
namespace {

struct Range {
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
std::optional<Range> range_in(std::string_view text, bool single) {
  if (text.size() == 3 && text.substr(1) == "xx" && text[0] >= '1' && text[0] <= '5') {
    const auto first = (text[0] - '0') * 100;
    return Range{first, first + 99};
  }
  const auto dash = text.find('-');
  if (dash == std::string_view::npos && !single) return std::nullopt;
  const auto first = status_in(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : status_in(text.substr(dash + 1));
  if (!first || !last || *first > *last) return std::nullopt;
  return Range{*first, *last};
}

bool read_status(const JsonNode& item, StatusSet& set, Problems& report) {
  if (item.is(JsonNode::Type::Number)) {
    const auto number = number_in(item);
    if (number && *number >= 100 && *number <= 599 && *number == static_cast<int>(*number)) {
      set.add(static_cast<int>(*number));
      return true;
    }
    report.error(item, described(item) + " is not a status: 100 to 599");
    return false;
  }
  if (!expect(item, JsonNode::Type::String, "a status, or \"5xx\", \"500-504\", \"!501\"",
              report)) {
    return false;
  }
  const auto out = item.text.substr(0, 1) == "!";
  const auto range = range_in(out ? item.text.substr(1) : item.text, out);
  if (range && out) set.remove(range->first, range->last);
  if (range && !out) set.add(range->first, range->last);
  if (range) return true;
  auto message = described(item) + " is not one of 408, \"5xx\", \"500-504\", \"!501\"";
  if (status_in(item.text)) message += ": a status is a number, without quotes";
  report.error(item, std::move(message));
  return false;
}

bool read_family(const JsonNode& json, ErrorRule& rule, Problems& report) {
  const auto words = family_words();
  const auto found = std::find(words.begin() + 1, words.end(), json.text);
  if (found == words.end()) {
    report.error(json, not_one_of(json, words, report));
    return false;
  }
  rule = ErrorRule(static_cast<ErrorRule::Family>(found - words.begin()));
  return true;
}

struct Selector {
  std::string_view key;
  ErrorRule::Source source;
};
constexpr Selector kSelectors[] = {{"json", ErrorRule::Source::Json},
                                   {"header", ErrorRule::Source::Header},
                                   {"xml", ErrorRule::Source::Xml}};

bool read_rule(const JsonNode& json, ErrorRule& rule, Problems& report) {
  auto good = true;
  auto selectors = 0;
  for (const auto* const member : json.children) {
    const auto* const key = known_key(*member, rule_shape(), report);
    if (key == nullptr) {
      good = false;
    } else if (key->field == nullptr) {
      good = read_statuses(*member, &rule.status.emplace(), report) && good;
    } else {
      good = read_value(*key, *member, key->field(&rule), report) && good;
    }
    for (const auto& selector : kSelectors) {
      if (member->key != selector.key) continue;
      rule.source = selector.source;
      ++selectors;
    }
  }
  if (selectors != 1) {
    report.error(json, "a rule names one of \"json\", \"header\", \"xml\"");
    good = false;
  }
  if (json.find("as") == nullptr) {
    report.error(json, "missing key \"as\": what such an answer is");
    good = false;
  }
  return good;
}

// The statuses from `first` to `last` that are in the set, or those that are not, as ranges.
void print_runs(std::string& out, const StatusSet& set, Range within, bool members) {
  const auto* const sign = members ? "" : "!";
  for (auto status = within.first; status <= within.last; ++status) {
    if (set.contains(status) != members) continue;
    const auto first = status;
    while (status < within.last && set.contains(status + 1) == members) ++status;
    auto text = sign + std::to_string(first);
    if (status > first) text += "-" + std::to_string(status);
    if (!out.empty()) out += ", ";
    out += members && status == first ? text : "\"" + text + "\"";
  }
}

}  // namespace

const Key* known_key(const JsonNode& member, const Shape& shape, Problems& report) {
  const auto* const key = shape.find(member.key);
  if (key != nullptr) return key;
  std::vector<std::string_view> names;
  for (const auto& one : shape.keys) {
    if (std::find(names.begin(), names.end(), one.name) == names.end()) names.push_back(one.name);
  }
  auto hint = report.suggestion(member.key, names);
  if (hint.empty() && !report.full()) {
    for (const auto name : names)
      hint += (hint.empty() ? "; there are: " : ", ") + std::string(name);
  }
  report.error_at_key(member, "unknown key" + hint);
  return nullptr;
}

bool read_statuses(const JsonNode& json, StatusSet* field, Problems& report) {
  if (!expect(json, JsonNode::Type::Array, "an array of statuses", report)) return false;
  StatusSet set;
  auto good = true;
  for (const auto* const item : json.children) good = read_status(*item, set, report) && good;
  if (good && field != nullptr) *field = set;
  return good;
}

bool read_error_codes(const JsonNode& json, std::vector<ErrorRule>* field, Problems& report) {
  if (!expect(json, JsonNode::Type::Array, "an array of rules", report)) return false;
  std::vector<ErrorRule> rules;
  auto good = true;
  for (const auto* const item : json.children) {
    auto& rule = rules.emplace_back();
    if (item->is(JsonNode::Type::String)) {
      good = read_family(*item, rule, report) && good;
    } else if (expect(*item, JsonNode::Type::Object, "a family such as \"aws\", or a rule",
                      report)) {
      good = read_rule(*item, rule, report) && good;
    } else {
      good = false;
    }
  }
  if (good && field != nullptr) *field = std::move(rules);
  return good;
}

std::string print_statuses(const StatusSet& statuses) {
  std::string out;
  for (auto first = 100; first < 600; first += 100) {
    const Range within{first, first + 99};
    auto count = 0;
    for (auto status = first; status <= within.last; ++status) count += statuses.contains(status);
    if (count > 50) {
      if (!out.empty()) out += ", ";
      out += "\"" + std::to_string(first / 100) + "xx\"";
    }
    print_runs(out, statuses, within, count <= 50);
  }
  return "[" + out + "]";
}

std::string print_error_codes(const std::vector<ErrorRule>& rules) {
  std::string out;
  for (const auto& rule : rules) {
    if (!out.empty()) out += ", ";
    if (rule.family != ErrorRule::Family::Custom) {
      out += quoted_text(to_string(rule.family));
      continue;
    }
    out += "{";
    if (rule.status) out += "\"status\": " + print_statuses(*rule.status) + ", ";
    for (const auto& key : rule_shape().keys) {
      const auto selector = std::find_if(std::begin(kSelectors), std::end(kSelectors),
                                         [&](const Selector& one) { return one.key == key.name; });
      const auto other = selector != std::end(kSelectors) && selector->source != rule.source;
      if (key.field == nullptr || other) continue;
      const auto value = print_value(key, key.field(const_cast<ErrorRule*>(&rule)));
      if (!value.empty()) out += quoted_text(key.name) + ": " + value + ", ";
    }
    out.resize(out.size() - 2);
    out += "}";
  }
  return "[" + out + "]";
}

}  // namespace httpretry::policy_file
