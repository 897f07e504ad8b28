// Conditions on the headers and the query of a request, and the checks of whole patterns.
#include "endpoint_pattern.hpp"
#include "lib/core/base/text.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace httpretry {
namespace policy {
namespace {

// Returns the value of the first item with this name in a query such as "a=1&b=2".
std::optional<Label> query_item(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    auto value = take_until(query, '&');  // "a=1", until the next line takes "a=" from it
    const auto key = take_until(value, '=');
    if (Label(key, /*encoded_text=*/true).is(name)) return Label(value, /*encoded_text=*/true);
  }
  return std::nullopt;
}

// Reports methods that are not valid, and methods that are listed twice.
void check_methods(const std::vector<std::string>& methods, std::vector<PatternProblem>& problems) {
  std::map<std::string, int> counts;
  for (const auto& method : methods) ++counts[method];
  for (const auto& [method, count] : counts) {
    if (!valid_header_name(method)) {
      problems.emplace_back("methods", in_quotes(method) + " is not a method: it is not a token");
    }
    if (count > 1)
      problems.emplace_back("methods", in_quotes(method) + " is listed more than once");
  }
}

void check_host(const std::string& host, std::vector<PatternProblem>& problems) {
  if (const auto problem = parse_host(host).problem; !problem.empty()) {
    problems.emplace_back("host", in_quotes(host) + " is not a host pattern: " + problem);
  }
}

// Reports further hosts that are not valid, that lack a first host, or that are equal to an earlier
// host in its normal form.
void check_more_hosts(const EndpointPattern& pattern, std::vector<PatternProblem>& problems) {
  if (pattern.more_hosts.empty()) return;
  if (!pattern.host) problems.emplace_back("host", "more_hosts is set, but host is not");
  using NormalForm = std::pair<bool, std::vector<std::string>>;  // a leading "*.", and the labels
  std::set<NormalForm> hosts;
  const auto add = [&](const std::string& text) {  // returns false if the host is already there
    auto host = parse_host(text);
    if (!host.problem.empty()) return true;  // has no normal form
    // parse_host leaves the labels of an exact host empty.
    if (host.kind == HostPattern::Kind::Exact) host.labels = {host.name};
    return hosts.emplace(host.leading_star, std::move(host.labels)).second;
  };
  if (pattern.host) add(*pattern.host);
  for (const auto& host : pattern.more_hosts) {
    check_host(host, problems);
    if (!add(host)) problems.emplace_back("host", in_quotes(host) + " is listed more than once");
  }
}

// Reports a header with an invalid name, or one that differs from an earlier one only in case.
void check_header(const std::string& name, const EndpointPattern::Conditions& headers,
                  std::vector<PatternProblem>& problems) {
  if (!valid_header_name(name)) {
    problems.emplace_back("headers", in_quotes(name) + " is not a header name");
  }
  // Finds at least `name` itself, which is one of the headers.
  const auto first = std::find_if(headers.begin(), headers.end(), [&](const auto& header) {
    return equal_ignoring_case(header.first, name);
  });
  if (first->first != name) {
    problems.emplace_back("headers", in_quotes(name) + " is listed more than once");
  }
}

}  // namespace

Condition::Condition(Source from, std::string_view item_name, std::string_view text)
    : source(from), name(item_name), value(text), is_prefix(text.ends_with('*')) {
  if (is_prefix) value.pop_back();
}

bool Condition::holds(const Headers& headers, std::string_view query) const {
  if (source == Source::Query) {
    const auto item = query_item(query, name);
    return item && item->begins_with(value, /*whole=*/!is_prefix);
  }
  const auto header = headers.get(name);
  return header && Label(*header).begins_with(value, /*whole=*/!is_prefix);
}

bool Condition::contradicts(const Condition& other) const {
  const bool same_name =
      source == Source::Header ? equal_ignoring_case(name, other.name) : name == other.name;
  if (source != other.source || !same_name) return false;
  if (is_prefix && other.value.starts_with(value)) return false;
  if (other.is_prefix && value.starts_with(other.value)) return false;
  return value != other.value;
}

std::vector<Condition> conditions_of(const EndpointPattern& pattern) {
  std::vector<Condition> all;
  using enum Condition::Source;
  for (const auto& [name, value] : pattern.headers) all.emplace_back(Header, name, value);
  for (const auto& [name, value] : pattern.query) all.emplace_back(Query, name, value);
  return all;
}

}  // namespace policy

// Returns the problems of a pattern, for example the part "port" with the message "0 is not a port:
// ...". The part is the pattern's key in a policy file, or "" if the pattern as a whole is wrong.
// Returns an empty list if the pattern is valid. The functions called check_... append to the list.
std::vector<PatternProblem> problems_of(const EndpointPattern& pattern) {
  using namespace policy;
  std::vector<PatternProblem> problems;
  const auto& [scheme, host, more_hosts, port, path, methods, headers, query] = pattern;
  if (pattern == EndpointPattern()) {  // all parts are left out
    problems.emplace_back("",
                          "at least one of scheme, host, port, path, methods, headers and query "
                          "is required");
  }
  if (scheme && *scheme != "http" && *scheme != "https") {
    problems.emplace_back("scheme", in_quotes(*scheme) + " is not \"http\" or \"https\"");
  }
  if (host) check_host(*host, problems);
  check_more_hosts(pattern, problems);
  // Does not apply to a pattern without a port: an empty optional is not equal to 0.
  if (port == 0) problems.emplace_back("port", "0 is not a port: ports are 1 to 65535");
  if (path) {
    if (const auto problem = parse_path(*path).problem; !problem.empty()) {
      problems.emplace_back("path", in_quotes(*path) + " is not a path pattern: " + problem);
    }
  }
  check_methods(methods, problems);
  // check_header compares a name with all others, because "X-Tier" and "x-tier" are the same name.
  for (const auto& [name, value] : headers) check_header(name, headers, problems);
  for (const auto& [name, value] : query) {
    if (name.empty()) problems.emplace_back("query", "an empty name");
  }
  return problems;
}

}  // namespace httpretry
