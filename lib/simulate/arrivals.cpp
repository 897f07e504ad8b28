#include "arrivals.hpp"

#include "distribution.hpp"

#include <deque>

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

class ArrivalsOf : public Arrivals {
 public:
  explicit ArrivalsOf(World& world) : world_(world) {}

 protected:
  [[nodiscard]] bool over() const {
    return world_.now().time_since_epoch() >= world_.options.duration;
  }
  [[nodiscard]] double rate_now() const {
    return rate_at(world_.options.load, world_.now().time_since_epoch()) * world_.conditions.load;
  }
  World& world_;
};

// Each client has a stream of its own: times at the highest rate, of which so many count that what
// is left is the rate of that time.
class PoissonArrivals final : public ArrivalsOf {
 public:
  explicit PoissonArrivals(World& world) : ArrivalsOf(world), most_(most_rate(world.options)) {}
  void add(Client& client, RandomStream random) override {
    clients_.emplace_back(*this, client, random);
  }
  void start() override {
    if (most_ <= 0) return;
    mean_ = static_cast<double>(clients_.size()) / most_;
    for (auto& each : clients_) each.set_next();
  }

 private:
  class Next final : public Event {
   public:
    Next(PoissonArrivals& arrivals, Client& client, RandomStream random)
        : arrivals_(arrivals), client_(client), random_(random) {}
    void set_next() {
      const auto wait = time_of(arrivals_.mean_ * random_.exponential());
      arrivals_.world_.clock.set(*this, later(arrivals_.world_.now(), wait));
    }
    void due() override {
      if (arrivals_.over()) return;
      const double rate = arrivals_.rate_now();
      const bool counts = rate >= arrivals_.most_ || random_.uniform() * arrivals_.most_ < rate;
      if (counts) client_.begin_call();
      set_next();
    }

   private:
    PoissonArrivals& arrivals_;
    Client& client_;
    RandomStream random_;
  };

  double most_;
  double mean_ = 0;  // seconds between two times of one client
  std::deque<Next> clients_;
};

// At equal distances, one client after the other.
class EvenArrivals final : public ArrivalsOf, private Event {
 public:
  using ArrivalsOf::ArrivalsOf;
  void add(Client& client, RandomStream /*random*/) override { clients_.push_back(&client); }
  void start() override { set_next(); }

 private:
  static constexpr Duration kLookAgain = std::chrono::milliseconds(10);
  void due() override {
    if (over()) return;
    if (rate_now() > 0) clients_[next_++ % clients_.size()]->begin_call();
    set_next();
  }
  // From the exact time of the last, so that rounding does not add up.
  void set_next() {
    const double rate = rate_now();
    if (rate <= 0) {
      exact_ = seconds(world_.now().time_since_epoch() + kLookAgain);
    } else {
      exact_ += 1 / rate;
    }
    world_.clock.set(*this, std::max(world_.now(), Time(time_of(exact_))));
  }

  std::vector<Client*> clients_;
  std::size_t next_ = 0;
  double exact_ = 0;
};

class ClosedArrivals final : public ArrivalsOf {
 public:
  using ArrivalsOf::ArrivalsOf;
  void add(Client& client, RandomStream random) override {
    clients_.emplace_back(*this, client, random);
  }
  // Not all at once: each has thought for a part of its time already.
  void start() override {
    for (auto& each : clients_) each.set_next(true);
  }
  void call_ended(std::size_t client) override { clients_[client].set_next(false); }

 private:
  class Next final : public Event {
   public:
    Next(ClosedArrivals& arrivals, Client& client, RandomStream random)
        : arrivals_(arrivals), client_(client), random_(random) {}
    void set_next(bool first) {
      auto wait = draw(arrivals_.world_.options.load.think, random_);
      if (first) wait = time_of(seconds(wait) * random_.uniform());
      arrivals_.world_.clock.set(*this, later(arrivals_.world_.now(), wait));
    }
    void due() override {
      if (!arrivals_.over()) client_.begin_call();
    }

   private:
    ClosedArrivals& arrivals_;
    Client& client_;
    RandomStream random_;
  };

  std::deque<Next> clients_;
};

class OneArrival final : public ArrivalsOf {
 public:
  using ArrivalsOf::ArrivalsOf;
  void add(Client& client, RandomStream /*random*/) override { clients_.push_back(&client); }
  void start() override {
    for (auto* client : clients_) client->begin_call();
  }

 private:
  std::vector<Client*> clients_;
};

}  // namespace

Client::~Client() = default;
Arrivals::~Arrivals() = default;

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
