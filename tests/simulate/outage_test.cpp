// The page and the picture that README.md shows: outage.html and outage.svg of lib/simulate. What
// they show, too: it must be so. HTTPRETRY_UPDATE=1 writes them again.
//
// Nothing in this simulation depends on the last bit of a logarithm, so that all processors and
// compilers give the same bytes.
#include "tests/simulate/runs.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

const std::string kFolder = SOURCE_DIR "/lib/simulate/";

// What follows "httpretry" on the page; tests/cli/simulate_test.py runs it.
constexpr std::string_view kCommand =
    "httpretry simulate --set attempt_timeout=1s --preset standard --preset curl "
    "--preset aws-standard --preset google-http-client "
    "--model queue:servers=50,queue=1500,retry_after=2s "
    "--load open:rate=700,arrivals=even --duration 80s "
    "--trigger at=20s,for=10s,capacity=0 --format html";

PolicySet impatient(const std::string& preset) {
  return policy_of(R"({"preset": ")" + preset + R"(", "attempt_timeout": "1s"})");
}

// The server takes 1 000 requests a second and gets 700 calls. For ten seconds it does nothing.
// Clients give up after a second, and the queue holds more than it can do in a second.
SimulationReport outage() {
  SimulationOptions options;
  for (const auto* const preset : {"standard", "curl", "aws-standard", "google-http-client"}) {
    options.policies.emplace_back(preset, impatient(preset));
  }
  options.model = model_of("queue:servers=50,queue=1500,retry_after=2s");
  options.model.triggers = {trigger_of("at=20s,for=10s,capacity=0")};
  options.load = load_of("open:rate=700,arrivals=even");
  options.duration = 80s;
  return simulate(options).value();
}

void check_file(const std::string& path, const std::string& text) {
  if (std::getenv("HTTPRETRY_UPDATE") != nullptr) std::ofstream(path, std::ios::binary) << text;
  std::ifstream file(path, std::ios::binary);
  const std::string stored{std::istreambuf_iterator<char>(file), {}};
  // Not CHECK(stored == text): a failure would print both.
  const bool same = stored == text;
  CHECK_MESSAGE(same, path << " is not what simulate writes");
}

}  // namespace

TEST_CASE(
    "in an outage of ten seconds a budget lets the server recover, and attempts alone do not") {
  const auto report = outage();
  using Verdict = SimulationRun::Verdict;
  for (const auto& run : report.runs) {
    CAPTURE(run.policy);
    const bool has_budget = run.policy == "standard" || run.policy == "aws-standard";
    CHECK(run.has_budget == has_budget);
    CHECK(run.verdict == (has_budget ? Verdict::Recovered : Verdict::Metastable));
    if (has_budget) CHECK(run.recovered_after.value_or(100) <= 10);
    if (!has_budget)
      CHECK(in_seconds(run, 60, 80, &SimulationSample::succeeded) <= 0.05 * 20 * 700);
  }
  check_file(kFolder + "outage.html", html_of(report, kCommand));
  check_file(kFolder + "outage.svg", svg_of(report));
}
