#include "network.hpp"

#include "distribution.hpp"

#include "lib/flow/call_state.hpp"

#include <utility>

namespace httpretry::simulation {

// One exchange, as the client awaits it. Due when its time is up.
class PendingExchange final : public Event {
 public:
  PendingExchange(Network& network, Time limit, std::stop_token stop)
      : network_(network), clock_(network.world().clock), limit_(limit), stop_(std::move(stop)) {}
  PendingExchange(const PendingExchange&) = delete;
  PendingExchange& operator=(const PendingExchange&) = delete;
  ~PendingExchange() override {
    on_stop_.reset();
    if (job_ != nullptr) network_.leave(*job_);
    if (posted_) clock_.forget(awaiter_);
  }

  [[nodiscard]] bool await_ready() const { return stop_.stop_requested(); }
  [[gnu::noinline]] void await_suspend(std::coroutine_handle<> awaiter) {
    awaiter_ = awaiter;
    started_ = clock_.now();
    job_ = &network_.begin(*this);
    if (limit_ != kNever) clock_.set(*this, limit_);
    if (stop_.stop_possible()) on_stop_.emplace(stop_, Cancel{this});
  }
  Outcome await_resume() {
    on_stop_.reset();
    posted_ = false;
    Outcome outcome = end_ == End::Reply ? replied() : gave_up();
    auto& exchange = exchange_of(outcome);
    if (end_ != End::NotBegun) {
      exchange.wire_sends = 1;
      exchange.sent = outcome ? Sent::Answered : Sent::Maybe;
      exchange.timings.total = clock_.now() - started_;
      if (outcome) exchange.timings.first_byte = exchange.timings.total;
    }
    return outcome;
  }

  void came_back(const Reply& reply) {
    job_ = nullptr;
    reply_ = reply;
    clock_.remove(*this);
    end(End::Reply);
  }
  void dropped() { job_ = nullptr; }

 private:
  enum class End : std::uint8_t { NotBegun, Reply, TimeUp, Canceled };
  struct Cancel {
    PendingExchange* exchange;
    void operator()() const { exchange->cancel(); }
  };

  void due() override { end(End::TimeUp); }
  void end(End how) {
    if (end_ != End::NotBegun) return;  // canceled, and about to be resumed
    end_ = how;
    awaiter_.resume();
  }
  // Whoever requests the stop must not find itself in the coroutine that waits.
  void cancel() {
    if (end_ != End::NotBegun) return;
    end_ = End::Canceled;
    if (job_ != nullptr) network_.leave(*std::exchange(job_, nullptr));
    clock_.remove(*this);
    clock_.post(awaiter_);
    posted_ = true;
  }

  Outcome replied() const {
    if (reply_.status == 0) return Error(reply_.error, "the connection broke");
    Response response(reply_.status);
    if (reply_.retry_after > Duration::zero()) {
      using std::chrono::ceil;
      const auto whole = ceil<std::chrono::seconds>(reply_.retry_after);
      if (whole == reply_.retry_after) {
        response.headers.add("Retry-After", std::to_string(whole.count()));
      } else {
        const auto ms = ceil<std::chrono::milliseconds>(reply_.retry_after);
        response.headers.add("Retry-After-Ms", std::to_string(ms.count()));
      }
    }
    return response;
  }
  [[nodiscard]] Outcome gave_up() const {
    const bool late = end_ == End::TimeUp;
    Error error(late ? Errc::Timeout : Errc::Canceled, late ? "no response in time" : "canceled");
    error.curl_code = late ? 28 : 42;
    return error;
  }

  Network& network_;
  VirtualTime& clock_;
  Time limit_;
  Time started_{};
  std::stop_token stop_;
  std::optional<std::stop_callback<Cancel>> on_stop_;
  std::coroutine_handle<> awaiter_;
  Job* job_ = nullptr;
  Reply reply_;
  End end_ = End::NotBegun;
  bool posted_ = false;
};

Server::~Server() = default;

void Job::due() {
  switch (phase_) {
    case Phase::ToServer: return network_->arrived(*this);
    case Phase::AtServer: return network_->server_->done(*this);
    case Phase::Back: return network_->came_back(*this);
  }
}

Task<Outcome> Network::send(Request request, Call& call) {
  const auto limits = call.limits(request);
  const auto headers_by = later(world_.now(), limits.response_timeout);
  const auto limit = std::min({call.deadline(), limits.respond_by, headers_by});
  PendingExchange exchange(*this, limit, call.stop());
  Outcome outcome = co_await exchange;
  co_return outcome;
}

Duration Network::draw_delay() { return draw(delay_, world_.random); }

Job& Network::begin(PendingExchange& exchange) {
  if (counted_) world_.recorder.request_sent(world_.now());
  auto* job = free_ != nullptr ? std::exchange(free_, free_->next) : &jobs_.emplace_back();
  job->next = nullptr;
  job->network_ = this;
  job->exchange_ = &exchange;
  job->phase_ = Job::Phase::ToServer;
  world_.clock.set(*job, later(world_.now(), draw_delay()));
  return *job;
}

void Network::arrived(Job& job) {
  const auto* failing = counted_ ? world_.conditions.failing : nullptr;
  if (failing != nullptr && world_.random.uniform() < *failing->fail) {
    return reply(job, {failing->status, Errc::Receive, failing->retry_after});
  }
  server_->arrive(job);
}

void Network::work_until(Job& job, Time when) {
  job.phase_ = Job::Phase::AtServer;
  world_.clock.set(job, when);
}

void Network::reply(Job& job, Reply reply) {
  job.reply_ = reply;
  job.phase_ = Job::Phase::Back;
  world_.clock.set(job, later(world_.now(), draw_delay()));
}

void Network::drop(Job& job) {
  if (!job.abandoned()) job.exchange_->dropped();
  release(job);
}

void Network::came_back(Job& job) {
  auto* exchange = std::exchange(job.exchange_, nullptr);
  const auto reply = job.reply_;
  release(job);
  if (exchange == nullptr) {
    if (counted_) world_.recorder.response_wasted();
    return;
  }
  exchange->came_back(reply);
}

void Network::release(Job& job) {
  job.exchange_ = nullptr;
  job.next = std::exchange(free_, &job);
}

}  // namespace httpretry::simulation
