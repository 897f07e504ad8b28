// What a send of a simulation costs, and what its clients take in memory: a line of JSON.
//
//   bench_simulate PRESET CLIENTS [SENDS]
//
// `at_once` is no preset but four attempts without waits: fewer calls are in flight at a time.
// The server fails half of the requests. The calls begin so close together that the time is that of
// the sends: what a run costs before its first call is in it, too.
#include <httpretry/simulate/simulate.hpp>

#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

using namespace httpretry;

namespace {

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double most_memory_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

PolicySet policies_of(const std::string& name) {
  if (name != "at_once") return PolicySet(resolve_preset(name).value());
  return parse_policies(R"({"version": 1, "default": {"max_attempts": 4, "budget": "none",
                            "backoff": {"kind": "none"}}})",
                        "at_once")
      .value();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  SimulationOptions options;
  options.policies = {{argv[1], policies_of(argv[1])}};
  options.clients = std::atoi(argv[2]);
  const double sends = argc > 3 ? std::atof(argv[3]) : 2e6;
  options.model.probability = 0.5;
  options.load.rate = sends / 2 / 20;  // two sends a call, in 20 s
  options.duration = std::chrono::seconds(20);
  const double begin = cpu_seconds();
  const auto report = simulate(options);
  const double taken = cpu_seconds() - begin;
  if (!report) return std::fprintf(stderr, "%s\n", report.error().message.c_str()), 1;
  const auto& run = report->runs.front();
  std::printf(
      "{\"preset\": \"%s\", \"clients\": %d, \"sends\": %llu, \"calls\": %llu, \"seconds\": %.3f, "
      "\"ns\": %.0f, \"memory_mib\": %.1f}\n",
      argv[1], options.clients, static_cast<unsigned long long>(run.sends),
      static_cast<unsigned long long>(run.calls), taken,
      1e9 * taken / static_cast<double>(run.sends), most_memory_mib());
  return 0;
}
