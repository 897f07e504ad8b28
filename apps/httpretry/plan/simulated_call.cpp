#include "plan/simulated_call.hpp"

#include "cli/policy_options.hpp"
#include "cli/text.hpp"

#include "lib/core/base/text.hpp"

#include <httpretry/client/client.hpp>
#include <httpretry/guard/guards.hpp>
#include <httpretry/guard/hedge.hpp>
#include <httpretry/guard/local_state.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>

#include <atomic>
#include <memory>

namespace httpretry::cli {
namespace {

using namespace std::chrono_literals;

// The duration of a timeout if the policy has no limit, as `plan --help` says.
constexpr Duration kDefaultTimeout = 30s;

Error failure(Errc code, int curl_code, const char* message) {
  Error error(code, message);
  error.curl_code = curl_code;
  return error;
}

// Returns an error after the headers of the response arrived.
Error cut_off(const Step& step, Errc code, int curl_code, const char* message) {
  auto error = failure(code, curl_code, message);
  error.status = step.status;
  error.headers = step.headers;
  error.partial = code == Errc::Receive;
  error.exchange.sent = Sent::Answered;
  error.exchange.wire_sends = 1;
  return error;
}

Error stale() {
  auto error = failure(Errc::Receive, 56, "the idle connection was closed when it was reused");
  error.exchange.sent = Sent::Maybe;
  error.exchange.wire_sends = 1;
  error.exchange.reused_connection = true;
  error.exchange.stale_connection = true;
  return error;
}

Outcome response(const Step& step) {
  Response result(step.status, step.body);
  result.headers = step.headers;
  return result;
}

// Returns the outcome that a client would get for a step of a scenario: a response, or an error.
// The numbers are curl's error codes. failure() returns an error without a response, and cut_off()
// one after the headers of a response.
Outcome outcome_of(const Step& step) {
  switch (step.fault) {
    // Faults that a client notices only in the speed or the content of the body are responses here.
    // Stale also responds, and then breaks the connection. add_step adds the error of the next
    // attempt, which reuses the connection.
    case Fault::None:
    case Fault::Drip:
    case Fault::Stale:
    case Fault::GzipCutShort:
    case Fault::GzipBomb: return response(step);
    case Fault::Refused: return failure(Errc::Connect, 7, "the connection was refused");
    case Fault::Resolve: return failure(Errc::Resolve, 6, "the name has no address");
    case Fault::TlsReset: return failure(Errc::Tls, 35, "the TLS handshake was reset");
    case Fault::TlsStall: return failure(Errc::Timeout, 28, "the TLS handshake took too long");
    case Fault::Hang: return failure(Errc::Timeout, 28, "no response in time");
    case Fault::Reset:
    case Fault::ResetEarly: return failure(Errc::Receive, 56, "the connection was reset");
    case Fault::Close: return failure(Errc::Receive, 52, "the connection ended without a response");
    case Fault::Garbage: return failure(Errc::Protocol, 1, "the response is not HTTP");
    case Fault::EndlessInterim:
    case Fault::HugeHeaders: return failure(Errc::TooLarge, 63, "the headers are too large");
    case Fault::ResetDuring:
      return cut_off(step, Errc::Receive, 56, "the connection was reset during the response");
    case Fault::Truncate:
      return cut_off(step, Errc::Receive, 18, "the connection ended during the response");
    case Fault::BadChunk:
      return cut_off(step, Errc::Receive, 56, "the chunks of the response are malformed");
    case Fault::Http2NoEndStream:
      return cut_off(step, Errc::Receive, 18,
                     "the HTTP/2 connection broke before the end of the response");
    case Fault::Http2EmptyData:
      return cut_off(step, Errc::Receive, 56, "the server sent endless HTTP/2 frames");
    case Fault::Http2GoawayFlood:
    case Fault::Http2ResetFlood:
      return failure(Errc::Receive, 56, "the server sent endless HTTP/2 frames");
    case Fault::Huge: return cut_off(step, Errc::TooLarge, 63, "the response is too large");
  }
  return failure(Errc::Internal, 0, "unknown fault");
}

// Returns how long an attempt with this step of a scenario takes in the simulation: the delay of
// the step, or more for a fault that takes time. A timeout lasts as long as the policy allows, or
// kDefaultTimeout if it sets no limit. A slow response (Drip) sends a byte after each `interval`.
// The transport ends any attempt at attempt_timeout or response_timeout, whichever comes first.
Duration time_of(const Step& step, const RetryPolicy& policy) {
  switch (step.fault) {
    case Fault::Hang: {
      const auto limit = std::min(policy.attempt_timeout, policy.response_timeout);
      return limit == kForever ? kDefaultTimeout : limit;
    }
    case Fault::TlsStall:
      return policy.connect_timeout == kForever ? kDefaultTimeout : policy.connect_timeout;
    case Fault::Drip: {
      const auto bytes = static_cast<std::int64_t>(step.body.size());
      // Divides, because the product could overflow.
      const bool fits = bytes == 0 || step.interval < (kForever - step.delay) / bytes;
      return fits ? Duration(step.delay + step.interval * bytes) : kForever;
    }
    default: return step.delay;
  }
}

void add_step(ScriptedTransport& network, const Step& step, const RetryPolicy& policy) {
  network.say(outcome_of(step), step.time_headers, time_of(step, policy));
  if (step.fault == Fault::Stale) network.say(stale());
}

// Returns a transport that plays the script, with as many outcomes as a call can use. Afterward it
// repeats the last outcome, as Then::RepeatLast demands.
std::unique_ptr<ScriptedTransport> scripted(const Script& script, const RetryPolicy& policy) {
  auto network = std::make_unique<ScriptedTransport>();
  auto added = 0;
  do {
    for (const auto& step : script.steps) {
      for (std::uint64_t i = 0; i < step.times && added < kMostAttempts; ++i, ++added) {
        add_step(*network, step, policy);
      }
    }
  } while (script.then == Then::Restart && added < kMostAttempts);
  if (script.then == Then::Close) add_step(*network, Step(Fault::Close), policy);
  return network;
}

// Replay is a transport that plays the script passed to `play`. A new one can replace it.
class Replay final : public Transport {
 public:
  void play(std::unique_ptr<ScriptedTransport> network) { network_ = std::move(network); }
  Task<Outcome> send(Request request, Call& call) override {
    return network_->send(std::move(request), call);
  }

 private:
  std::unique_ptr<ScriptedTransport> network_;
};

// Watch records the state of the hedge budget. It also stops a call that would never end: one
// without waits, for which no time passes, or one with a wait longer than the clock can represent.
class Watch final : public Observer {
 public:
  Watch(std::shared_ptr<SharedState> state, const RetryPolicy& policy, int calls_at_once)
      : state_(std::move(state)), policy_(policy), most_(kMostAttempts * calls_at_once) {}

  // Counts the attempts from 0 again, for another call.
  void start_over() {
    stop = std::stop_source();
    attempts_ = 0;
    endless = reached = false;
  }
  void attempt_ended(const Call& call, const Request& /*request*/,
                     const Attempt& attempt) noexcept override {
    ++attempts_;
    if (!attempt.retried) return;
    endless = later(call.scheduler().now(), attempt.wait.value_or(Duration::zero())) == kNever;
    reached = attempts_ >= most_;
    if (endless || reached) stop.request_stop();
  }

  void hedge_started(const Call& call, const Request& /*request*/, int /*number*/,
                     Duration /*after*/) noexcept override {
    record_budget(call);
  }
  void hedge_refused(const Call& call, HedgeRefused why) noexcept override {
    if (why == HedgeRefused::HedgeBudget) record_budget(call);
  }

  // Returns where and why the call was stopped, or "" if it was not.
  [[nodiscard]] std::string why() const {
    const auto attempts = std::to_string(attempts_);
    if (endless) {
      return "at attempt " + attempts +
             ": its wait is longer than the clock can represent (292 years)";
    }
    return reached ? "after " + attempts + " attempts" : "";
  }

  std::stop_source stop;
  bool endless = false;
  bool reached = false;
  std::optional<HedgeBudgetUse> hedge_budget;

 private:
  void record_budget(const Call& call) {
    const auto& hedge = policy_.hedge;
    if (!hedge || !hedge->budget) return;
    for (const auto& state : state_->states("hedge ", call.scheduler().now())) {
      const auto most = *hedge->budget * static_cast<double>(state.calls);
      hedge_budget = {state.calls, state.hedges, static_cast<std::int64_t>(most + 1e-9)};
    }
  }

  const std::shared_ptr<SharedState> state_;
  const RetryPolicy& policy_;
  const int most_;
  int attempts_ = 0;
};

// Begins the calls at fixed times, even if earlier ones have not ended, and runs the virtual clock
// until all have ended. The calls share one script of outcomes. `watch` stops calls that would
// never end.
SimulatedCalls send_in_time(const Simulation& simulation, Client& client, ManualScheduler& clock,
                            Watch& watch) {
  SimulatedCalls simulated;
  std::vector<std::optional<Outcome>> outcomes(static_cast<std::size_t>(simulation.calls));
  std::size_t running = outcomes.size();
  std::atomic<bool> done = false;
  const auto began = clock.now();
  const auto interval = *simulation.begin_every;  // between two calls; 0 with --parallel
  for (auto& outcome : outcomes) {
    const bool first = simulated.begun.empty();
    // While the clock advances to the start of this call, earlier calls continue.
    if (!first && interval > 0s) clock.advance(interval);
    simulated.begun.push_back(clock.now() - began);
    CallOptions call;
    call.stop = watch.stop.get_token();
    client.send_then(
        simulation.request,
        // `outcome` is an element of `outcomes`, so it outlives the call.
        [&](Outcome result) {
          outcome = std::move(result);
          done = --running == 0;  // the last call ends run_until() below
        },
        call);
  }
  clock.run_until(done);
  for (auto& outcome : outcomes) simulated.outcomes.push_back(*std::move(outcome));
  simulated.stopped = watch.why();
  simulated.hedge_budget = watch.hedge_budget;
  return simulated;
}

}  // namespace

Script script_for(const Scenario& scenario, const Request& request) {
  const auto& url = request.parsed_url();
  const auto found = url ? scenario.paths.find(std::string(url->path())) : scenario.paths.end();
  return found == scenario.paths.end() ? static_cast<const Script&>(scenario) : found->second;
}

Flag header_flag(std::vector<std::string>& headers) {
  return {'H', "header", "LINE", "the request has this header, such as \"X-Job: nightly\"",
          append(headers)};
}

Request plain_request(const std::string& method, const std::string& url,
                      const std::vector<std::string>& headers) {
  try {
    Request request(method, with_scheme(url));
    if (const auto& parsed = request.parsed_url(); !parsed) {
      throw UsageError("\"" + without_secrets(url) + "\" is " + parsed.error().message);
    }
    for (std::string_view value : headers) {
      if (value.find(':') == value.npos) throw UsageError("option -H: expected \"Name: value\"");
      const auto name = take_until(value, ':');
      request.add_header(std::string(name), std::string(trimmed(value)));
    }
    return request;
  } catch (const std::invalid_argument& error) {
    throw UsageError(error.what());
  }
}

// Runs the calls of a simulation through one real client, whose clock and transport are virtual,
// and returns their outcomes. Either all calls share one script of outcomes and begin at fixed
// times (--parallel, --rate), or each call begins when the previous one has ended and starts the
// script again. If a call had to be stopped because it would never end, `stopped` says where and
// why.
SimulatedCalls simulate(const Simulation& simulation) {
  const auto& policy = *policy_for(simulation.policies, simulation.request).policy;
  auto network = std::make_shared<Replay>();  // a transport that plays a script
  const auto state = local_state();           // of the client; Watch reads the hedge budget from it
  ClientOptions options;
  options.middlewares = {retry(simulation.policies), hedge(), guards()};
  const int calls_at_once = simulation.shares_script() ? simulation.calls : 1;
  // Stops calls that would never end. It counts the attempts of all calls that run at once, and
  // allows kMostAttempts for each of them.
  const auto watch = std::make_shared<Watch>(state, policy, calls_at_once);
  options.shared_state = state;
  options.observers = {watch};
  const auto clock = std::make_shared<ManualScheduler>(simulation.start);
  options.scheduler = clock;
  options.transport = network;
  options.random = simulation.random;
  Client client(options);

  if (simulation.shares_script()) {
    network->play(scripted(simulation.script, policy));
    return send_in_time(simulation, client, *clock, *watch);
  }
  SimulatedCalls simulated;
  for (int i = 0; i < simulation.calls; ++i) {
    CallOptions call;
    network->play(scripted(simulation.script, policy));
    watch->start_over();  // each call has its own limit on attempts
    call.stop = watch->stop.get_token();
    simulated.outcomes.push_back(client.send(simulation.request, call));
    if (auto why = watch->why(); !why.empty()) simulated.stopped = std::move(why);
  }
  simulated.hedge_budget = watch->hedge_budget;
  return simulated;
}

Extremes simulate_extremes(Simulation simulation, std::string& stopped) {
  const auto call_with = [&](double draw) {
    simulation.random = fixed_random(draw);
    auto simulated = simulate(simulation);
    if (!simulated.stopped.empty()) stopped = simulated.stopped;
    return std::move(simulated.outcomes.front());
  };
  return {.shortest = call_with(0), .mean = call_with(0.5), .longest = call_with(1)};
}

}  // namespace httpretry::cli
