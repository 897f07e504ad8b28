#include "caller.hpp"

#include <httpretry/guard/guards.hpp>
#include <httpretry/guard/hedge.hpp>
#include <httpretry/middleware/retry.hpp>

#include <utility>

namespace httpretry::simulation {
namespace {

// The default chain of a Client, without `redirect` because models do not redirect.
std::vector<MiddlewarePtr> chain_of(const PolicySet& policies) {
  return {retry(policies), hedge(), guards()};
}

}  // namespace

CallCoroutine::promise_type::promise_type(Caller& caller, const Request& /*request*/, Job* /*job*/)
    : list(caller.calls_.calls),
      place(list.insert(list.begin(), std::coroutine_handle<promise_type>::from_promise(*this))) {}

Caller::Caller(Network& network, CallList& calls, const PolicySet& policies, std::uint64_t stream)
    : network_(network),
      calls_(calls),
      chain_(chain_of(policies)),
      waits_(network.world().stream(stream)),
      random_([this, mean = network.world().options.mean_waits] {
        return mean ? 0.5 : waits_.uniform();
      }) {
  in_common_.random = &random_;
  in_common_.observers = &observers_;
}

// Runs one call through the chain, and then `on_ended`.
CallCoroutine Caller::run(Request request, Job* job) {
  Call::State state;
  state.scheduler = &world().clock;
  state.transport = this;
  state.common = &in_common_;
  state.started = world().now();
  Call call(state, kNever, std::stop_token());
  const Next chain(chain_, 0);
  const Outcome outcome = co_await chain(std::move(request), call);
  on_ended(outcome, call, job);
}

Task<Outcome> Caller::send(Request request, Call& call) {
  on_send(call);
  return network_.send(std::move(request), call);
}

bool is_success(const Outcome& outcome, const Call& call) {
  const auto* last = call.history().last();
  return outcome && last != nullptr && last->cls == Class::Success;
}

// Replies like a gateway: with the status that the call got, or with 502 or 504 for an error.
void Layer::on_ended(const Outcome& outcome, const Call& call, Job* job) {
  Reply reply;
  if (!is_success(outcome, call)) {
    reply.status = outcome ? outcome->status : 502;
    if (!outcome && outcome.error().code == Errc::Timeout) reply.status = 504;
  }
  before_.reply(*job, reply);
}

}  // namespace httpretry::simulation
