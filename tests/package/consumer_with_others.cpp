// Has other versions of spdlog, fmt and nlohmann_json than httpretry: both work, and neither uses
// the other's.
#include "other_versions.hpp"

#include <httpretry/client/client.hpp>
#include <httpretry/client/report.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>
#include <httpretry/policy/policy_set.hpp>

#include <cstdio>

using namespace httpretry;

namespace {

int failures = 0;

void check(bool good, const char* what) {
  if (good) return;
  std::printf("consumer_with_others: %s\n", what);
  ++failures;
}

void use_httpretry() {
  std::string lines;
  log_to([&](LogLevel, std::string_view line) { lines += line; });
  Client client({log(), retry()});
  const auto request = Request::get("no URL");
  const auto outcome = client.send(request);
  log_to(nullptr);
  check(lines.find("(not a URL): invalid_request") != std::string::npos, "the log has no line");

  const Response response(200, R"({"items": [{"name": "first"}]})");
  const auto name = response.json_at("/items/0/name");
  check(name && std::get<std::string>(*name) == "first", "json_at does not find the name");

  const auto policies = parse_policies(R"({"version": 1, "default": {"max_attempts": 7}})", "p");
  check(policies && policies->find("GET", *Url::parse("http://x/")).policy->max_attempts == 7,
        "the policy file is not read");
  check(report_json(request, outcome).find("\"invalid_request\"") != std::string::npos,
        "the report has no error");
}

void use_others() {
  check(spdlog::default_logger()->only_member == "the program's logger", "the logger is another");
  fmt::detail::throw_format_error("");
#ifdef OTHER_NLOHMANN_JSON
  check(nlohmann::json().dump() == "the program's json", "the json is another");
  check(nlohmann::ordered_json().dump() == "the program's json", "the ordered json is another");
#endif
}

}  // namespace

int main() {
  use_others();
  const auto own = uses;
  use_httpretry();
  check(uses == own, "httpretry used the program's spdlog, fmt or nlohmann_json");
  use_others();
  check(uses == 2 * own, "the program did not use its own");
  if (failures == 0) std::puts("consumer_with_others: ok");
  return failures;
}
