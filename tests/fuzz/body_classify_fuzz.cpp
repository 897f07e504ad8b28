// Any body, classified and decided under a policy that reads it in every way there is. The first
// byte chooses the status.
#include <httpretry/retry/decide.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

using namespace httpretry;  // NOLINT

namespace {

RetryPolicy curious_policy() {
  RetryPolicy policy;
  for (const auto source : {ErrorRule::Source::Json, ErrorRule::Source::Xml}) {
    for (const auto* selector : {"/a/*/b", "/*", "Code", "/Error/Code", "", "~2/"}) {
      ErrorRule rule;
      rule.status = StatusSet{409};
      rule.source = source;
      rule.selector = selector;
      rule.in = {"x"};
      policy.retry_on.error_codes.push_back(std::move(rule));
    }
  }
  policy.retry_on.pending.emplace();
  policy.retry_on.pending->statuses = {202};
  policy.retry_on.pending->json = "/status";
  policy.retry_on.pending->in = {"PENDING"};
  return policy;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto policy = curious_policy();
  constexpr std::array kStatuses = {200, 202, 400, 403, 409, 429, 503};
  if (size == 0) return 0;
  Response response(kStatuses[data[0] % kStatuses.size()]);
  response.body.assign(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Outcome outcome(std::move(response));

  const auto classified = classify(policy, Observed(outcome, WallTime{}));
  const auto decision = decide(policy, classified, RetryState{}, Clocks{}, 0.5);

  const auto fit = classified.rule.code.size() <= 64 &&
                   classified.rule.code.find_first_of("\n\r\x1b") == std::string::npos;
  if (!fit || decision.wait < Duration::zero()) std::abort();
  if (to_string(classified.rule).empty()) std::abort();
  return 0;
}
