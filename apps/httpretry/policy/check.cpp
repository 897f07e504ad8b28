// httpretry policy check FILE...: prints a line for each problem in the files, and runs their tests
// in virtual time, as plan does.
#include "cli/commands.hpp"
#include "cli/exit_status.hpp"
#include "cli/output.hpp"
#include "cli/policy_options.hpp"
#include "cli/scenario_options.hpp"
#include "cli/text.hpp"
#include "plan/simulated_call.hpp"

#include <httpretry/policy/policy_set.hpp>
#include <httpretry/policy/policy_test.hpp>

#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace httpretry::cli {
namespace {

using Waits = std::vector<Duration>;
using Range = std::pair<Duration, Duration>;  // the least and the most value of a wait

std::string line_at(Problem place, std::string message) {
  place.message = std::move(message);
  return to_string(place) + '\n';
}

// An invalid outcome in a test; what() has its position. The loader does not check the words of an
// outcome, because only the program knows the faults that they name.
struct BadOutcomes : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Step step_of(const PolicyTest::Outcomes& outcomes) {
  auto scenario = parse_scenario(R"({"steps": [)" + outcomes.text + "]}", "");
  if (scenario) return scenario->steps.front();
  // The position in ":1:22: /steps/0/fault: …" refers to the text above, so it is replaced by the
  // position in the policy file.
  const auto& message = scenario.error().message;
  const std::string_view begin = "/steps/0";
  auto place = outcomes.place;
  const auto rest = message.substr(message.find(begin) + begin.size());
  const auto colon = rest.find(": ");
  place.pointer += rest.substr(0, colon);
  throw BadOutcomes(line_at(place, rest.substr(colon + 2, rest.find('\n') - colon - 2)));
}

// Returns the steps of a test. Each entry of its `outcomes` is one step as in a scenario, or a text
// such as "503,timeout,200" with several steps. Throws BadOutcomes.
Script script_of(const std::vector<PolicyTest::Outcomes>& entries) {
  Script script;
  for (const auto& outcomes : entries) {
    if (outcomes.is_step) {
      script.steps.push_back(step_of(outcomes));
      continue;
    }
    try {
      for (auto& step : steps_in(outcomes.text)) script.steps.push_back(std::move(step));
    } catch (const std::invalid_argument& error) {
      throw BadOutcomes(line_at(outcomes.place, error.what()));
    }
  }
  return script;
}

Request request_of(const PolicyTest& test) {
  auto request = plain_request(test.request.method, test.request.url);
  for (const auto& header : test.request.headers) request.add_header(header.name, header.value);
  return request;
}

// Returns the attempts that a retry followed.
std::vector<Attempt> retried_attempts(const Outcome& outcome) {
  auto attempts = history_of(outcome).attempts;
  std::erase_if(attempts, [](const Attempt& attempt) { return !attempt.retried; });
  return attempts;
}

Duration wait_after(const Attempt& attempt) { return attempt.wait.value_or(Duration::zero()); }

Waits waits_of(const Outcome& outcome) {
  Waits waits;
  for (const auto& attempt : retried_attempts(outcome)) waits.push_back(wait_after(attempt));
  return waits;
}

std::string text_of(const Waits& waits) {
  std::vector<std::string> texts;
  for (const auto wait : waits) texts.push_back(duration_text(wait));
  return texts.empty() ? "none" : join(texts, ", ");
}

// Run performs one test and collects its failures.
class Run {
 public:
  Run(const PolicySet& policies, const PolicyTest& test, const std::string& file)
      : policies_(policies), test_(test), file_(file), request_(request_of(test)) {}

  // Runs the test. Returns a line for each expectation that does not hold.
  std::string failures() {
    check_endpoint();
    if (!test_.outcomes.empty()) check_call();
    return lines_;
  }

 private:
  void fail(std::string_view key, const std::string& expected, const std::string& found,
            const std::string& more) {
    lines_ += line_at(test_.places.find(key)->second,
                      "expected " + expected + ", found " + found + "; " + more);
  }

  void check_endpoint() {
    const auto& expected = test_.expected.endpoint;
    if (!expected) return;
    const auto& found = policy_for(policies_, request_).endpoint;
    if (found == *expected) return;
    const auto text = [](const std::string& name) {
      return name.empty() ? "no entry" : quote_json(name);
    };
    fail("endpoint", text(*expected), text(found),
         "httpretry policy explain " + printable(file_) + ' ' + request_.method() + ' ' +
             request_.parsed_url()->without_secrets() + " says why");
  }

  // Simulates the call. `draw` replaces each random number: 0 gives the shortest waits, 1 the
  // longest.
  [[nodiscard]] Outcome call(const PolicySet& policies, const Script& script, double draw) const {
    // Messages such as "come back at 2026-01-01T00:00:20Z" show this date.
    constexpr WallTime kStart{std::chrono::sys_days{std::chrono::year(2026) / 1 / 1}};
    const Simulation simulation{.policies = policies,
                                .request = request_,
                                .script = script,
                                .random = fixed_random(draw),
                                .start = kStart};
    return simulate(simulation).outcomes.front();
  }

  // Simulates the call of the test with the outcomes that the test lists, and compares its end with
  // each expectation that the test has. fail() adds a line for one that does not hold.
  void check_call() {
    constexpr double kMeanDraw = 0.5;  // gives each random wait its mean length
    const auto script = script_of(test_.outcomes);
    const auto outcome = call(policies_, script, kMeanDraw);
    const auto& expected = test_.expected;
    const auto& history = history_of(outcome);
    const auto end = "the call " + describe(outcome);
    const auto count = static_cast<int>(history.attempts.size());
    const auto succeeded = history.stop_reason == Reason::Success;
    const auto status = outcome ? outcome->status : 0;  // 0: the call ended with an error
    if (expected.attempts && *expected.attempts != count) {
      fail("attempts", std::to_string(*expected.attempts), std::to_string(count), end);
    }
    if (expected.reason && *expected.reason != history.stop_reason) {
      fail("reason", std::string(to_string(*expected.reason)),
           std::string(to_string(history.stop_reason)), end);
    }
    if (expected.status && *expected.status != status) {
      fail("status", std::to_string(*expected.status),
           status == 0 ? "no response" : std::to_string(status), end);
    }
    if (expected.success && *expected.success != succeeded) {
      fail("success", *expected.success ? "true" : "false", succeeded ? "true" : "false", end);
    }
    if (expected.waits) check_waits(script, waits_of(outcome), end);
  }

  // Returns the shortest and the longest length that each wait may have. They come from two
  // simulated calls: one with the shortest waits, and one with the longest. The longest waits might
  // reach the policy's time limit early, so both calls get a higher limit. Then each longest wait
  // is cut to the time that the policy's limit leaves if all waits before it were the shortest.
  [[nodiscard]] std::vector<Range> ranges_of(const Script& script) const {
    constexpr Duration kLongestLimit = std::chrono::days(365);  // a policy allows no longer one
    auto resolved = policy_for(policies_, request_);
    auto long_policy = *resolved.policy;
    // With BeforeWait, a wait may end after max_elapsed_time, so no limit cuts it.
    const bool may_exceed_limit = long_policy.elapsed_rule == ElapsedRule::BeforeWait;
    const auto policy_limit = may_exceed_limit ? kForever : long_policy.max_elapsed_time;
    long_policy.max_elapsed_time = std::max(long_policy.max_elapsed_time, kLongestLimit);
    resolved.policy = std::make_shared<const RetryPolicy>(std::move(long_policy));
    const PolicySet policies(resolved);
    const auto shortest = retried_attempts(call(policies, script, /*draw=*/0.0));
    const auto longest = retried_attempts(call(policies, script, /*draw=*/1.0));
    std::vector<Range> ranges;
    for (std::size_t i = 0; i < std::min(shortest.size(), longest.size()); ++i) {
      const auto wait_begins = shortest[i].start + shortest[i].duration;
      const Duration left = policy_limit - wait_begins;
      ranges.emplace_back(wait_after(shortest[i]), std::min(wait_after(longest[i]), left));
    }
    return ranges;
  }

  // Compares the waits before retries with the expected ones. An exact expected wait must be equal
  // to the one in `waits`, which are those of a call in which every random wait has its mean
  // length. An expected range must contain all values that the wait may have. `end` describes the
  // end of the call, for messages.
  void check_waits(const Script& script, const Waits& waits, const std::string& end) {
    const auto& expected = *test_.expected.waits;
    const auto details = "the waits are " + text_of(waits) + ", and " + end;
    if (expected.size() != waits.size()) {
      fail("waits", std::to_string(expected.size()) + " of them", std::to_string(waits.size()),
           details);
      return;
    }
    const bool has_ranges = std::ranges::any_of(expected, &PolicyTest::Wait::range);
    const auto ranges = has_ranges ? ranges_of(script) : std::vector<Range>();
    for (std::size_t i = 0; i < waits.size(); ++i) {
      Range found(waits[i], waits[i]);
      // There are fewer ranges than waits if a call of ranges_of() ends early, for example because
      // its shorter waits end while a circuit breaker is open. min and max add the mean wait, which
      // may be outside: a wait until a fixed date gets shorter as the waits before it get longer.
      if (expected[i].range && i < ranges.size()) {
        found = {std::min(ranges[i].first, waits[i]), std::max(ranges[i].second, waits[i])};
      }
      check_wait(i, expected[i], found, details);
    }
  }

  // Compares one wait. `found` is its least and most value; both are the same unless a range is
  // expected.
  void check_wait(std::size_t index, const PolicyTest::Wait& expected, const Range& found,
                  const std::string& details) {
    // A single value is compared with three digits, as `plan` shows it.
    const auto holds = expected.range
                           ? expected.least <= found.first && found.second <= expected.most
                           : duration_text(expected.most) == duration_text(found.first);
    if (holds) return;
    const auto text = [&](Duration least, Duration most) {
      return duration_text(least) + (expected.range ? " to " + duration_text(most) : "");
    };
    fail("waits", text(expected.least, expected.most) + " for wait " + std::to_string(index + 1),
         text(found.first, found.second), details);
  }

  const PolicySet& policies_;
  const PolicyTest& test_;
  const std::string& file_;
  Request request_;
  std::string lines_;
};

// Runs the tests of a file. Returns a line for each expectation that does not hold. `file` is for
// the hints.
std::string run_tests(const PolicySet& policies, const std::vector<PolicyTest>& tests,
                      const std::string& file) {
  std::string lines;
  for (const auto& test : tests) {
    try {
      lines += Run(policies, test, file).failures();
    } catch (const BadOutcomes& error) {
      lines += error.what();
    }
  }
  return lines;
}

std::string ok_line(const PolicySet& set, std::size_t tests) {
  return "ok: " + counted(set.policy_count(), "policy", "policies") + ", " +
         counted(set.endpoint_count(), "endpoint") +
         (tests == 0 ? "" : ", " + counted(tests, "test")) + '\n';
}

// Checks a file. Returns a line for each problem and for each expectation of its tests that does
// not hold, and sets `status` to kFailed if there are any but warnings. Otherwise, if standard
// output is a terminal, adds a line "ok: …", which names the file if `ok_names_file` is set.
std::string check_file(const std::string& file, bool ok_names_file, int& status) {
  const auto checked = check_policies(read_policy_file(file), file);
  std::string lines;
  for (const auto& problem : checked.problems) lines += to_string(problem) + '\n';
  const auto failures = checked.set ? run_tests(*checked.set, checked.tests, file) : "";
  if (!checked.set || !failures.empty()) {
    status = kFailed;
  } else if (::isatty(STDOUT_FILENO) == 1) {
    lines += ok_names_file ? printable(file) + ": " : "";
    lines += ok_line(*checked.set, checked.tests.size());
  }
  return lines + failures;
}

}  // namespace

// Implements `httpretry policy check FILE...`: prints a line for each problem in the files and for
// each of their tests that fails. Checks all files, even after one with errors. Returns the exit
// status: kFailed if a file cannot be read, has errors or fails a test, and otherwise kOk.
int policy_check(const Args& args) {
  const auto files = parse(args, help_only());
  if (files.empty()) throw UsageError("policy check needs at least one FILE");
  const bool ok_names_file = files.size() > 1;  // lines about problems name it anyway
  std::string lines;
  int status = kOk;
  for (const auto& file : files) {
    try {
      lines += check_file(file, ok_names_file, status);  // may set `status` to kFailed
    } catch (const BadPolicyFile& error) {               // the file cannot be read
      lines += error.what();
      status = kFailed;
    }
  }
  write_stdout(lines);
  return status;
}

}  // namespace httpretry::cli
