// The verdict on a run: whether, and when, the server has recovered from the triggers.
#include "recorder.hpp"
#include "text.hpp"

#include <algorithm>
#include <cmath>

namespace httpretry::simulation {
namespace {

constexpr std::size_t kTenSeconds = 10 * kSamplesPerSecond;
// The tolerance for chance, in standard deviations: for one comparison of a longer time, and for
// each of many comparisons or of short times.
constexpr double kTolerance = 2;
constexpr double kWideTolerance = 3;

struct Goodput {
  double offered = 0;
  double succeeded = 0;
  [[nodiscard]] double ratio() const { return offered > 0 ? succeeded / offered : 1; }
};

// Returns the calls that began and the calls that succeeded in the samples [first, last).
Goodput between(const std::vector<SimulationSample>& samples, std::size_t first, std::size_t last) {
  Goodput sum;
  for (auto i = first; i < std::min(last, samples.size()); ++i) {
    sum.offered += samples[i].offered;
    sum.succeeded += samples[i].succeeded;
  }
  return sum;
}

// Returns whether at least 99 % of the expected calls succeeded, less what chance explains: a
// number of standard deviations of the count. `ratio` is the success ratio to compare with.
bool is_as_good(const Goodput& goodput, double ratio, double deviations = kTolerance) {
  const double expected = goodput.offered * ratio;
  return goodput.succeeded >= 0.99 * expected - deviations * std::sqrt(expected);
}

// Returns whether the ten seconds from `first` are good enough together, and each second is not
// much worse.
bool is_sustained(const std::vector<SimulationSample>& samples, std::size_t first, double ratio) {
  for (auto second = first; second < first + kTenSeconds; second += kSamplesPerSecond) {
    const auto goodput = between(samples, second, second + kSamplesPerSecond);
    if (!is_as_good(goodput, ratio, kWideTolerance)) return false;
  }
  return is_as_good(between(samples, first, first + kTenSeconds), ratio);
}

// Returns the index of the sample that begins at the time or contains it.
std::size_t sample_at(Duration time) {
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
    const auto goodput = between(run.samples, first, last);
    double sent = 0;
    for (auto i = first; i < last; ++i) sent += run.samples[i].sent;
    offered = goodput.offered / seconds;
    succeeded = goodput.succeeded / seconds;
    sends_per_call = goodput.offered > 0 ? sent / goodput.offered : 0;
  }
  double offered = 0;
  double succeeded = 0;
  double sends_per_call = 0;
};

std::string per_second(double value) { return number(value, value < 10 ? 1 : 0); }

}  // namespace

// Sets the verdict, and `recovered_after` if the server recovered. Compares the success ratio
// during and after the triggers with the ratio before them. Without a trigger, compares the last
// third of the time with the first. Looks only at the samples in which calls began.
void judge(SimulationRun& run, const ServerModel& model, Duration duration) {
  const auto& triggers = model.triggers;
  const auto end = std::min(sample_at(duration), run.samples.size());
  if (triggers.empty()) {
    const auto third = end / 3;
    const bool worse =
        third > 0 && depends_on_load(model) &&
        !is_as_good(between(run.samples, end - third, end), between(run.samples, 0, third).ratio());
    run.verdict = worse ? SimulationRun::Verdict::Overloaded : SimulationRun::Verdict::Stable;
    return;
  }
  auto triggers_begin = sample_at(triggers.front().at);
  auto triggers_end = sample_at(triggers.front().end());
  for (const auto& trigger : triggers) {
    triggers_begin = std::min(triggers_begin, sample_at(trigger.at));
    triggers_end = std::max(triggers_end, sample_at(trigger.end()));
  }
  const auto ratio = between(run.samples, 0, triggers_begin).ratio();
  // Some servers are good for a while after the trigger, and then fail.
  const bool good_at_end =
      end >= kTenSeconds &&
      is_as_good(between(run.samples, end - kTenSeconds, end), ratio, kWideTolerance);
  for (auto first = triggers_end; good_at_end && first + kTenSeconds <= end;
       first += kSamplesPerSecond) {
    if (!is_sustained(run.samples, first, ratio)) continue;
    run.recovered_after = static_cast<double>(first - triggers_end) / kSamplesPerSecond;
    break;
  }
  const bool unharmed = is_as_good(between(run.samples, triggers_begin, triggers_end), ratio);
  if (!run.recovered_after) {
    run.verdict = SimulationRun::Verdict::Metastable;
  } else if (*run.recovered_after == 0 && unharmed) {
    run.verdict = SimulationRun::Verdict::Stable;
  } else {
    run.verdict = SimulationRun::Verdict::Recovered;
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

// Returns the verdict with the numbers that explain it: those of the whole run if all is well at
// its end, otherwise those of the last ten seconds.
std::string verdict_sentence(const SimulationRun& run) {
  using simulation::number;
  using simulation::per_second;
  // From 99.95 % on, one decimal place would show "100.0".
  const auto success = number(100 * run.success_ratio(), run.success_ratio() < 0.9995 ? 1 : 0);
  const auto load = number(run.sends_per_call(), 2) + " sends a call";
  const auto of_all = success + " % of all calls succeed, " + load;
  using Verdict = SimulationRun::Verdict;
  const simulation::AtTheEnd end(run);
  const auto at_end = number(end.sends_per_call, 1) + " sends a call, " +
                      per_second(end.succeeded) + " of " + per_second(end.offered) +
                      " calls a second succeed";
  switch (run.verdict) {
    case Verdict::Stable:
    case Verdict::Recovered: return verdict_text(run) + ": " + of_all;
    case Verdict::Metastable: return verdict_text(run) + ": it stays at " + at_end;
    case Verdict::Overloaded: return verdict_text(run) + ": it ends at " + at_end;
  }
  return "";
}

}  // namespace httpretry
