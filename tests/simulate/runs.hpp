// What the tests of simulations share: short ways to say what is simulated.
#pragma once

#include <httpretry/simulate/simulate.hpp>

#include <cmath>
#include <string>
#include <string_view>
#include <utility>

namespace httpretry {

inline PolicySet policy_of(const std::string& json) {
  return parse_policies(R"({"version": 1, "default": )" + json + "}", "test").value();
}
inline PolicySet preset_of(std::string_view name) {
  return PolicySet(resolve_preset(name).value());
}
inline ServerModel model_of(std::string_view text) { return parse_model(text, "test").value(); }
inline Load load_of(std::string_view text) { return parse_load(text, "test").value(); }
inline Trigger trigger_of(std::string_view text) { return parse_trigger(text, "test").value(); }

// One send a call.
inline PolicySet no_retries() { return preset_of("none"); }

inline SimulationRun run_of(SimulationOptions& options, PolicySet policy) {
  options.policies = {{"it", std::move(policy)}};
  return simulate(options).value().runs.front();
}

// One client makes one call, at 0; messages take no time.
inline SimulationOptions one_call(std::string_view model) {
  SimulationOptions options;
  options.clients = 1;
  options.load.kind = Load::Kind::Once;
  options.model = model_of(model);
  if (options.model.kind != ServerModel::Kind::Occ) options.model.network = Distribution();
  return options;
}

using SampleCount = std::uint32_t SimulationSample::*;

// Of a whole second of the run, counted from 0.
inline std::uint64_t in_second(const SimulationRun& run, std::size_t second, SampleCount count) {
  constexpr std::size_t kPieces = std::chrono::seconds(1) / kSamplePeriod;
  std::uint64_t sum = 0;
  for (std::size_t i = kPieces * second; i < kPieces * (second + 1); ++i) {
    if (i < run.samples.size()) sum += run.samples[i].*count;
  }
  return sum;
}

// Of the seconds from `first` up to, but without, `last`.
inline double in_seconds(const SimulationRun& run, std::size_t first, std::size_t last,
                         SampleCount count) {
  std::uint64_t sum = 0;
  for (auto second = first; second < last; ++second) sum += in_second(run, second, count);
  return static_cast<double>(sum);
}

// The mean of some runs, and its standard error.
struct Mean {
  void add(double value) {
    sum += value;
    squares += value * value;
    ++count;
  }
  [[nodiscard]] double value() const { return sum / count; }
  [[nodiscard]] double error() const {
    return std::sqrt((squares / count - value() * value()) / (count - 1));
  }
  double sum = 0;
  double squares = 0;
  int count = 0;
};

}  // namespace httpretry
