// The verdict on a run: whether, and when, the server has recovered from the triggers.
#include "recorder.hpp"
#include "text.hpp"

#include <algorithm>
#include <cmath>

namespace httpretry::simulation {
namespace {

constexpr std::size_t kTenSeconds = 10 * kSamplesPerSecond;
// The tolerance for chance, in standard deviations.
constexpr double kTolerance = 2;      // for a single comparison of a longer time
constexpr double kWideTolerance = 3;  // for each of many comparisons, or for short times

struct Goodput {
  double offered = 0;
  double succeeded = 0;
  [[nodiscard]] double ratio() const { return offered > 0 ? succeeded / offered : 1; }
};

// Returns the calls that began and the calls that succeeded in the samples [first, last).
Goodput goodput_between(const std::vector<SimulationSample>& samples, std::size_t first,
                        std::size_t last) {
  Goodput sum;
  for (auto i = first; i < std::min(last, samples.size()); ++i) {
    sum.offered += samples[i].offered;
    sum.succeeded += samples[i].succeeded;
  }
  return sum;
}

// Returns whether at least 99 % as many calls succeeded as the success ratio `ratio` predicts.
// Chance may explain a shortfall of `deviations` standard deviations.
bool is_as_good(const Goodput& goodput, double ratio, double deviations = kTolerance) {
  const double expected = goodput.offered * ratio;
  return goodput.succeeded >= 0.99 * expected - deviations * std::sqrt(expected);
}

// Returns whether the ten seconds from `first` are good enough together, and each second is not
// much worse.
bool is_sustained(const std::vector<SimulationSample>& samples, std::size_t first, double ratio) {
  for (auto second = first; second < first + kTenSeconds; second += kSamplesPerSecond) {
    const auto goodput = goodput_between(samples, second, second + kSamplesPerSecond);
    if (!is_as_good(goodput, ratio, kWideTolerance)) return false;
  }
  return is_as_good(goodput_between(samples, first, first + kTenSeconds), ratio);
}

// Returns the index of the sample that begins at the time or contains it.
std::size_t sample_index(Duration time) {
  return static_cast<std::size_t>(std::max<std::int64_t>(time / kSamplePeriod, 0));
}

// Returns whether more requests make the server worse.
bool depends_on_load(const ServerModel& model) {
  using Kind = ServerModel::Kind;
  return model.kind == Kind::Capacity || model.kind == Kind::Queue || model.kind == Kind::Slope;
}

// The rates in the last ten seconds in which calls began.
struct AtTheEnd {
  explicit AtTheEnd(const SimulationRun& run) {
    auto last = run.samples.size();
    while (last > 0 && run.samples[last - 1].offered == 0) --last;
    const auto first = last > kTenSeconds ? last - kTenSeconds : 0;
    const auto seconds = static_cast<double>(last - first) / static_cast<double>(kSamplesPerSecond);
    if (seconds <= 0) return;
    const auto goodput = goodput_between(run.samples, first, last);
    double sent = 0;
    for (auto i = first; i < last; ++i) sent += run.samples[i].sent;
    offered = goodput.offered / seconds;
    succeeded = goodput.succeeded / seconds;
    sends_per_call = sent / goodput.offered;  // the last sample has calls
  }
  double offered = 0;
  double succeeded = 0;
  double sends_per_call = 0;
};

std::string per_second(double value) { return number(value, value < 10 ? 1 : 0); }

// Returns the verdict on a run without triggers: Overloaded if fewer calls succeed in the last
// third of its samples than in the first. `end` is the number of samples in which calls began.
SimulationRun::Verdict verdict_without_trigger(const SimulationRun& run, const ServerModel& model,
                                               std::size_t end) {
  const auto third = end / 3;
  // Only a server that more requests make worse can be overloaded.
  if (third == 0 || !depends_on_load(model)) return SimulationRun::Verdict::Stable;
  const auto first_ratio = goodput_between(run.samples, 0, third).ratio();
  return is_as_good(goodput_between(run.samples, end - third, end), first_ratio)
             ? SimulationRun::Verdict::Stable
             : SimulationRun::Verdict::Overloaded;
}

// Returns the seconds from `triggers_end`, the sample at which the last trigger ends, to the first
// ten seconds in which as many calls succeed as the success ratio before the triggers predicts.
// Returns nullopt if the server did not recover. `end` is the number of samples in which calls
// began.
std::optional<double> recovery_time(const SimulationRun& run, std::size_t triggers_end,
                                    std::size_t end, double ratio_before) {
  if (end < kTenSeconds) return std::nullopt;
  // Some servers are good for a while after the trigger, and then fail. They did not recover.
  const auto last_ten_seconds = goodput_between(run.samples, end - kTenSeconds, end);
  if (!is_as_good(last_ten_seconds, ratio_before, kWideTolerance)) return std::nullopt;
  for (auto first = triggers_end; first + kTenSeconds <= end; first += kSamplesPerSecond) {
    if (!is_sustained(run.samples, first, ratio_before)) continue;
    return static_cast<double>(first - triggers_end) / kSamplesPerSecond;
  }
  return std::nullopt;
}

}  // namespace

// Sets run.verdict: whether the server recovered after the triggers, which disturb it for a time.
// Compares the success ratio after the triggers with that before them; without triggers, compares
// the end of the run with its beginning. With triggers, also sets run.recovered_after, which is
// nullopt if the server did not recover.
void set_verdict(SimulationRun& run, const SimulationOptions& options) {
  using Verdict = SimulationRun::Verdict;
  const auto& triggers = options.model.triggers;
  // No call began after this sample.
  const auto end = std::min(sample_index(options.duration), run.samples.size());
  if (triggers.empty()) {
    run.verdict = verdict_without_trigger(run, options.model, end);
    return;
  }
  // The samples from the beginning of the first trigger to the end of the last one.
  auto triggers_begin = sample_index(triggers.front().at);
  auto triggers_end = sample_index(triggers.front().end());
  for (const auto& trigger : triggers) {
    triggers_begin = std::min(triggers_begin, sample_index(trigger.at));
    triggers_end = std::max(triggers_end, sample_index(trigger.end()));
  }
  const auto ratio_before = goodput_between(run.samples, 0, triggers_begin).ratio();
  // With the load Once, no call begins after the triggers that could show that they still do harm.
  run.recovered_after = options.load.kind == Load::Kind::Once
                            ? 0.0
                            : recovery_time(run, triggers_end, end, ratio_before);
  // True if the triggers did no harm even while they lasted.
  const bool unharmed =
      is_as_good(goodput_between(run.samples, triggers_begin, triggers_end), ratio_before);
  if (!run.recovered_after) {
    run.verdict = Verdict::Metastable;  // still bad although the triggers are over
  } else if (*run.recovered_after == 0 && unharmed) {
    run.verdict = Verdict::Stable;  // good during the triggers and right after them
  } else {
    run.verdict = Verdict::Recovered;
  }
}

}  // namespace httpretry::simulation

namespace httpretry {

// Returns the verdict in a few words. A recovery within the first second is "at once".
std::string verdict_text(const SimulationRun& run) {
  using Verdict = SimulationRun::Verdict;
  switch (run.verdict) {
    case Verdict::Stable: return "stable";
    case Verdict::Recovered:
      if (run.recovered_after.value_or(0) == 0) return "recovered at once";
      return "recovered in " + simulation::number(*run.recovered_after, 0) + " s";
    case Verdict::Metastable: return "metastable";
    case Verdict::Overloaded: return "overloaded";
  }
  return "";
}

// Returns the verdict with the numbers that explain it. If all is well at the end of the run, they
// are those of the whole run: "recovered in 14 s: 98.2 % of all calls succeed, 1.07 sends a call".
// Otherwise they are those of the last ten seconds in which calls began: "metastable: it stays
// at 3.9 sends a call, 12 of 1000 calls a second succeed".
std::string verdict_sentence(const SimulationRun& run) {
  using simulation::number;
  using simulation::per_second;
  // From 99.95 % on, one decimal place would show "100.0", so "100" is shown.
  const int decimals = run.success_ratio() < 0.9995 ? 1 : 0;
  const auto whole_run = number(100 * run.success_ratio(), decimals) + " % of all calls succeed, " +
                         number(run.sends_per_call(), 2) + " sends a call";
  const simulation::AtTheEnd end(run);  // the rates in the last ten seconds
  const auto last_seconds = number(end.sends_per_call, 1) + " sends a call, " +
                            per_second(end.succeeded) + " of " + per_second(end.offered) +
                            " calls a second succeed";
  using Verdict = SimulationRun::Verdict;
  switch (run.verdict) {
    case Verdict::Stable:
    case Verdict::Recovered: return verdict_text(run) + ": " + whole_run;
    case Verdict::Metastable: return verdict_text(run) + ": it stays at " + last_seconds;
    case Verdict::Overloaded: return verdict_text(run) + ": it ends at " + last_seconds;
  }
  return "";
}

}  // namespace httpretry
