#include "servers.hpp"

#include "distribution.hpp"

#include <cmath>
#include <utility>

namespace httpretry::simulation {
namespace {

// The base of all models, with the replies that they have in common.
class ModelServer : public Server {
 public:
  explicit ModelServer(Network& network) : network_(network) {}

 protected:
  [[nodiscard]] const ServerModel& model() const { return world().options.model; }
  [[nodiscard]] World& world() const { return network_.world(); }
  [[nodiscard]] double capacity() const { return world().conditions.capacity; }
  [[nodiscard]] RandomStream& random() const { return world().random; }

  void succeed(Job& job) { network_.reply(job, Reply()); }
  void reject(Job& job) {
    if (model().reject == ServerModel::Reject::Drop) return network_.drop(job);
    const int status = model().reject == ServerModel::Reject::TooMany ? 429 : 503;
    network_.reply(job, {status, Errc::Receive, model().retry_after});
  }

  Network& network_;
};

class FailServer final : public ModelServer {
 public:
  using ModelServer::ModelServer;
  void arrive(Job& job) override {
    const bool fails = random().uniform() < model().probability;
    network_.reply(job, {fails ? model().status : 200, Errc::Receive, Duration()});
  }
};

// Serves a fixed number of requests in each window, and rejects the others.
class CapacityServer final : public ModelServer {
 public:
  using ModelServer::ModelServer;
  void arrive(Job& job) override {
    const auto window = world().now().time_since_epoch() / model().window;
    if (std::exchange(window_, window) != window) served_ = 0;
    if (served_ >= allowed(window)) return reject(job);
    ++served_;
    succeed(job);
  }

 private:
  // Returns how many requests the window may serve. Fractions of a request carry over to later
  // windows.
  [[nodiscard]] std::int64_t allowed(std::int64_t window) const {
    const double per_window = model().rate * capacity() * seconds(model().window);
    constexpr double kRounding = 1e-9;  // keeps a product such as 2.9999 from losing a request
    const auto total_of = [per_window](std::int64_t windows) {
      const double total = per_window * static_cast<double>(windows);
      return static_cast<std::int64_t>(std::floor(total + kRounding));
    };
    return total_of(window + 1) - total_of(window);
  }

  std::int64_t window_ = -1;
  std::int64_t served_ = 0;
};

// Workers behind a queue. With less capacity, each request takes longer.
class QueueServer final : public ModelServer {
 public:
  using ModelServer::ModelServer;
  void arrive(Job& job) override {
    if (can_begin()) return begin(job);
    if (std::ssize(waiting_) >= model().queue) return reject(job);
    waiting_.push_back(&job);
  }
  void on_work_done(Job& job) override {
    --busy_;
    succeed(job);
    begin_next();
  }
  void on_conditions_changed() override { begin_next(); }

 private:
  [[nodiscard]] bool can_begin() const { return busy_ < model().servers && capacity() > 0; }
  void begin(Job& job) {
    ++busy_;
    const double service_time = seconds(draw(model().service, random())) / capacity();
    network_.work_until(job, later(world().now(), time_of(service_time)));
  }
  void begin_next() {
    while (can_begin() && !waiting_.empty()) {
      auto& job = *waiting_.front();
      waiting_.pop_front();
      job.is_abandoned() && !model().timeout_work ? network_.drop(job) : begin(job);
    }
  }

  int busy_ = 0;
  std::deque<Job*> waiting_;
};

// Serves each request more slowly the more requests are in flight.
class SlopeServer final : public ModelServer {
 public:
  using ModelServer::ModelServer;
  void arrive(Job& job) override {
    if (capacity() <= 0) return held_.push_back(&job);
    begin(job);
  }
  void on_work_done(Job& job) override {
    --in_flight_;
    succeed(job);
  }
  void on_conditions_changed() override {
    if (capacity() <= 0) return;
    for (auto* job : std::exchange(held_, {})) begin(*job);
  }

 private:
  void begin(Job& job) {
    const double others = std::max(0, in_flight_ - model().above);
    ++in_flight_;
    const double service_time = seconds(model().base) + seconds(model().per_request) * others;
    network_.work_until(job, later(world().now(), time_of(service_time / capacity())));
  }

  int in_flight_ = 0;
  std::vector<Job*> held_;
};

// A row with a version. A client reads the row and writes it back. The write fails if the version
// has changed.
class OccServer final : public ModelServer {
 public:
  using ModelServer::ModelServer;
  void arrive(Job& job) override {
    job.version = version_;
    const auto response = network_.one_way();
    const auto write = network_.one_way();
    network_.work_until(job, later(later(world().now(), response), write));
  }
  void on_work_done(Job& job) override {
    if (job.version != version_) return network_.reply(job, {500, Errc::Receive, Duration()});
    ++version_;
    succeed(job);
  }

 private:
  std::uint64_t version_ = 0;
};

// Replays the recorded attempts in their order, over and over. The version of a job is the index of
// its attempt.
class TraceServer final : public ModelServer {
 public:
  using ModelServer::ModelServer;
  void arrive(Job& job) override {
    const auto& attempt = model().recorded[next_];
    job.version = next_;
    next_ = (next_ + 1) % model().recorded.size();
    network_.work_until(job, later(world().now(), attempt.duration));
  }
  void on_work_done(Job& job) override {
    const auto& attempt = model().recorded[job.version];
    network_.reply(job, {attempt.status, attempt.error, attempt.retry_after});
  }

 private:
  std::size_t next_ = 0;
};

}  // namespace

std::unique_ptr<Server> make_server(Network& network) {
  using Kind = ServerModel::Kind;
  switch (network.world().options.model.kind) {
    case Kind::Fail: return std::make_unique<FailServer>(network);
    case Kind::Capacity: return std::make_unique<CapacityServer>(network);
    case Kind::Queue: return std::make_unique<QueueServer>(network);
    case Kind::Slope: return std::make_unique<SlopeServer>(network);
    case Kind::Occ: return std::make_unique<OccServer>(network);
    case Kind::Trace: return std::make_unique<TraceServer>(network);
  }
  return nullptr;
}

}  // namespace httpretry::simulation
