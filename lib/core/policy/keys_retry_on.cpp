// The keys of retry_on: sets of statuses, the rules of error_codes, and `pending`.
#include "lib/core/policy/detail/keys.hpp"

#include "lib/core/base/text.hpp"
#include "lib/core/retry/origins.hpp"

#include <httpretry/http/headers.hpp>

#include <algorithm>

namespace httpretry::detail::policy_file {
namespace {

using JsonType = JsonNode::Type;

struct StatusRange {
  int first;
  int last;
};

// Returns the status in a text such as "501", or nullopt if it is not one.
std::optional<int> status_in(std::string_view text) {
  const auto status = to_number<int>(text);
  const bool is_status = text.size() == 3 && status && *status >= 100 && *status <= 599;
  return is_status ? status : std::nullopt;
}

// Returns the statuses in a text such as "5xx", "500-504" or "501", or nullopt if it has none.
std::optional<StatusRange> range_in(std::string_view text) {
  if (text.size() == 3 && text.substr(1) == "xx" && text[0] >= '1' && text[0] <= '5') {
    const auto first = (text[0] - '0') * 100;
    return StatusRange{.first = first, .last = first + 99};
  }
  const auto dash = text.find('-');
  const auto first = status_in(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : status_in(text.substr(dash + 1));
  if (!first || !last || *first > *last) return std::nullopt;
  return StatusRange{.first = *first, .last = *last};
}

// Reads one item of a list such as [408, "5xx", "!501"]. A number, a class such as "5xx" and a
// range such as "500-504" add statuses to the set. "!501" and "!500-504" remove statuses that
// earlier items have added. Returns false and reports a problem if the item is none of these.
bool read_status(const JsonNode& item, StatusSet& set, Problems& problems) {
  if (item.is(JsonType::Number)) {
    const auto number = number_in(item);
    // In the range of statuses, and a whole number: 408 or 408.0, but not 408.5.
    if (number && *number >= 100 && *number <= 599 && *number == static_cast<int>(*number)) {
      set.add(static_cast<int>(*number));
      return true;
    }
    return refuse(item, problems, described(item) + " is not a status: 100 to 599");
  }
  if (!expect(item, JsonType::String, "a status, or \"5xx\", \"500-504\", \"!501\"", problems)) {
    return false;
  }
  const bool removes = item.text.starts_with('!');
  const auto range = range_in(item.text.substr(removes ? 1 : 0));
  const bool is_quoted_number = status_in(item.text).has_value();  // "408" instead of 408
  if (range && !is_quoted_number) {
    removes ? set.remove(range->first, range->last) : set.add(range->first, range->last);
    return true;
  }
  auto message = described(item) + " is not one of 408, \"5xx\", \"500-504\", \"!501\"";
  if (is_quoted_number) message += ": a status is a number, without quotes";
  return refuse(item, problems, std::move(message));
}

enum class Print : std::uint8_t { Members, Others };

// Appends the statuses of `range` that are in the set, for example 501 and "503-504", or those that
// are not in it, for example "!501" and "!503-504".
void print_runs(OrderedJson& out, const StatusSet& set, StatusRange range, Print print) {
  const bool members = print == Print::Members;
  for (auto status = range.first; status <= range.last; ++status) {
    if (set.contains(status) != members) continue;
    const auto first = status;
    while (status < range.last && set.contains(status + 1) == members) ++status;
    if (members && status == first) {
      out.push_back(first);
      continue;
    }
    auto text = (members ? "" : "!") + std::to_string(first);
    if (status > first) text += "-" + std::to_string(status);
    out.push_back(std::move(text));
  }
}

bool parse_statuses(const JsonNode& json, StatusSet& set, Problems& problems) {
  set = {};
  return read_items(json, R"(an array of statuses such as [409, "5xx"])", problems,
                    [&](const JsonNode& item) { return read_status(item, set, problems); });
}

// Returns a set as a list. A class of which the set has most statuses is written as "5xx", with the
// exceptions from it.
OrderedJson print_statuses(const StatusSet& set) {
  auto out = OrderedJson::array();
  for (auto first = 100; first < 600; first += 100) {
    const StatusRange range{.first = first, .last = first + 99};
    auto count = 0;
    for (auto status = first; status <= range.last; ++status) count += set.contains(status);
    const bool has_most = count > 50;
    if (has_most) out.push_back(std::to_string(first / 100) + "xx");
    print_runs(out, set, range, has_most ? Print::Others : Print::Members);
  }
  return out;
}

constexpr auto kTransportKinds = Words::up_to(TransportKind::Partial);

// Reads an array of words into a bit mask with a bit for each TransportKind.
bool parse_transports(const JsonNode& json, std::uint8_t& bits, Problems& problems) {
  bits = 0;
  return read_items(json, "an array", problems, [&](const JsonNode& item) {
    const auto kind = kTransportKinds.parse(item, problems);
    if (kind) bits |= static_cast<std::uint8_t>(1U << *kind);
    return kind.has_value();
  });
}

OrderedJson print_transports(const std::uint8_t& bits) {
  auto list = OrderedJson::array();
  for (std::size_t i = 0; i < kTransportKinds.size(); ++i) {
    if (((bits >> i) & 1U) != 0) list.push_back(kTransportKinds[i]);
  }
  return list;
}

// Returns whether a text is a JSON pointer (RFC 6901) that is not empty.
bool is_pointer(std::string_view text) {
  if (!text.starts_with('/')) return false;
  for (auto tilde = text.find('~'); tilde != text.npos; tilde = text.find('~', tilde + 2)) {
    const auto next = text.substr(tilde + 1, 1);
    if (next != "0" && next != "1") return false;
  }
  return true;
}

// Returns whether the text is an element such as "Code", or a path from the root such as
// "/Error/Code".
bool is_element(std::string_view text) {
  if (text.starts_with('/')) text.remove_prefix(1);
  if (text.empty() || text.back() == '/' || text.find("//") != text.npos) return false;
  return text.find_first_of(" \t\r\n<>&\"'=?!") == text.npos && text.front() != '/';
}

constexpr Custom<StatusSet> kStatuses(parse_statuses, print_statuses);
constexpr Custom<std::uint8_t> kTransports(parse_transports, print_transports);
constexpr Number<int> kCount(unlimited_range());
constexpr Optional kPolls(kCount, "unlimited");
constexpr Text kPointer("a JSON pointer such as \"/error/reason\"", is_pointer);
constexpr Text kElement("the name of an XML element", is_element);
// The part of a response that a rule of error_codes reads. Three keys share this member, and a rule
// has one of them.
template <ErrorRule::Source source, const Text& text>
constexpr Custom<ErrorRule> kSelector(
    [](const JsonNode& json, ErrorRule& rule, Problems& problems) {
      rule.source = source;
      return text.read(json, &rule.selector, problems);
    },
    [](const ErrorRule& rule) {
      return rule.source == source ? text.write(&rule.selector) : OrderedJson();
    });
// A rule cannot make a response a failure of the transport.
constexpr Word<Class> kClass(Words::up_to(Class::Permanent, std::optional(Class::Transport)));

// A value that a rule compares. Numbers, true and false keep their spelling.
constexpr Custom<std::string> kValue([](const JsonNode& json, std::string& value,
                                        Problems& problems) {
  const bool plain = json.is(JsonType::Number) || json.is(JsonType::Boolean);
  value = plain ? compact(json) : std::string(json.text);
  return plain || expect(json, JsonType::String, "a string, a number, true or false", problems);
});
constexpr List kValues(kValue, "an array of values",
                       "an empty list matches nothing; leave it out to match any value");

constexpr Key kRuleKeys[] = {
    key<&ErrorRule::status>("status", kMaybe<kStatuses>).not_null(),
    whole_key("json", kSelector<ErrorRule::Source::Json, kPointer>).not_null(),
    whole_key("header", kSelector<ErrorRule::Source::Header, kHeader>).not_null(),
    whole_key("xml", kSelector<ErrorRule::Source::Xml, kElement>).not_null(),
    key<&ErrorRule::in>("in", kValues).not_null(),
    key<&ErrorRule::as>("as", kClass).needed().not_null(),
};

constexpr auto kFamilies =
    Words::up_to(ErrorRule::Family::Stripe, std::optional(ErrorRule::Family::Custom));

// Reads an element of error_codes into `rule`: the name of a family of rules, such as "aws", or a
// rule. A rule has exactly one selector: the key that says which part of the response it reads.
// Returns false and reports a problem if the element is neither.
bool parse_rule(const JsonNode& json, ErrorRule& rule, Problems& problems) {
  if (json.is(JsonType::String)) {
    const auto family = kFamilies.parse(json, problems);
    if (family) rule.family = static_cast<ErrorRule::Family>(*family);
    return family.has_value();
  }
  const bool is_valid =
      read_object(json, kRule, &rule, "a family such as \"aws\", or a rule", problems);
  if (!json.is(JsonType::Object)) return false;
  const auto selectors = std::ranges::count_if(json.children, [](const JsonNode* member) {
    return member->key == "json" || member->key == "header" || member->key == "xml";
  });
  if (selectors == 1) return is_valid;
  return refuse(json, problems, R"(a rule names one of "json", "header", "xml")");
}

// Writes an element as parse_rule reads it: the name of a family, or the user's own rule.
constexpr Custom<ErrorRule> kRuleOrFamily(parse_rule, [](const ErrorRule& rule) {
  const auto own = rule.family == ErrorRule::Family::Custom;
  return own ? write_object(kRule, &rule) : OrderedJson(to_string(rule.family));
});
constexpr List kErrorCodes(kRuleOrFamily, "an array of rules");

constexpr Text kOrigin("an origin such as \"https://status.example.com\"",
                       policy::is_origin_pattern);
constexpr std::string_view kEmptyList = "an empty list has no effect; leave it out";
constexpr List kUrlFrom(kHeader, "a header name or an array of header names", kEmptyList, true);
constexpr List kOrigins(kOrigin, "an array of origins", kEmptyList);

constexpr Key kPendingKeys[] = {
    key<&PendingRule::statuses>("statuses", kStatuses).needed(),
    key<&PendingRule::json>("json", kPointer),
    key<&PendingRule::in>("in", kValues),
    key<&PendingRule::max>("max", kPolls),
    key_of<kBackoff, &PendingRule::backoff>("backoff"),
    key<&PendingRule::url_from>("url_from", kUrlFrom),
    key<&PendingRule::origins>("origins", kOrigins),
};
constexpr Shape kPending{
    .name = "pending", .keys = kPendingKeys, .whole = true, .base = []() -> const JsonNode& {
      static const PendingRule rule;
      static const auto* const tree = tree_of({{"backoff", write_object(kBackoff, &rule.backoff)}});
      return *tree->root;
    }};

constexpr Key kRetryOnKeys[] = {
    key<&RetryOn::statuses>("statuses", kStatuses),
    key<&RetryOn::throttle_statuses>("throttle_statuses", kStatuses),
    key<&RetryOn::error_codes>("error_codes", kErrorCodes),
    key<&RetryOn::transport>("transport", kTransports),
    key_of<kPending, &RetryOn::pending>("pending"),
};

}  // namespace

constinit const Shape kRule{.name = "rule", .keys = kRuleKeys, .whole = true};
constinit const Shape kRetryOn{.name = "retry_on", .keys = kRetryOnKeys};
constinit const Text kHeader("a header name", valid_header_name);

}  // namespace httpretry::detail::policy_file
