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

std::vector<Condition> made_of(const EndpointPattern::Conditions& all) {
  std::vector<Condition> made;
  for (const auto& [name, value] : all) made.emplace_back(name, value);
  return made;
}

template <class Same>
bool meet(const std::vector<Condition>& some, const std::vector<Condition>& others, Same same) {
  for (const auto& one : some) {
    for (const auto& other : others) {
      if (same(one.name, other.name) && one.contradicts(other)) return false;
    }
  }
  return true;
}

}  // namespace

Condition::Condition(std::string_view condition_name, std::string_view text)
    : name(condition_name), value(text), begins(text.ends_with('*')) {
  if (begins) value.pop_back();
}

bool Condition::contradicts(const Condition& other) const {
  const auto fits = [](const Condition& one, const std::string& text) {
    return one.begins ? text.starts_with(one.value) : text == one.value;
  };
  const bool this_fits = begins && fits(*this, other.value);
  const bool other_fits = other.begins && fits(other, value);
  return !this_fits && !other_fits && (begins || other.begins || value != other.value);
}

Conditions::Conditions(const EndpointPattern& pattern)
    : headers(made_of(pattern.headers)), query(made_of(pattern.query)) {}

bool Conditions::hold(const Headers& request_headers, std::string_view request_query) const {
  const auto header_holds = [&](const Condition& one) {
    const auto found = request_headers.get(one.name);
    return found && one.holds(Label(*found));
  };
  const auto item_holds = [&](const Condition& one) {
    const auto found = query_item(request_query, one.name);
    return found && one.holds(*found);
  };
  return std::all_of(headers.begin(), headers.end(), header_holds) &&
         std::all_of(query.begin(), query.end(), item_holds);
}

bool Conditions::can_meet(const Conditions& other) const {
  return meet(headers, other.headers, equal_ignoring_case) &&
         meet(query, other.query,
              [](std::string_view one, std::string_view another) { return one == another; });
}

}  // namespace httpretry::policy
