#include "arrivals.hpp"

#include "distribution.hpp"

#include <algorithm>

namespace httpretry::simulation {
namespace {

// Returns an upper bound for the calls per second at any time.
double peak_rate(const SimulationOptions& options) {
  double highest = options.load.rate;
  if (!options.load.curve.empty()) {
    highest = 0;
    for (const auto& point : options.load.curve) highest = std::max(highest, point.rate);
  }
  for (const auto& trigger : options.model.triggers) {
    if (trigger.load) highest *= std::max(1.0, *trigger.load);
  }
  return highest;
}

// Draws times at the highest rate for each client, and skips a random part of them, so that the
// rest have the current rate (thinning).
class PoissonArrivals final : public Arrivals {
 public:
  explicit PoissonArrivals(World& world) : Arrivals(world), peak_rate_(peak_rate(world.options)) {}
  void start() override {
    if (peak_rate_ <= 0) return;
    mean_ = static_cast<double>(clients_.size()) / peak_rate_;
    for (auto& client : clients_) schedule_next(client);
  }

 private:
  void schedule_next(Client& client) {
    schedule(client, time_of(mean_ * client.random.exponential()));
  }
  void on_due(Client& client) override {
    const double rate = rate_now();
    if (rate >= peak_rate_ || client.random.uniform() * peak_rate_ < rate) client.begin_call();
    schedule_next(client);
  }

  double peak_rate_;
  double mean_ = 0;  // mean seconds between two times of one client
};

// Begins calls at equal intervals, one client after the other.
class EvenArrivals final : public Arrivals {
 public:
  using Arrivals::Arrivals;
  void start() override { schedule_next(); }

 private:
  // How often it checks whether a rate of zero has risen.
  static constexpr Duration kRecheckAfter = std::chrono::milliseconds(10);
  void on_due(Client& client) override {
    if (rate_now() > 0) {
      ++next_;
      client.begin_call();
    }
    schedule_next();
  }
  // Adds to the exact time of the last call, so that rounding errors do not add up.
  void schedule_next() {
    const double rate = rate_now();
    const auto now = world_.now().time_since_epoch();
    exact_ = rate <= 0 ? seconds(now + kRecheckAfter) : exact_ + 1 / rate;
    schedule(clients_[next_ % clients_.size()],
             std::max<Duration>(time_of(exact_) - now, Duration::zero()));
  }

  std::size_t next_ = 0;
  double exact_ = 0;
};

class ClosedArrivals final : public Arrivals {
 public:
  using Arrivals::Arrivals;
  // Spreads the first calls: each client has already spent a part of its think time.
  void start() override {
    for (auto& client : clients_) {
      const double whole = seconds(think(client));
      schedule(client, time_of(whole * client.random.uniform()));
    }
  }
  void on_call_ended(std::size_t client) override {
    schedule(clients_[client], think(clients_[client]));
  }

 private:
  Duration think(Client& client) const { return draw(world_.options.load.think, client.random); }
  void on_due(Client& client) override { client.begin_call(); }
};

class OneArrival final : public Arrivals {
 public:
  using Arrivals::Arrivals;
  void start() override {
    for (auto& client : clients_) client.begin_call();
  }

 private:
  void on_due(Client& /*client*/) override {}
};

}  // namespace

Arrivals::~Arrivals() = default;

double Arrivals::rate_now() const {
  return rate_at(world_.options.load, world_.now().time_since_epoch()) * world_.conditions.load;
}

// Returns the rate of the load at a time: a constant, or a curve that is linear between its points
// and constant before the first and after the last one.
double rate_at(const Load& load, Duration time) {
  const auto& curve = load.curve;
  if (curve.empty()) return load.rate;
  const auto next = std::find_if(curve.begin(), curve.end(),
                                 [time](const Load::Point& point) { return point.at > time; });
  if (next == curve.begin()) return curve.front().rate;
  const auto& previous = *std::prev(next);
  if (next == curve.end() || next->at == previous.at) return previous.rate;
  const double fraction = seconds(time - previous.at) / seconds(next->at - previous.at);
  return previous.rate + (next->rate - previous.rate) * fraction;
}

std::unique_ptr<Arrivals> make_arrivals(World& world) {
  const auto& load = world.options.load;
  if (load.kind == Load::Kind::Closed) return std::make_unique<ClosedArrivals>(world);
  if (load.kind == Load::Kind::Once) return std::make_unique<OneArrival>(world);
  if (load.arrivals == Load::Arrivals::Even) return std::make_unique<EvenArrivals>(world);
  return std::make_unique<PoissonArrivals>(world);
}

}  // namespace httpretry::simulation
