// Conditions on the headers and the query of a request.
#include "lib/policy/endpoint_pattern.hpp"

#include <algorithm>

namespace httpretry::policy {
namespace {

// The value of the first item with that name, in "a=1&b=2".
std::optional<Label> query_item(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const auto item = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), item.size() + 1));
    const auto equals = std::min(item.find('='), item.size());
    if (!Label(item.substr(0, equals), true).is(name)) continue;
    return Label(item.substr(std::min(equals + 1, item.size())), true);
  }
  return std::nullopt;
}

}  // namespace

Condition::Condition(bool of_header, std::string_view condition_name, std::string_view text)
    : header(of_header), name(condition_name), value(text), begins(text.ends_with('*')) {
  if (begins) value.pop_back();
}

bool Condition::holds(const Headers& headers, std::string_view query) const {
  if (!header) {
    const auto found = query_item(query, name);
    return found && found->begins_with(value, !begins);
  }
  const auto found = headers.get(name);
  return found && Label(*found).begins_with(value, !begins);
}

bool Condition::contradicts(const Condition& other) const {
  const bool same_name = header ? equal_ignoring_case(name, other.name) : name == other.name;
  if (header != other.header || !same_name) return false;
  if (begins && other.value.starts_with(value)) return false;
  if (other.begins && value.starts_with(other.value)) return false;
  return begins || other.begins || value != other.value;
}

std::vector<Condition> conditions_of(const EndpointPattern& pattern) {
  std::vector<Condition> all;
  for (const auto& [name, value] : pattern.headers) all.emplace_back(true, name, value);
  for (const auto& [name, value] : pattern.query) all.emplace_back(false, name, value);
  return all;
}

}  // namespace httpretry::policy
