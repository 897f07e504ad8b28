#include "lib/policy/endpoint_pattern.hpp"

#include <httpretry/http/headers.hpp>

#include <map>

namespace httpretry {

using policy::quoted;

namespace {

void check_methods(const std::vector<std::string>& methods, std::vector<PatternProblem>& problems) {
  std::map<std::string, int> counts;
  for (const auto& method : methods) ++counts[method];
  for (const auto& [method, count] : counts) {
    if (!valid_header_name(method)) {
      problems.emplace_back("methods", quoted(method) + " is not a method: it is no token");
    }
    if (count > 1) problems.emplace_back("methods", quoted(method) + " is listed more than once");
  }
}

}  // namespace

PatternProblem::PatternProblem(std::string_view wrong_part, std::string what)
    : part(wrong_part), message(std::move(what)) {}

std::vector<PatternProblem> problems_of(const EndpointPattern& pattern) {
  std::vector<PatternProblem> problems;
  const auto& [scheme, host, port, path, methods] = pattern;
  if (!scheme && !host && !port && !path && methods.empty()) {
    problems.emplace_back("", "at least one of scheme, host, port, path and methods is required");
  }
  if (scheme && *scheme != "http" && *scheme != "https") {
    problems.emplace_back("scheme", quoted(*scheme) + " is not \"http\" or \"https\"");
  }
  if (host) {
    if (const auto problem = policy::parse_host(*host).problem; !problem.empty()) {
      problems.emplace_back("host", quoted(*host) + " is not a host pattern: " + problem);
    }
  }
  if (port == 0) problems.emplace_back("port", "0 is not a port: they are 1 to 65535");
  if (path) {
    if (const auto problem = policy::parse_path(*path).problem; !problem.empty()) {
      problems.emplace_back("path", quoted(*path) + " is not a path pattern: " + problem);
    }
  }
  check_methods(methods, problems);
  return problems;
}

}  // namespace httpretry
