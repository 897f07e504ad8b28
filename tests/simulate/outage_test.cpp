// The page and the picture that README.md shows: outage.html and outage.svg of lib/extras/simulate.
// What they show, too: it must be so. HTTPRETRY_UPDATE=1 writes them again.
//
// Nothing in this simulation depends on the last bit of a logarithm, so that all processors and
// compilers give the same bytes.
#include "tests/simulate/runs.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

const std::string kFolder = SOURCE_DIR "/lib/extras/simulate/";

// What is on the page; tests/cli/simulate_test.py runs it.
constexpr std::string_view kCommand =
    "httpretry simulate --set attempt_timeout=1s "
    "--preset standard "
    "--preset standard --set pause=none --name 'standard, no pause' "
    "--preset standard --set 'breaker={\"preset\":\"hystrix\"}' --name 'standard, guarded' "
    "--preset aws-standard --set pause=none --name aws-standard "
    "--preset aws-standard --set 'breaker={\"preset\":\"hystrix\"}' --name 'aws-standard, guarded' "
    "--preset curl --set pause=none --name curl "
    "--preset curl --set 'breaker={\"preset\":\"hystrix\"}' --name 'curl, guarded' "
    "--preset google-http-client --set pause=none --name google-http-client "
    "--preset google-http-client --set 'breaker={\"preset\":\"hystrix\"}' "
    "--name 'google-http-client, guarded' "
    "--model queue:servers=10,queue=300,retry_after=2s "
    "--clients 20 --load open:rate=140,arrivals=even --duration 110s "
    "--trigger at=20s,for=10s,capacity=0 --format html";

struct Row {
  const char* name;
  const char* preset;
  const char* guards;  // keys of the policy
  std::optional<double> recovers_within;
  bool in_picture;
};
constexpr const char* kPause = "";  // as it is: only the pause
constexpr const char* kNothing = R"(, "pause": "none")";
constexpr const char* kBoth = R"(, "breaker": {"preset": "hystrix"})";

const Row kRows[] = {
    // The pause does not refuse: what it held back comes afterwards, beside the other calls. So
    // it takes longer, and nearly all of them succeed.
    {"standard", "standard", kPause, 25, true},
    {"standard, no pause", "standard", kNothing, 10, false},
    {"standard, guarded", "standard", kBoth, 10, true},
    {"aws-standard", "aws-standard", kNothing, 10, true},
    {"aws-standard, guarded", "aws-standard", kBoth, 10, false},
    {"curl", "curl", kNothing, std::nullopt, true},
    {"curl, guarded", "curl", kBoth, 10, true},
    {"google-http-client", "google-http-client", kNothing, std::nullopt, true},
    {"google-http-client, guarded", "google-http-client", kBoth, 10, false},
};

// The server takes 200 requests a second and gets 140 calls. For ten seconds it does nothing.
// Clients give up after a second, and the queue holds more than the server can do in a second.
SimulationReport outage_report() {
  SimulationOptions options;
  for (const auto& row : kRows) {
    options.policies.emplace_back(row.name,
                                  policy_of(R"({"preset": ")" + std::string(row.preset) +
                                            R"(", "attempt_timeout": "1s")" + row.guards + "}"));
  }
  options.model = model_of("queue:servers=10,queue=300,retry_after=2s");
  options.model.triggers = {trigger_of("at=20s,for=10s,capacity=0")};
  options.load = load_of("open:rate=140,arrivals=even");
  options.clients = 20;
  options.duration = 110s;
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

TEST_SUITE_BEGIN("large");

TEST_CASE("in an outage a budget or a breaker lets the server recover, and attempts alone do not") {
  const auto report = outage_report();
  using Verdict = SimulationRun::Verdict;
  auto picture = report;
  picture.runs.clear();
  for (std::size_t i = 0; i < std::size(kRows); ++i) {
    const auto& run = report.runs[i];
    const auto& row = kRows[i];
    CAPTURE(run.policy);
    if (row.recovers_within) {
      CHECK(run.verdict == Verdict::Recovered);
      CHECK(run.recovered_after.value_or(100) <= *row.recovers_within);
    } else {
      CHECK(run.verdict == Verdict::Metastable);
      CHECK(in_seconds(run, 90, 110, &SimulationSample::succeeded) <= 0.05 * 20 * 140);
    }
    if (row.guards == kBoth) {
      // Less than one send a call: while the breaker is open there is none.
      CHECK(run.sends_per_call() < 1);
      CHECK(run.not_sent > 0);
      CHECK(run.peak_sends_per_second < 2 * 140);
    }
    if (row.guards == kPause) CHECK(run.succeeded > 98 * run.calls / 100);
    if (row.in_picture) picture.runs.push_back(run);
  }
  check_file(kFolder + "outage.html", html_of(report, kCommand));
  check_file(kFolder + "outage.svg", svg_of(picture));
}

TEST_SUITE_END();

// Outside the suite "large", because it simulates nothing. The test above updates the files first.
TEST_CASE("the stored page and drawing have the styles of every page and drawing") {
  const auto stored = [](const char* name) {
    std::ifstream file(kFolder + name, std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(file), {}};
  };
  const auto style_of = [](const std::string& text) {
    const auto begin = text.find("<style>");
    REQUIRE(begin != std::string::npos);
    return text.substr(begin, text.find("</style>") - begin);
  };
  const auto empty = SimulationReport();
  const auto page = html_of(empty, "");
  const auto stored_page = stored("outage.html");
  CHECK(style_of(page) == style_of(stored_page));
  CHECK(style_of(svg_of(empty)) == style_of(stored("outage.svg")));
  // The parts before the title and after the command are the same, too.
  const auto before_title = stored_page.find("<title>");
  CHECK(page.substr(0, page.find("<title>")) == stored_page.substr(0, before_title));
  CHECK(page.ends_with("<pre></pre>\n</body>\n</html>\n"));
  CHECK(stored_page.ends_with("</pre>\n</body>\n</html>\n"));
}
