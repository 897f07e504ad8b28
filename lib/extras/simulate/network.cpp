#include "network.hpp"

#include "distribution.hpp"

#include "lib/core/chain/detail/call_state.hpp"

#include <utility>

namespace httpretry::simulation {

// PendingExchange: the awaitable of one exchange. It ends with the reply, at the limit, or with a
// stop.
class PendingExchange final : public Wait {
 public:
  PendingExchange(Network& network, Time limit, std::stop_token stop)
      : Wait(network.world().clock, limit, std::move(stop)), network_(network) {}
  ~PendingExchange() override {
    if (job_ != nullptr) network_.abandon(*job_);
  }

  [[gnu::noinline]] void await_suspend(std::coroutine_handle<> awaiter) {
    started_ = clock_.now();
    job_ = &network_.begin(*this);
    Wait::await_suspend(awaiter);
  }
  // Returns the reply or the reason why there is none, with the facts that a transport records. If
  // the exchange was canceled before it began, nothing was sent.
  Outcome await_resume() {
    Wait::await_resume();
    Outcome outcome = end_ == End::Early ? reply_outcome() : failure();
    if (end_ == End::None) return outcome;
    auto& exchange = exchange_of(outcome);
    exchange.wire_sends = 1;
    exchange.sent = outcome ? Sent::Answered : Sent::Maybe;
    exchange.timings.total = clock_.now() - started_;
    if (outcome) exchange.timings.first_byte = exchange.timings.total;
    return outcome;
  }

  void on_reply(const Reply& reply) {
    job_ = nullptr;
    reply_ = reply;
    end(End::Early);
  }
  void on_dropped() { job_ = nullptr; }

 private:
  // Returns the server's reply as a client sees it: a response, or the error in the reply if it has
  // no status. If the server asks for a delay, the response has the header Retry-After, or
  // Retry-After-Ms if the delay is not a number of whole seconds.
  [[nodiscard]] Outcome reply_outcome() const {
    if (reply_.status == 0) return Error(reply_.error, "the connection broke");
    Response response(reply_.status);
    if (reply_.retry_after > Duration::zero()) {  // 0: the server asks for no delay
      using std::chrono::ceil;
      const auto in_seconds = ceil<std::chrono::seconds>(reply_.retry_after);
      if (in_seconds == reply_.retry_after) {
        response.headers.add("Retry-After", std::to_string(in_seconds.count()));
      } else {
        const auto ms = ceil<std::chrono::milliseconds>(reply_.retry_after);
        response.headers.add("Retry-After-Ms", std::to_string(ms.count()));
      }
    }
    return response;
  }
  [[nodiscard]] Outcome failure() const {
    const bool late = end_ == End::TimeUp;
    Error error(late ? Errc::Timeout : Errc::Canceled, late ? "no response in time" : "canceled");
    error.curl_code = late ? 28 : 42;  // CURLE_OPERATION_TIMEDOUT, CURLE_ABORTED_BY_CALLBACK
    return error;
  }

  Network& network_;
  Time started_{};
  Job* job_ = nullptr;
  Reply reply_;
};

Server::~Server() = default;

void Job::due() {
  switch (phase_) {
    case Phase::ToServer: return network_->on_arrived(*this);
    case Phase::AtServer: return network_->server_->on_work_done(*this);
    case Phase::Back: return network_->on_reply(*this);
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

Duration Network::one_way() { return draw(delay_, world_.random); }

Job& Network::begin(PendingExchange& exchange) {
  if (counts_sends_) world_.recorder.on_request_sent(world_.now());
  if (free_.empty()) free_.push_back(&jobs_.emplace_back());
  auto* job = free_.back();
  free_.pop_back();
  job->network_ = this;
  job->exchange_ = &exchange;
  job->phase_ = Job::Phase::ToServer;
  world_.clock.set(*job, later(world_.now(), one_way()));
  return *job;
}

void Network::on_arrived(Job& job) {
  const auto* failing = counts_sends_ ? world_.conditions.failing : nullptr;
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
  world_.clock.set(job, later(world_.now(), one_way()));
}

void Network::drop(Job& job) {
  if (!job.is_abandoned()) job.exchange_->on_dropped();
  release(job);
}

// Gives the reply to the exchange that waits for it. If its client has given up, the response is
// wasted.
void Network::on_reply(Job& job) {
  auto* exchange = std::exchange(job.exchange_, nullptr);
  const auto reply = job.reply_;
  release(job);
  if (exchange == nullptr) {
    if (counts_sends_) world_.recorder.on_response_wasted();
    return;
  }
  exchange->on_reply(reply);
}

void Network::release(Job& job) {
  job.exchange_ = nullptr;
  free_.push_back(&job);
}

}  // namespace httpretry::simulation
