#include "arrivals.hpp"

#include "distribution.hpp"

#include <algorithm>
#include <cmath>

namespace httpretry::simulation {
namespace {

using namespace std::chrono_literals;

// Returns an upper bound for the calls per second at any time.
double peak_rate(const SimulationOptions& options) {
  const auto& curve = options.load.curve;
  double highest = curve.empty() ? options.load.rate : 0;
  for (const auto& point : curve) highest = std::max(highest, point.rate);
  for (const auto& trigger : options.model.triggers) {
    if (trigger.load) highest *= std::max(1.0, *trigger.load);
  }
  return highest;
}

// Returns the rate of a load without triggers at a time: a constant, or a curve that is linear
// between its points and constant before the first and after the last one.
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

// Returns the calls per second of all clients together, with the effect of triggers.
double rate_at(const SimulationOptions& options, Duration time) {
  double rate = rate_at(options.load, time);
  for (const auto& trigger : options.model.triggers) {
    if (time >= trigger.at && time < trigger.end()) rate *= trigger.load.value_or(1);
  }
  return rate;
}

// A part of the run in which the rate is linear. Times are in seconds.
struct Piece {
  double begin = 0;
  double end = 0;
  double rate = 0;  // at its beginning
  double slope = 0;
};

// Divides the run into pieces, and returns them in their order. A piece ends at a point of the
// load's curve, where a trigger that changes the load begins or ends, or at the end of the run.
std::vector<Piece> pieces_of(const SimulationOptions& options) {
  std::vector<Duration> ends{options.duration};
  for (const auto& point : options.load.curve) ends.push_back(point.at);
  for (const auto& trigger : options.model.triggers) {
    if (trigger.load) ends.insert(ends.end(), {trigger.at, trigger.end()});
  }
  std::ranges::sort(ends);
  std::vector<Piece> pieces;
  Duration begin{};
  for (const auto end : ends) {
    if (end <= begin || end > options.duration) continue;  // empty, or after the run
    // The rate may jump at `end`, so the slope is that up to the last moment before it.
    const Duration last = end - 1ns;
    const double rate = rate_at(options, begin);
    const double slope =
        last > begin ? (rate_at(options, last) - rate) / seconds(last - begin) : 0.0;
    pieces.push_back({seconds(begin), seconds(end), rate, slope});
    begin = end;
  }
  return pieces;
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

// Begins calls at equal intervals, one client after the other. If the rate changes, the integral of
// the rate over each interval is 1.
class EvenArrivals final : public Arrivals {
 public:
  explicit EvenArrivals(World& world) : Arrivals(world), pieces_(pieces_of(world.options)) {}
  void start() override { schedule_next(); }

 private:
  void on_due(Client& client) override {
    if (rate_now() > 0) {  // it may have become zero at this moment
      ++next_call_;
      client.begin_call();
    }
    schedule_next();
  }
  // Schedules the next call for the time at which the integral of the rate since the previous call
  // is 1. Adds to the exact time of the previous call, so that rounding errors do not add up.
  // Schedules nothing if the run ends before that time.
  void schedule_next() {
    double missing = 1;  // the part of the integral that `exact_` has not reached yet
    for (; piece_ < pieces_.size(); ++piece_) {
      const auto& piece = pieces_[piece_];
      const double left = piece.end - exact_;
      const double rate = std::max(0.0, piece.rate + piece.slope * (exact_ - piece.begin));
      const double integral = (rate + piece.slope * left / 2) * left;
      if (integral >= missing) {
        // Solves rate * wait + slope * wait² / 2 = missing, by a formula that allows slope 0.
        const double root = std::sqrt(std::max(0.0, rate * rate + 2 * piece.slope * missing));
        exact_ += 2 * missing / (rate + root);
        const auto wait = time_of(exact_) - world_.now().time_since_epoch();
        return schedule(clients_[next_call_ % clients_.size()],
                        std::max<Duration>(wait, Duration()));
      }
      missing -= integral;
      exact_ = piece.end;
    }
  }

  const std::vector<Piece> pieces_;
  std::size_t piece_ = 0;      // the one that has `exact_`
  std::size_t next_call_ = 0;  // its number; the calls go to the clients in order
  double exact_ = 0;           // the time of the last scheduled call, in seconds
};

class ClosedArrivals final : public Arrivals {
 public:
  using Arrivals::Arrivals;
  // Spreads the first calls: each client has already spent a part of its think time.
  void start() override {
    for (auto& client : clients_) {
      const double think_time = seconds(think(client));
      schedule(client, time_of(think_time * client.random.uniform()));
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
  return rate_at(world_.options, world_.now().time_since_epoch());
}

std::unique_ptr<Arrivals> make_arrivals(World& world) {
  const auto& load = world.options.load;
  if (load.kind == Load::Kind::Closed) return std::make_unique<ClosedArrivals>(world);
  if (load.kind == Load::Kind::Once) return std::make_unique<OneArrival>(world);
  if (load.arrivals == Load::Arrivals::Even) return std::make_unique<EvenArrivals>(world);
  return std::make_unique<PoissonArrivals>(world);
}

}  // namespace httpretry::simulation
