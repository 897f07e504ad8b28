// Recorder: counts what happens in a run.
#pragma once

#include <httpretry/simulate/simulate.hpp>

#include <optional>
#include <vector>

namespace httpretry::simulation {

class Recorder {
 public:
  enum class Ending : std::uint8_t { Succeeded, Failed, BudgetSpent };

  void call_began(Time now) {
    at(now);
    ++run_.calls;
    ++current().offered;
    current().in_flight = ++in_flight_;
  }
  void call_ended(Ending ending, bool sent, Duration took, Time now);
  void request_sent(Time now) {
    at(now);
    ++run_.sends;
    ++current().sent;
  }
  // It came after its client had left.
  void response_wasted() { ++run_.wasted; }
  // The tokens of one client changed; `before` is empty where nothing was known of them.
  void budget_changed(std::optional<double> before, double after, Time now);

  [[nodiscard]] std::uint64_t sends() const { return run_.sends; }
  [[nodiscard]] std::uint64_t calls_under_way() const { return in_flight_; }
  // What is known when the run has ended. `most_time`: no call began after it.
  [[nodiscard]] SimulationRun take(Duration most_time);

 private:
  // Goes on to the piece in which `now` is.
  void at(Time now) {
    if (now >= piece_end_) next_pieces(now);
  }
  void next_pieces(Time now);
  SimulationSample& current() { return run_.samples.back(); }

  SimulationRun run_;
  std::vector<float> milliseconds_;  // of each call that succeeded
  std::uint32_t in_flight_ = 0;
  Time piece_end_{};
  Time last_end_{};
  double budget_ = 0;  // of all clients
  int with_budget_ = 0;
};

// When, after the last trigger, the server was as good as before the first; and the verdict.
void judge(SimulationRun& run, const ServerModel& model, Duration duration);

}  // namespace httpretry::simulation
