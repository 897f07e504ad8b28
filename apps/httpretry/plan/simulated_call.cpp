#include "plan/played.hpp"

#include "cli/args.hpp"
#include "cli/words.hpp"

#include <httpretry/client/client.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>
#include <httpretry/testing/testing.hpp>

#include <memory>
#include <string>

namespace httpretry::cli {
namespace {

using namespace std::chrono_literals;

// What a client without an attempt timeout is taken to bear.
constexpr Duration kPatience = 30s;

Error failure(Errc code, int curl_code, const char* message) {
  Error error(code, message);
  error.curl_code = curl_code;
  return error;
}

// The head arrived, and then it broke off.
Error broken_off(const Step& step, Errc code, int curl_code, const char* message) {
  auto error = failure(code, curl_code, message);
  error.status = step.status;
  error.headers = step.headers;
  error.partial = code == Errc::Receive;
  error.exchange.sent = Sent::Answered;
  error.exchange.wire_sends = 1;
  return error;
}

Error stale() {
  auto error = failure(Errc::Receive, 56, "the idle connection was closed as it was used again");
  error.exchange.sent = Sent::Maybe;
  error.exchange.wire_sends = 1;
  error.exchange.reused_connection = true;
  error.exchange.stale_connection = true;
  return error;
}

Outcome answer(const Step& step) {
  Response response(step.status, step.body);
  response.headers = step.headers;
  return response;
}

Outcome outcome_of(const Step& step) {
  switch (step.fault) {
    case Fault::None:
    case Fault::Drip:
    case Fault::Stale:
    case Fault::GzipCutShort: return answer(step);
    case Fault::Refused: return failure(Errc::Connect, 7, "the connection was refused");
    case Fault::Resolve: return failure(Errc::Resolve, 6, "the name has no address");
    case Fault::TlsReset: return failure(Errc::Tls, 35, "the TLS handshake was reset");
    case Fault::TlsStall: return failure(Errc::Timeout, 28, "the TLS handshake took too long");
    case Fault::Hang: return failure(Errc::Timeout, 28, "no answer in time");
    case Fault::Reset:
    case Fault::ResetEarly: return failure(Errc::Receive, 56, "the connection was reset");
    case Fault::Close: return failure(Errc::Receive, 52, "the connection ended without an answer");
    case Fault::Garbage: return failure(Errc::Protocol, 1, "what came back is not HTTP");
    case Fault::EndlessInterim:
    case Fault::HugeHeaders: return failure(Errc::TooLarge, 63, "the headers are too large");
    case Fault::ResetDuring:
      return broken_off(step, Errc::Receive, 56, "the connection was reset within the answer");
    case Fault::Truncate:
      return broken_off(step, Errc::Receive, 18, "the connection ended within the answer");
    case Fault::BadChunk:
      return broken_off(step, Errc::Receive, 56, "the answer's chunks are malformed");
    case Fault::Huge: return broken_off(step, Errc::TooLarge, 63, "the answer is too large");
  }
  return failure(Errc::Internal, 0, "a fault without a meaning");
}

Duration time_of(const Step& step, const RetryPolicy& policy) {
  switch (step.fault) {
    case Fault::Hang:
      return policy.attempt_timeout == kForever ? kPatience : policy.attempt_timeout;
    case Fault::TlsStall:
      return policy.connect_timeout == kForever ? kPatience : policy.connect_timeout;
    case Fault::Drip: {
      const auto bytes = static_cast<std::int64_t>(step.body.size());
      const bool fits = bytes == 0 || step.interval < (kForever - step.delay) / bytes;
      return fits ? step.delay + step.interval * bytes : kForever;
    }
    default: return step.delay;
  }
}

void say(ScriptedTransport& network, const Step& step, const RetryPolicy& policy) {
  network.say(outcome_of(step), time_of(step, policy));
  if (step.fault == Fault::Stale) network.say(stale());
}

// As many steps as a call can meet; where the last one repeats, the transport does that.
std::unique_ptr<ScriptedTransport> scripted(const Script& script, const RetryPolicy& policy) {
  auto network = std::make_unique<ScriptedTransport>();
  auto written = 0;
  do {
    for (const auto& step : script.steps) {
      for (std::uint64_t i = 0; i < step.times && written < kMostAttempts; ++i, ++written) {
        say(*network, step, policy);
      }
    }
  } while (script.then == Then::Restart && written < kMostAttempts);
  if (script.then == Then::Close) say(*network, Step(Fault::Close), policy);
  return network;
}

// Each call meets the script from its beginning.
class Replay final : public Transport {
 public:
  void begin(std::unique_ptr<ScriptedTransport> network) { network_ = std::move(network); }
  Task<Outcome> send(Request request, Call& call) override {
    return network_->send(std::move(request), call);
  }

 private:
  std::unique_ptr<ScriptedTransport> network_;
};

// Stops a call that would never end by itself: no time passes where nothing waits, and none is left
// where a wait is longer than the clock can count.
class Limit final : public Observer {
 public:
  void call_started(const Call& /*call*/, const Request& /*request*/) noexcept override {
    attempts_ = 0;
    endless = reached = false;
  }
  void attempt_ended(const Call& call, const Request& /*request*/,
                     const Attempt& attempt) noexcept override {
    ++attempts_;
    if (!attempt.retried) return;
    endless = later(call.scheduler().now(), attempt.wait.value_or(Duration::zero())) == kNever;
    reached = attempts_ >= kMostAttempts;
    if (endless || reached) stop.request_stop();
  }

  [[nodiscard]] std::string why() const {
    const auto attempts = std::to_string(attempts_);
    if (endless) {
      return "at attempt " + attempts + ": its wait is longer than the clock can count, 292 years";
    }
    return reached ? "after " + attempts + " attempts" : "";
  }

  std::stop_source stop;
  bool endless = false;
  bool reached = false;

 private:
  int attempts_ = 0;
};

}  // namespace

Script script_for(const Scenario& scenario, const Request& request) {
  const auto& url = request.parsed_url();
  const auto found = url ? scenario.paths.find(url->path()) : scenario.paths.end();
  return found == scenario.paths.end() ? static_cast<const Script&>(scenario) : found->second;
}

Request plain_request(const std::string& method, const std::string& url) {
  try {
    Request request(method, with_scheme(url));
    if (const auto& parsed = request.parsed_url(); !parsed) {
      throw UsageError("\"" + without_secrets(url) + "\" is " + parsed.error().message);
    }
    return request;
  } catch (const std::invalid_argument& error) {
    throw UsageError(error.what());
  }
}

Played play(const Play& what) {
  const auto& policy =
      *what.policies.find(what.request.method(), *what.request.parsed_url()).policy;
  auto network = std::make_shared<Replay>();
  auto limit = std::make_shared<Limit>();

  ClientOptions options;
  options.middlewares = {retry(what.policies)};
  options.observers = {limit};
  options.scheduler = std::make_shared<ManualScheduler>();
  options.transport = network;
  options.random = what.random;
  Client client(options);

  Played played;
  for (int i = 0; i < what.calls; ++i) {
    CallOptions call;
    network->begin(scripted(what.script, policy));
    limit->stop = std::stop_source();
    call.stop = limit->stop.get_token();
    played.outcomes.push_back(client.send(what.request, call));
    if (auto why = limit->why(); !why.empty()) played.cut_short = std::move(why);
  }
  return played;
}

std::vector<Outcome> play_extremes(Play what, std::string& cut_short) {
  std::vector<Outcome> outcomes;
  for (const double draw : {0.0, 0.5, 1.0}) {
    what.random = fixed_random(draw);
    auto played = play(what);
    if (!played.cut_short.empty()) cut_short = played.cut_short;
    outcomes.push_back(std::move(played.outcomes.front()));
  }
  return outcomes;
}

}  // namespace httpretry::cli
