#include "arrivals.hpp"

#include "distribution.hpp"

#include <algorithm>

namespace httpretry::simulation {
namespace {

double seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

// The most calls per second that there may be at any time.
double most_rate(const SimulationOptions& options) {
  double most = options.load.rate;
  if (!options.load.curve.empty()) {
    most = 0;
    for (const auto& point : options.load.curve) most = std::max(most, point.rate);
  }
  for (const auto& trigger : options.model.triggers) {
    if (trigger.load) most *= std::max(1.0, *trigger.load);
  }
  return most;
}

// Each client has a stream of its own: times at the highest rate, of which so many count that what
// is left is the rate of that time.
class PoissonArrivals final : public Arrivals {
 public:
  explicit PoissonArrivals(World& world) : Arrivals(world), most_(most_rate(world.options)) {}
  void start() override {
    if (most_ <= 0) return;
    mean_ = static_cast<double>(clients_.size()) / most_;
    for (auto& client : clients_) set_next(client);
  }

 private:
  void set_next(Client& client) { set(client, time_of(mean_ * client.random.exponential())); }
  void due(Client& client) override {
    const double rate = rate_now();
    if (rate >= most_ || client.random.uniform() * most_ < rate) client.begin_call();
    set_next(client);
  }

  double most_;
  double mean_ = 0;  // seconds between two times of one client
};

// At equal distances, one client after the other.
class EvenArrivals final : public Arrivals {
 public:
  using Arrivals::Arrivals;
  void start() override { set_next(); }

 private:
  static constexpr Duration kLookAgain = std::chrono::milliseconds(10);
  void due(Client& client) override {
    if (rate_now() > 0) {
      ++next_;
      client.begin_call();
    }
    set_next();
  }
  // From the exact time of the last, so that rounding does not add up.
  void set_next() {
    const double rate = rate_now();
    const auto now = world_.now().time_since_epoch();
    exact_ = rate <= 0 ? seconds(now + kLookAgain) : exact_ + 1 / rate;
    set(clients_[next_ % clients_.size()], std::max(time_of(exact_) - now, Duration::zero()));
  }

  std::size_t next_ = 0;
  double exact_ = 0;
};

class ClosedArrivals final : public Arrivals {
 public:
  using Arrivals::Arrivals;
  // Not all at once: each has thought for a part of its time already.
  void start() override {
    for (auto& client : clients_) {
      const double whole = seconds(think(client));
      set(client, time_of(whole * client.random.uniform()));
    }
  }
  void call_ended(std::size_t client) override { set(clients_[client], think(clients_[client])); }

 private:
  Duration think(Client& client) const { return draw(world_.options.load.think, client.random); }
  void due(Client& client) override { client.begin_call(); }
};

class OneArrival final : public Arrivals {
 public:
  using Arrivals::Arrivals;
  void start() override {
    for (auto& client : clients_) client.begin_call();
  }

 private:
  void due(Client& /*client*/) override {}
};

}  // namespace

Arrivals::~Arrivals() = default;

double Arrivals::rate_now() const {
  return rate_at(world_.options.load, world_.now().time_since_epoch()) * world_.conditions.load;
}

double rate_at(const Load& load, Duration time) {
  const auto& curve = load.curve;
  if (curve.empty()) return load.rate;
  const auto after = std::find_if(curve.begin(), curve.end(),
                                  [time](const Load::Point& point) { return point.at > time; });
  if (after == curve.begin()) return curve.front().rate;
  const auto& before = *std::prev(after);
  if (after == curve.end() || after->at == before.at) return before.rate;
  const double part = seconds(time - before.at) / seconds(after->at - before.at);
  return before.rate + (after->rate - before.rate) * part;
}

std::unique_ptr<Arrivals> make_arrivals(World& world) {
  const auto& load = world.options.load;
  if (load.kind == Load::Kind::Closed) return std::make_unique<ClosedArrivals>(world);
  if (load.kind == Load::Kind::Once) return std::make_unique<OneArrival>(world);
  if (load.arrivals == Load::Arrivals::Even) return std::make_unique<EvenArrivals>(world);
  return std::make_unique<PoissonArrivals>(world);
}

}  // namespace httpretry::simulation
