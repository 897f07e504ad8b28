#include "run.hpp"

#include "arrivals.hpp"
#include "caller.hpp"
#include "servers.hpp"

#include <deque>
#include <memory>
#include <utility>

namespace httpretry::simulation {
namespace {

// A client of the run: it makes the calls of its load.
class RunClient final : private Caller {
 public:
  RunClient(Network& network, CallList& calls, const SimulatedPolicy& policy, Arrivals& arrivals,
            std::size_t number)
      : Caller(network, calls, policy.policies, 2 * number + 2),
        arrivals_(arrivals),
        number_(number) {
    const auto begin_call = [this] {
      world().recorder.call_began(world().now());
      call(world().options.request);
    };
    arrivals.add(begin_call, world().stream(2 * number + 1));
  }

 private:
  void sending(const Call& call) override { note_budget(call); }
  void ended(const Outcome& outcome, const Call& call, Job* /*job*/) override {
    using Ending = Recorder::Ending;
    note_budget(call);
    const auto& history = call.history();
    auto ending = is_success(outcome, call) ? Ending::Succeeded : Ending::Failed;
    if (history.stop_reason == Reason::BudgetExhausted) ending = Ending::BudgetSpent;
    const bool sent = !history.attempts.empty() && any_sent(history);
    const auto now = world().now();
    world().recorder.call_ended(ending, sent, now - call.started(), now);
    arrivals_.call_ended(number_);
  }
  static bool any_sent(const History& history) {
    return std::any_of(history.attempts.begin(), history.attempts.end(),
                       [](const Attempt& attempt) { return attempt.sent != Sent::Never; });
  }
  // What the last decision has left.
  void note_budget(const Call& call) {
    const auto* last = call.history().last();
    if (last == nullptr || !last->budget_left) return;
    const auto left = static_cast<double>(*last->budget_left);
    if (budget_ == left) return;
    world().recorder.budget_changed(budget_, left, world().now());
    budget_ = left;
  }

  Arrivals& arrivals_;
  const std::size_t number_;
  std::optional<double> budget_;
};

class Run {
 public:
  Run(const SimulationOptions& options, const SimulatedPolicy& policy)
      : world_(options), policy_(policy), arrivals_(make_arrivals(world_)) {
    add_triggers();
    connect();
    for (std::size_t i = 0; i < static_cast<std::size_t>(options.clients); ++i) {
      clients_.emplace_back(networks_.front(), calls_, policy, *arrivals_, i);
    }
  }

  Result<SimulationRun> run() {
    arrivals_->start();
    for (std::uint64_t steps = 0; world_.clock.step(); ++steps) {
      if (steps % kLookEvery != 0) continue;
      if (auto error = ended_early()) return *std::move(error);
    }
    auto result = world_.recorder.take(world_.options.duration);
    result.policy = policy_.name;
    return result;
  }

 private:
  static constexpr std::uint64_t kLookEvery = 4096;

  // The beginning or the end of a trigger.
  class Edge final : public Event {
   public:
    explicit Edge(Run& run) : run_(run) {}
    void due() override { run_.conditions_changed(); }

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

  void conditions_changed() {
    Conditions now;
    const auto time = world_.now().time_since_epoch();
    for (const auto& trigger : world_.options.model.triggers) {
      if (time < trigger.at || time >= trigger.end()) continue;
      now.capacity *= trigger.capacity.value_or(1);
      now.load *= trigger.load.value_or(1);
      const bool worst = now.failing == nullptr || trigger.fail > now.failing->fail;
      if (trigger.fail && worst) now.failing = &trigger;
    }
    world_.conditions = now;
    servers_.back()->conditions_changed();
  }

  // Clients, the layers in their order, the server: a network before each but the first.
  void connect() {
    const auto& model = world_.options.model;
    for (std::size_t i = 0; i <= model.layers.size(); ++i) {
      networks_.emplace_back(world_, model.network, i == model.layers.size());
    }
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
      const auto& policies = model.layers[i] ? *model.layers[i] : policy_.policies;
      servers_.push_back(std::make_unique<Layer>(networks_[i], networks_[i + 1], calls_, policies,
                                                 kLayerStreams + i));
      networks_[i].connect(*servers_.back());
    }
    servers_.push_back(make_server(networks_.back()));
    networks_.back().connect(*servers_.back());
  }

  std::optional<Error> ended_early() const {
    const auto& options = world_.options;
    if (options.canceled && options.canceled()) return Error(Errc::Canceled, "canceled");
    if (world_.recorder.sends() <= options.most_sends) return std::nullopt;
    return Error(Errc::TooLarge, policy_.name + ": more than " +
                                     std::to_string(options.most_sends) +
                                     " sends; simulate fewer clients, a lower rate or a shorter "
                                     "time");
  }

  static constexpr std::uint64_t kLayerStreams = std::uint64_t{1} << 40U;

  World world_;
  const SimulatedPolicy& policy_;
  std::deque<Edge> edges_;
  std::deque<Network> networks_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::unique_ptr<Arrivals> arrivals_;
  std::deque<RunClient> clients_;
  CallList calls_;  // the first to go: its calls use all of the above
};

}  // namespace

Result<SimulationRun> run(const SimulationOptions& options, const SimulatedPolicy& policy) {
  const auto one = std::make_unique<Run>(options, policy);
  return one->run();
}

}  // namespace httpretry::simulation
