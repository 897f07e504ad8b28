// Tests a policy: after a server was slow for ten seconds, retries must not keep it down.
#include <httpretry/simulate/simulate.hpp>

#include <cstdio>

using namespace httpretry;

int main() {
  SimulationOptions options;
  options.policies = {{"standard", PolicySet()},
                      {"curl", PolicySet(resolve_preset("curl").value())}};
  options.load.rate = 200;
  options.model = parse_model("queue:servers=10,service=exponential(20ms)", "test").value();
  options.model.triggers = {parse_trigger("at=10s,for=10s,capacity=0.1", "test").value()};
  const auto report = simulate(options).value();
  std::fputs(table_of(report).c_str(), stdout);
  return report.runs.front().recovered_after.has_value() ? 0 : 1;
}
