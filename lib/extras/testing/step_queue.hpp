// StepQueue: gives each request its step of the scenario, across all connections.
#pragma once

#include <httpretry/testing/testing.hpp>

#include <mutex>

namespace httpretry::faults {

// The step for one request. Valid as long as the queue.
struct TakenStep {
  const Step* step;
  std::optional<std::size_t> index;  // empty if the scenario has no step for it
};

// What the function of the step makes of the request; a 500 where it fails.
[[nodiscard]] Step computed(const Step& step, const SeenRequest& request);

class StepQueue {
 public:
  // Throws std::invalid_argument for a step that a server cannot perform.
  explicit StepQueue(Scenario scenario);

  // Whether a step has a fault of HTTP/2.
  [[nodiscard]] bool needs_http2() const;
  // The next step for that path.
  [[nodiscard]] TakenStep take(std::string_view path);
  // The next step of the scenario, if its fault happens before a request is read; else null, and
  // no step is taken.
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
  std::map<const Script*, Cursor> cursors_;  // of the scripts in scenario_
};

}  // namespace httpretry::faults
