#include "run.hpp"

#include "arrivals.hpp"
#include "caller.hpp"
#include "servers.hpp"

#include <deque>
#include <memory>
#include <utility>

namespace httpretry::simulation {
namespace {

// RunClient: a client of the run. Arrivals begins its calls.
class RunClient final : private Caller {
 public:
  RunClient(Network& network, CallList& calls, const SimulatedPolicy& policy, Arrivals& arrivals,
            std::size_t number)
      : Caller(network, calls, policy.policies, 2 * number + 2),
        arrivals_(arrivals),
        number_(number) {
    const auto begin_call = [this] {
      world().recorder.on_call_began(world().now());
      call(world().options.request);
    };
    arrivals.add(begin_call, world().stream(2 * number + 1));
  }

 private:
  void on_send(const Call& call) override { note_budget(call); }
  // Records the end of a call, and lets Arrivals begin the next one.
  void on_ended(const Outcome& outcome, const Call& call, Job* /*job*/) override {
    using Ending = Recorder::Ending;
    note_budget(call);
    const auto& history = call.history();
    auto ending = is_success(outcome, call) ? Ending::Succeeded : Ending::Failed;
    if (history.stop_reason == Reason::BudgetExhausted) ending = Ending::BudgetSpent;
    const auto now = world().now();
    world().recorder.on_call_ended(ending, has_sends(history), now - call.started(), now);
    arrivals_.on_call_ended(number_);
  }
  static bool has_sends(const History& history) {
    return std::any_of(history.attempts.begin(), history.attempts.end(),
                       [](const Attempt& attempt) { return attempt.sent != Sent::Never; });
  }
  // Records the budget that is left after the last decision.
  void note_budget(const Call& call) {
    const auto* last = call.history().last();
    if (last == nullptr || !last->budget_left) return;
    const auto left = static_cast<double>(*last->budget_left);
    if (budget_ == left) return;
    world().recorder.on_budget_changed(budget_, left, world().now());
    budget_ = left;
  }

  Arrivals& arrivals_;
  const std::size_t number_;
  std::optional<double> budget_;
};

// Run: everything that one run consists of. It steps the clock until no event is left.
class Run {
 public:
  Run(const SimulationOptions& options, const SimulatedPolicy& policy)
      : world_(options), policy_(policy), arrivals_(make_arrivals(world_)) {
    add_triggers();
    build_chain();
    for (std::size_t i = 0; i < static_cast<std::size_t>(options.clients); ++i) {
      clients_.emplace_back(networks_.front(), calls_, policy, *arrivals_, i);
    }
  }

  // Returns the result, or an error if the run is canceled or has too many sends.
  Result<SimulationRun> run() {
    arrivals_->start();
    for (std::uint64_t steps = 0; world_.clock.step(); ++steps) {
      if (steps % kCheckEvery != 0) continue;
      if (auto error = early_end()) return *std::move(error);
    }
    auto result = world_.recorder.take(world_.options.duration);
    result.policy = policy_.name;
    return result;
  }

 private:
  // The number of steps between two checks for an early end.
  static constexpr std::uint64_t kCheckEvery = 4096;

  // The beginning or the end of a trigger.
  class Edge final : public Event {
   public:
    explicit Edge(Run& run) : run_(run) {}
    void due() override { run_.update_conditions(); }

   private:
    Run& run_;
  };

  void add_triggers() {
    for (const auto& trigger : world_.options.model.triggers) {
      for (const auto at : {trigger.at, trigger.end()}) {
        world_.clock.set(edges_.emplace_back(*this), Time(at));
      }
    }
  }

  // Combines the effects of the triggers that are active now. Their factors for the capacity are
  // multiplied. Of the triggers that make requests fail, only the worst counts.
  void update_conditions() {
    Conditions conditions;
    const auto time = world_.now().time_since_epoch();
    for (const auto& trigger : world_.options.model.triggers) {
      if (time < trigger.at || time >= trigger.end()) continue;
      conditions.capacity *= trigger.capacity.value_or(1);
      const auto* failing = conditions.failing;
      const bool is_worst = failing == nullptr || trigger.fail > failing->fail;
      if (trigger.fail && is_worst) conditions.failing = &trigger;
    }
    world_.conditions = conditions;
    servers_.back()->on_conditions_changed();
  }

  // Builds the chain that requests pass through: the clients, the layers, and the server. A layer
  // is a service that makes a call of its own to the next service for each request that it
  // receives. Each layer, and the server, has a network in front of it. The clients use the first
  // network.
  void build_chain() {
    const auto& model = world_.options.model;
    for (std::size_t i = 0; i <= model.layers.size(); ++i) {
      const bool leads_to_server = i == model.layers.size();
      networks_.emplace_back(world_, model.network, /*counts_sends=*/leads_to_server);
    }
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
      // A layer without a policy of its own retries like the clients.
      const auto& policies = model.layers[i] ? *model.layers[i] : policy_.policies;
      servers_.push_back(std::make_unique<Layer>(networks_[i], networks_[i + 1], calls_, policies,
                                                 /*stream=*/kLayerStreams + i));
      networks_[i].set_server(*servers_.back());
    }
    servers_.push_back(make_server(networks_.back()));
    networks_.back().set_server(*servers_.back());
  }

  // Returns whether far too many calls have begun without any time passing. With a think time of
  // zero, a client whose calls take no time, for example because a guard refuses them, would begin
  // calls forever.
  bool stands_still() {
    constexpr std::uint64_t kMostCallsOfClient = 1000;
    const auto calls = world_.recorder.calls();
    if (std::exchange(last_check_, world_.now()) != world_.now()) calls_before_ = calls;
    return calls - calls_before_ > kMostCallsOfClient * clients_.size();
  }

  // Returns the error with which the run ends early, or nullopt if it goes on: the caller has
  // canceled it, no time passes any more, or there are too many sends.
  std::optional<Error> early_end() {
    const auto& options = world_.options;
    if (options.canceled && options.canceled()) return Error(Errc::Canceled, "canceled");
    if (stands_still()) {  // many calls have begun without any time passing
      return Error(Errc::InvalidRequest,
                   policy_.name + ": at " + to_text(world_.now().time_since_epoch()) +
                       ", calls take no time, and \"think\" of the load adds none, so this would "
                       "never end; set a longer \"think\"");
    }
    if (world_.recorder.sends() <= options.most_sends) return std::nullopt;
    return Error(Errc::TooLarge, policy_.name + ": more than " +
                                     std::to_string(options.most_sends) +
                                     " sends; simulate fewer clients, a lower rate or a shorter "
                                     "time");
  }

  // The number of the first layer's random stream, above those of all clients.
  static constexpr std::uint64_t kLayerStreams = std::uint64_t{1} << 40U;

  World world_;
  const SimulatedPolicy& policy_;
  std::deque<Edge> edges_;
  std::deque<Network> networks_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::unique_ptr<Arrivals> arrivals_;
  std::deque<RunClient> clients_;
  Time last_check_{};               // the virtual time of the last check for an early end
  std::uint64_t calls_before_ = 0;  // the calls that had begun when that time was first seen
  CallList calls_;                  // declared last, because its calls use the other members
};

}  // namespace

Result<SimulationRun> run(const SimulationOptions& options, const SimulatedPolicy& policy) {
  return std::make_unique<Run>(options, policy)->run();
}

}  // namespace httpretry::simulation
