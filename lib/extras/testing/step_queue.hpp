// StepQueue: assigns the steps of a scenario to requests, across all connections of a server.
#pragma once

#include <httpretry/testing/testing.hpp>

#include <mutex>

namespace httpretry::faults {

// The step for one request. It is valid as long as the queue.
struct TakenStep {
  const Step* step;
  std::optional<std::size_t> index;  // empty if the scenario has no step for it
};

// Returns the step that `step.respond` computes for the request. If it fails, returns a 500 with
// the reason.
[[nodiscard]] Step compute_step(const Step& step, const SeenRequest& request);

class StepQueue {
 public:
  // Throws std::invalid_argument for a step that a server cannot perform.
  explicit StepQueue(Scenario scenario);

  // Whether any step has an HTTP/2 fault.
  [[nodiscard]] bool needs_http2() const;
  // Takes the next step for that path.
  [[nodiscard]] TakenStep take(std::string_view path);
  // Takes the next step of the scenario if its fault happens before a request is read. Otherwise
  // returns null and takes no step.
  [[nodiscard]] const Step* take_unread();

 private:
  // The position in a script.
  struct Cursor {
    std::size_t index = 0;
    std::uint64_t used = 0;
  };
  static TakenStep advance(const Script& script, Cursor& cursor);

  const Scenario scenario_;
  std::mutex mutex_;
  std::map<const Script*, Cursor> cursors_;  // for the scripts in scenario_
};

}  // namespace httpretry::faults
