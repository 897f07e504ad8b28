#include "recorder.hpp"

#include <algorithm>
#include <cmath>

namespace httpretry::simulation {
namespace {

// Returns the value that a share of the values does not exceed (the nearest rank), or 0 if there
// are no values. Changes their order.
double quantile(std::vector<float>& values, double share) {
  if (values.empty()) return 0;
  const auto rank = std::ceil(share * static_cast<double>(values.size()));
  const auto index = static_cast<std::ptrdiff_t>(std::max(rank, 1.0)) - 1;
  std::nth_element(values.begin(), values.begin() + index, values.end());
  return static_cast<double>(values[static_cast<std::size_t>(index)]);
}

// Returns the number of sends in the second with the most.
double busiest_second(const std::vector<SimulationSample>& samples) {
  std::uint64_t most = 0;
  for (std::size_t first = 0; first < samples.size(); first += kSamplesPerSecond) {
    std::uint64_t sent = 0;
    const auto end = std::min(first + kSamplesPerSecond, samples.size());
    for (auto i = first; i < end; ++i) sent += samples[i].sent;
    most = std::max(most, sent);
  }
  return static_cast<double>(most);
}

// Measures how much the sends come together: returns the sends in the busiest sample, relative to
// the mean of the first samples, in which calls began. Returns 0 if nothing was sent in these.
double herd_of(const std::vector<SimulationSample>& samples, std::size_t samples_with_calls) {
  const auto mean_end = std::min(samples_with_calls, samples.size());
  std::uint64_t sent = 0;
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < mean_end; ++i) sent += samples[i].sent;
  for (const auto& sample : samples) most = std::max(most, sample.sent);
  if (sent == 0) return 0;
  return most / (static_cast<double>(sent) / static_cast<double>(mean_end));
}

}  // namespace

void Recorder::add_samples(Time now) {
  do {
    SimulationSample next;
    next.in_flight = in_flight_;
    if (with_budget_ > 0) next.budget = static_cast<float>(budget_ / with_budget_);
    run_.samples.push_back(next);
    sample_end_ += kSamplePeriod;
  } while (now >= sample_end_);
}

// Counts a call that has ended. Only the durations of calls that succeeded are kept.
void Recorder::on_call_ended(Ending ending, bool sent, Duration duration, Time now) {
  advance_to(now);
  last_end_ = now;
  current().in_flight = --in_flight_;
  if (!sent) ++run_.not_sent;
  if (ending == Ending::BudgetSpent) ++run_.budget_refusals;
  if (ending != Ending::Succeeded) {
    ++current().failed;
    return;
  }
  ++run_.succeeded;
  ++current().succeeded;
  milliseconds_.push_back(std::chrono::duration<float, std::milli>(duration).count());
}

void Recorder::on_budget_changed(std::optional<double> before, double after, Time now) {
  advance_to(now);
  if (!before) ++with_budget_;
  budget_ += after - before.value_or(0);
  current().budget = static_cast<float>(budget_ / with_budget_);
}

// Returns the result of the run, without verdict and bounds. `most_time` is the time in which calls
// could begin.
SimulationRun Recorder::take(Duration most_time) {
  run_.unfinished = in_flight_;
  run_.has_budget = with_budget_ > 0;
  run_.finished_at_s = std::chrono::duration<double>(last_end_.time_since_epoch()).count();
  run_.p50_ms = quantile(milliseconds_, 0.50);
  run_.p95_ms = quantile(milliseconds_, 0.95);
  run_.p99_ms = quantile(milliseconds_, 0.99);
  run_.peak_sends_per_second = busiest_second(run_.samples);
  const auto rounded_up = (most_time + kSamplePeriod - Duration(1)) / kSamplePeriod;
  run_.herd = herd_of(run_.samples, static_cast<std::size_t>(rounded_up));
  return std::move(run_);
}

}  // namespace httpretry::simulation
