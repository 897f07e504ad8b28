#include <lib/extras/testing/step_queue.hpp>

#include <lib/core/base/text.hpp>

#include <algorithm>
#include <stdexcept>

namespace httpretry::faults {
namespace {

void require(bool valid, const std::string& location, const char* problem) {
  if (!valid) throw std::invalid_argument(location + ": " + problem);
}

// Throws std::invalid_argument if a server cannot perform the step. `location` begins the message.
void check(const Step& step, const std::string& location) {
  require(step.status >= 200 && step.status <= 999, location, "the status must be 200 to 999");
  require(step.fault != Fault::Refused && step.fault != Fault::Resolve, location,
          "a server cannot play \"refused\" or \"resolve\": use them with `httpretry plan`");
  require(step.times > 0, location, "times must be at least 1");
  require(step.delay >= Duration(0), location, "the delay must not be negative");
  require(step.interval >= Duration(0), location, "the interval must not be negative");
  for (const auto& header : step.time_headers) {
    require(valid_header_name(header.name), location, "a time header has a name that is not valid");
  }
  for (const auto& interim : step.interims) {
    require(interim.status >= 100 && interim.status <= 199, location,
            "an interim status must be 100 to 199");
  }
}

void check(const Script& script, const std::string& name) {
  for (std::size_t i = 0; i < script.steps.size(); ++i) {
    check(script.steps[i], name + " step " + std::to_string(i));
  }
}

bool precedes_reading(Fault fault) {
  return fault == Fault::ResetEarly || fault == Fault::TlsStall || fault == Fault::TlsReset;
}

bool needs_http2(const Script& script) {
  return std::any_of(script.steps.begin(), script.steps.end(), [](const Step& step) {
    return step.fault >= Fault::Http2EmptyData && step.fault <= Fault::Http2NoEndStream;
  });
}

}  // namespace

Step compute_step(const Step& step, const SeenRequest& request) {
  try {
    auto computed = step.respond(request);
    check(computed, "the step that it returned");
    return computed;
  } catch (...) {
    const auto why = text_of(std::current_exception());
    return Step(500, "the function of the fault server's step failed: " + why + "\n");
  }
}

StepQueue::StepQueue(Scenario scenario) : scenario_(std::move(scenario)) {
  check(scenario_, "scenario,");
  for (const auto& [path, script] : scenario_.paths) check(script, "scenario of " + path + ",");
}

bool StepQueue::needs_http2() const {
  const auto& paths = scenario_.paths;
  return faults::needs_http2(scenario_) ||
         std::any_of(paths.begin(), paths.end(),
                     [](const auto& path) { return faults::needs_http2(path.second); });
}

TakenStep StepQueue::take(std::string_view path) {
  const std::lock_guard lock(mutex_);
  const auto own = scenario_.paths.find(path);
  const Script& script = own == scenario_.paths.end() ? scenario_ : own->second;
  return advance(script, cursors_[&script]);
}

const Step* StepQueue::take_unread() {
  const std::lock_guard lock(mutex_);
  auto& cursor = cursors_[&scenario_];
  const auto before = cursor;
  const auto* step = advance(scenario_, cursor).step;
  if (precedes_reading(step->fault)) return step;
  cursor = before;
  return nullptr;
}

// Returns the step that the script has for the next request, with its index in the script, and
// moves the cursor on. Each step is for `times` requests. After the last step, `script.then`
// decides what happens: the last step is repeated, the script restarts, or the connection closes.
// For a step that is not in the script, the index is empty.
TakenStep StepQueue::advance(const Script& script, Cursor& cursor) {
  static const Step plain;  // an empty response with status 200
  static const Step closing(Fault::Close);

  const auto& steps = script.steps;
  if (steps.empty()) return {script.then == Then::Close ? &closing : &plain, std::nullopt};
  // Moves on from a step that has been used as often as it says.
  if (cursor.index < steps.size() && cursor.used == steps[cursor.index].times) {
    ++cursor.index;
    cursor.used = 0;
  }
  if (cursor.index == steps.size()) {  // all steps are used up
    switch (script.then) {
      case Then::RepeatLast: return {&steps.back(), steps.size() - 1};
      case Then::Restart: cursor.index = 0; break;  // takes the first step, below
      case Then::Close: return {&closing, std::nullopt};
    }
  }
  ++cursor.used;
  return {&steps[cursor.index], cursor.index};
}

}  // namespace httpretry::faults
