#include <httpretry/simulate/simulate.hpp>

#include "recorder.hpp"
#include "run.hpp"

namespace httpretry {
namespace {

// Returns a message about what is wrong with the options, for example "there must be at least one
// client", or an empty string if they can be simulated.
std::string problem_of(const SimulationOptions& options) {
  const auto& model = options.model;
  if (options.policies.empty()) return "there is no policy to simulate";
  if (options.clients < 1) return "there must be at least one client";
  if (options.duration <= Duration::zero()) return "the duration must be greater than zero";
  if (!options.request.parsed_url()) return options.request.parsed_url().error().message;
  if (model.kind == ServerModel::Kind::Trace && model.recorded.empty()) {
    return "the trace has no attempts";
  }
  using Kind = ServerModel::Kind;
  constexpr Duration kTimeToRecover = std::chrono::seconds(10);  // a verdict needs this much time
  const bool has_capacity =
      model.kind == Kind::Capacity || model.kind == Kind::Queue || model.kind == Kind::Slope;
  // A trigger is a disturbance for a time, such as a loss of capacity.
  for (const auto& trigger : model.triggers) {
    if (trigger.capacity && !has_capacity) {
      return "a trigger changes the capacity, but the model \"" +
             std::string(to_string(model.kind)) + "\" has none: let it change \"fail\" instead";
    }
    if (trigger.load && options.load.kind != Load::Kind::Open) {
      return "a trigger that changes the load needs an open load";
    }
    // The duration limits when calls begin. In a load of kind Once, they all begin at the start, so
    // this check does not apply.
    if (options.load.kind == Load::Kind::Once) continue;
    if (trigger.end() > options.duration - kTimeToRecover) {
      return "a trigger ends at " + to_text(trigger.end()) + ", and the simulation at " +
             to_text(options.duration) + ": it must continue for at least " +
             to_text(kTimeToRecover) + " after the trigger, to show the recovery";
    }
  }
  return "";
}

}  // namespace

// Simulates clients with each of the policies against the model of a server. The result has a run
// for each policy: its counts, the verdict on whether the server recovered, and the bounds on the
// load that the policy can cause. Returns an error if the options are inconsistent, or if a run
// ends early.
Result<SimulationReport> simulate(const SimulationOptions& original) {
  auto options = original;
  // In the model Occ, optimistic concurrency control, all clients try to update one row at once. An
  // update fails if that of another client came first. This contention is what the model is for, so
  // each client makes one call at the beginning, whatever load the options name.
  if (options.model.kind == ServerModel::Kind::Occ) options.load.kind = Load::Kind::Once;
  auto problem = problem_of(options);
  if (!problem.empty()) return Error(Errc::InvalidRequest, std::move(problem));
  SimulationReport report;
  report.seed = options.seed;
  report.model = options.model;
  report.load = options.load;
  report.clients = options.clients;
  report.duration = options.duration;
  for (const auto& candidate : options.policies) {
    auto run = simulation::run(options, candidate);
    if (!run) return std::move(run).error();  // too many sends, or canceled by the caller
    simulation::set_verdict(*run, options);
    run->bounds = bounds_of(candidate.policies, options.request);
    report.runs.push_back(*std::move(run));
  }
  return report;
}

}  // namespace httpretry
