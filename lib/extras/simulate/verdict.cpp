// The verdict on a run: whether, and when, the server has recovered from the triggers.
#include "recorder.hpp"
#include "text.hpp"

#include <algorithm>
#include <cmath>

namespace httpretry::simulation {
namespace {

constexpr std::size_t kPerSecond = std::chrono::seconds(1) / kSamplePeriod;
constexpr std::size_t kSustained = 10 * kPerSecond;

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

// Returns whether at least 99 % of the wanted calls succeeded, less what chance explains: a number
// of standard deviations of the count.
bool is_as_good(const Goodput& now, double ratio, double deviations = 2) {
  const double wanted = now.offered * ratio;
  return now.succeeded >= 0.99 * wanted - deviations * std::sqrt(wanted);
}

// Returns whether the ten seconds from `first` are good enough together, and each second is not
// much worse.
bool is_sustained(const std::vector<SimulationSample>& samples, std::size_t first, double ratio) {
  for (auto second = first; second < first + kSustained; second += kPerSecond) {
    if (!is_as_good(between(samples, second, second + kPerSecond), ratio, 3)) return false;
  }
  return is_as_good(between(samples, first, first + kSustained), ratio);
}

std::size_t piece_of(Duration time) {
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
    const auto first = last > kSustained ? last - kSustained : 0;
    const auto seconds = static_cast<double>(last - first) / static_cast<double>(kPerSecond);
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

void judge(SimulationRun& run, const ServerModel& model, Duration duration) {
  const auto& triggers = model.triggers;
  const auto end = std::min(piece_of(duration), run.samples.size());
  // Without a trigger, the last third of the time is compared with the first.
  if (triggers.empty()) {
    const auto third = end / 3;
    const bool worse =
        third > 0 && depends_on_load(model) &&
        !is_as_good(between(run.samples, end - third, end), between(run.samples, 0, third).ratio());
    run.verdict = worse ? SimulationRun::Verdict::Overloaded : SimulationRun::Verdict::Stable;
    return;
  }
  auto begin = triggers.front().at;
  auto over = triggers.front().end();
  for (const auto& trigger : triggers) {
    begin = std::min(begin, trigger.at);
    over = std::max(over, trigger.end());
  }
  const auto before = between(run.samples, 0, piece_of(begin)).ratio();
  // Some servers are good for a while after the trigger, and then fail.
  const bool good_at_end =
      end >= kSustained && is_as_good(between(run.samples, end - kSustained, end), before, 3);
  for (auto first = piece_of(over); good_at_end && first + kSustained <= end; first += kPerSecond) {
    if (!is_sustained(run.samples, first, before)) continue;
    run.recovered_after = static_cast<double>(first - piece_of(over)) / kPerSecond;
    break;
  }
  const bool unharmed = is_as_good(between(run.samples, piece_of(begin), piece_of(over)), before);
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

std::string verdict_sentence(const SimulationRun& run) {
  using simulation::number;
  using simulation::per_second;
  const auto success = number(100 * run.success_ratio(), run.success_ratio() < 0.9995 ? 1 : 0);
  const auto load = number(run.sends_per_call(), 2) + " sends a call";
  const auto whole = success + " % of all calls succeed, " + load;
  using Verdict = SimulationRun::Verdict;
  const simulation::AtTheEnd end(run);
  const auto now = number(end.sends_per_call, 1) + " sends a call, " + per_second(end.succeeded) +
                   " of " + per_second(end.offered) + " calls a second succeed";
  switch (run.verdict) {
    case Verdict::Stable:
    case Verdict::Recovered: return verdict_text(run) + ": " + whole;
    case Verdict::Metastable: return verdict_text(run) + ": it stays at " + now;
    case Verdict::Overloaded: return verdict_text(run) + ": it ends at " + now;
  }
  return "";
}

}  // namespace httpretry
