#include "lib/flow/delivery.hpp"

#include <httpretry/testing/testing.hpp>

#include <random>

namespace httpretry {
namespace {

bool before_sending(Errc code) {
  return code == Errc::InvalidRequest || code == Errc::Resolve || code == Errc::Connect ||
         code == Errc::Tls;
}

// Fills in what a real transport would have counted, if the script does not say.
void fill_exchange(Outcome& outcome) {
  auto& exchange = exchange_of(outcome);
  if (exchange.wire_sends != 0 || exchange.sent != Sent::Never) return;
  if (!outcome && before_sending(outcome.error().code)) return;
  exchange.sent = outcome ? Sent::Answered : Sent::Maybe;
  exchange.wire_sends = 1;
}

}  // namespace

ScriptedTransport& ScriptedTransport::say(Outcome outcome, Duration after) {
  fill_exchange(outcome);
  return say([outcome = std::move(outcome)](const Request&, int) { return outcome; }, after);
}

ScriptedTransport& ScriptedTransport::say(Respond respond, Duration after) {
  steps_.push_back({std::move(respond), after});
  return *this;
}

Task<Outcome> ScriptedTransport::send(Request request, Call& call) {
  if (const auto& url = request.parsed_url(); !url) co_return url.error();
  auto& clock = call.scheduler();
  seen_.emplace_back(request, clock.now());
  const auto number = static_cast<int>(seen_.size());
  if (steps_.empty())
    co_return Error(Errc::Internal,
                    "ScriptedTransport has no response to give: call say() before sending");

  const auto& step = steps_[std::min(seen_.size(), steps_.size()) - 1];
  const auto ready = later(clock.now(), step.after);
  const auto& options = request.options();
  const auto limit =
      std::min({call.deadline(), options.respond_by, later(clock.now(), options.response_timeout)});
  const auto respond = step.respond;
  const bool waited = co_await clock.sleep_until(std::min(ready, limit), call.stop());
  if (!waited || ready > limit) {
    Error error(waited ? Errc::Timeout : Errc::Canceled,
                waited ? "no response in time" : "canceled");
    error.curl_code = waited ? 28 : 42;  // as libcurl reports them
    error.exchange.sent = Sent::Maybe;
    error.exchange.wire_sends = 1;
    co_return error;
  }
  Outcome outcome = respond(request, number);
  fill_exchange(outcome);
  if (outcome && outcome->url.empty()) outcome->url = request.parsed_url()->to_string();
  if (!request.options().sink) co_return outcome;
  Outcome delivered = co_await Delivery::deliver(request, call, std::move(outcome));
  co_return delivered;
}

std::function<double()> fixed_random(double value) {
  return [value] { return value; };
}

std::function<double()> seeded_random(std::uint64_t seed) {
  return [generator = std::mt19937_64(seed)]() mutable {
    return static_cast<double>(generator() >> 11U) * 0x1.0p-53;
  };
}

}  // namespace httpretry
