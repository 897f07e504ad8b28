// StepSource: deals the steps of a scenario out to requests, across all connections.
#pragma once

#include <httpretry/testing/testing.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace httpretry::faults {

// One request's turn. The step lives as long as its source.
struct Turn {
  const Step* step;
  std::optional<std::size_t> index;  // empty where the scenario had no step for it
};

class StepSource {
 public:
  // Throws std::invalid_argument where a step cannot be played.
  explicit StepSource(Scenario scenario);

  // The next step of that path, or of the scenario.
  [[nodiscard]] Turn take(std::string_view path);
  // The scenario's next step, if it is one that acts before a request is read.
  [[nodiscard]] const Step* take_unread();

 private:
  // How far a script has come.
  struct Cursor {
    std::size_t index = 0;
    std::uint64_t used = 0;
  };
  static Turn advance(const Script& script, Cursor& cursor);

  const Scenario scenario_;
  std::mutex mutex_;
  Cursor cursor_;
  std::map<std::string, Cursor, std::less<>> path_cursors_;
};

}  // namespace httpretry::faults
