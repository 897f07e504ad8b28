// A test of a policy: it must not keep a server down that was slow for ten seconds.
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
