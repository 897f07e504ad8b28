// What can be wrong with a pattern.
#include "lib/policy/endpoint_pattern.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace httpretry {
namespace policy {
namespace {

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

void check_more_hosts(const EndpointPattern& pattern, std::vector<PatternProblem>& problems) {
  if (pattern.more_hosts.empty()) return;
  if (!pattern.host) problems.emplace_back("host", "there are more hosts, but no first one");
  using Key = std::pair<bool, std::vector<std::string>>;
  std::set<Key> known;
  const auto add = [&](const std::string& text) {
    auto host = parse_host(text);
    if (host.kind == HostPattern::Kind::Exact) host.labels = {host.name};
    return known.emplace(host.leading, std::move(host.labels)).second;
  };
  if (pattern.host) add(*pattern.host);
  for (const auto& host : pattern.more_hosts) {
    check_host(host, problems);
    if (!add(host)) problems.emplace_back("host", in_quotes(host) + " is listed more than once");
  }
}

void check_header(const std::string& name, const EndpointPattern::Conditions& all,
                  std::vector<PatternProblem>& problems) {
  if (!valid_header_name(name)) {
    problems.emplace_back("headers", in_quotes(name) + " is not a header's name");
  }
  const auto first = std::find_if(all.begin(), all.end(), [&](const auto& other) {
    return equal_ignoring_case(other.first, name);
  });
  if (first->first != name) {
    problems.emplace_back("headers", in_quotes(name) + " is listed more than once");
  }
}

}  // namespace
}  // namespace policy

std::vector<PatternProblem> problems_of(const EndpointPattern& pattern) {
  using namespace policy;
  std::vector<PatternProblem> problems;
  const auto& [scheme, host, more_hosts, port, path, methods, headers, query] = pattern;
  if (pattern == EndpointPattern()) {
    problems.emplace_back("",
                          "at least one of scheme, host, port, path, methods, headers and query "
                          "is required");
  }
  if (scheme && *scheme != "http" && *scheme != "https") {
    problems.emplace_back("scheme", in_quotes(*scheme) + " is not \"http\" or \"https\"");
  }
  if (host) check_host(*host, problems);
  check_more_hosts(pattern, problems);
  if (port == 0) problems.emplace_back("port", "0 is not a port: they are 1 to 65535");
  if (path) {
    if (const auto problem = parse_path(*path).problem; !problem.empty()) {
      problems.emplace_back("path", in_quotes(*path) + " is not a path pattern: " + problem);
    }
  }
  check_methods(methods, problems);
  for (const auto& [name, value] : headers) check_header(name, headers, problems);
  for (const auto& [name, value] : query) {
    if (name.empty()) problems.emplace_back("query", "an empty name");
  }
  return problems;
}

}  // namespace httpretry
