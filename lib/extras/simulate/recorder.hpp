// Recorder: counts the events of a run, in total and for each sample period.
#pragma once

#include <httpretry/simulate/simulate.hpp>

#include <optional>
#include <vector>

namespace httpretry::simulation {

inline constexpr std::size_t kSamplesPerSecond = std::chrono::seconds(1) / kSamplePeriod;

class Recorder {
 public:
  enum class Ending : std::uint8_t { Succeeded, Failed, BudgetSpent };

  void on_call_began(Time now) {
    advance_to(now);
    ++run_.calls;
    ++current().offered;
    current().in_flight = ++in_flight_;
  }
  // `sent` is false if the call ended without a send.
  void on_call_ended(Ending ending, bool sent, Duration duration, Time now);
  void on_request_sent(Time now) {
    advance_to(now);
    ++run_.sends;
    ++current().sent;
  }
  // Called for a response that arrives after its client has given up.
  void on_response_wasted() { ++run_.wasted; }
  // Called after the tokens of one client have changed. `before` is empty the first time.
  void on_budget_changed(std::optional<double> before, double after, Time now);

  [[nodiscard]] std::uint64_t calls() const { return run_.calls; }
  [[nodiscard]] std::uint64_t sends() const { return run_.sends; }
  // Returns the result after the run has ended. No call began after `most_time`.
  [[nodiscard]] SimulationRun take(Duration most_time);

 private:
  // Adds samples until the last one contains `now`.
  void advance_to(Time now) {
    if (now >= sample_end_) add_samples(now);
  }
  void add_samples(Time now);
  SimulationSample& current() { return run_.samples.back(); }

  SimulationRun run_;
  std::vector<float> milliseconds_;  // of each call that succeeded
  std::uint32_t in_flight_ = 0;
  Time sample_end_{};
  Time last_end_{};
  double budget_ = 0;    // tokens of all clients
  int with_budget_ = 0;  // clients whose budget is known
};

// Sets the verdict of the run, and the time after which the server recovered from the triggers.
void set_verdict(SimulationRun& run, const SimulationOptions& options);

}  // namespace httpretry::simulation
