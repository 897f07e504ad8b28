// A client with `retry` and `guards` in virtual time, and a server that answers as a test says.
#pragma once

#include <httpretry/client/client.hpp>
#include <httpretry/guard/guards.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>
#include <httpretry/policy/policy_set.hpp>
#include <httpretry/policy/policy_source.hpp>
#include <httpretry/testing/testing.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace httpretry::guard_tests {

using Durations = std::vector<Duration>;
using Lines = std::vector<std::string>;

// What the server does with one request.
struct Reply {
  Reply(int status = 200, Duration time = {})  // NOLINT(google-explicit-constructor)
      : outcome(Response(status)), after(time) {}
  Reply(Outcome what, Duration time) : outcome(std::move(what)), after(time) {}
  Reply header(std::string_view name, std::string_view value) const {
    auto more = *this;
    more.outcome->headers.add(name, value);
    return more;
  }

  Outcome outcome;
  Duration after;  // until the response; kForever: never
};

class Server final : public Transport {
 public:
  struct Seen {
    Time when;
    std::string url;
    int number = 0;  // of all requests, from 1
  };
  // `number` counts the requests from 1.
  std::function<Reply(const Request& request, int number)> answer = [](const Request&, int) {
    return Reply();
  };
  std::vector<Seen> seen;

  Task<Outcome> send(Request request, Call& call) override {
    auto& clock = call.scheduler();
    seen.push_back({clock.now(), request.url(), static_cast<int>(seen.size()) + 1});
    auto reply = answer(request, seen.back().number);
    const auto ends = later(clock.now(), reply.after);
    const bool whole = co_await clock.sleep_until(std::min(ends, call.deadline()), call.stop());
    Outcome outcome = whole && ends <= call.deadline()
                          ? std::move(reply.outcome)
                          : Error(whole ? Errc::Timeout : Errc::Canceled, "no response in time");
    auto& exchange = exchange_of(outcome);
    exchange.sent = outcome ? Sent::Answered : Sent::Maybe;
    exchange.wire_sends = 1;
    if (outcome) exchange.timings.first_byte = reply.after;
    co_return outcome;
  }
};

// Writes down what observers are told, a line each: "open 5s", "limit 20 to 18".
class Heard final : public Observer {
 public:
  std::vector<std::string> lines;
  std::vector<std::string> held;  // waits that began: "rate 500ms"

  void circuit_changed(const Call& call, const CircuitChange& change) noexcept override {
    auto line = std::string(to_string(change.to));
    if (change.until != kNever) line += " " + to_text(change.until - call.scheduler().now());
    if (change.dry_run) line += " dry";
    lines.push_back(line + ": " + std::string(change.why));
  }
  void held_back(const Call& call, QueuedBy by, Time until) noexcept override {
    const auto left =
        until == kNever ? std::string() : " " + to_text(until - call.scheduler().now());
    held.push_back(std::string(to_string(by)) + left);
  }
  void paused(const Call& call, const PauseBegun& pause) noexcept override {
    lines.push_back("pause " + to_text(pause.until - call.scheduler().now()) + " " +
                    std::string(pause.source));
  }
  void resumed(const Call& /*call*/, std::string_view /*key*/) noexcept override {
    lines.emplace_back("resumed");
  }
  void limit_changed(const Call& /*call*/, const LimitChange& change) noexcept override {
    lines.push_back("limit " + std::to_string(change.from) + " to " + std::to_string(change.to));
  }
  void shed(const Call& /*call*/, const Error& reason) noexcept override {
    lines.push_back("shed " + std::string(to_string(reason.code)));
  }
};

// When a call begins, and what of it differs from a GET without limits.
struct Plan {
  Duration at{};
  std::string url = "http://x/";
  Duration timeout = kForever;
  Duration canceled = kForever;  // since the beginning of all
  std::optional<Priority> priority;
  std::string authorization = {};
  std::optional<Duration> longest_pause;
};

// A usual call at each of these times.
inline std::vector<Plan> at(std::initializer_list<Duration> times) {
  std::vector<Plan> plans;
  for (const auto time : times) plans.emplace_back().at = time;
  return plans;
}

struct Ended {
  Outcome outcome = Error(Errc::Internal, "it has not ended");
  Duration at = kForever;

  [[nodiscard]] const History& history() const { return history_of(outcome); }
  [[nodiscard]] Errc code() const { return outcome.error().code; }
  [[nodiscard]] bool refused() const { return !outcome && outcome.error().held_back(); }
};

inline PolicySet policies(const std::string& policy) {
  return parse_policies(R"({"version": 1, "default": )" + policy + "}", "policy.json").value();
}

class World {
 public:
  // `policy`: JSON, for all requests.
  explicit World(const std::string& policy, std::shared_ptr<SharedState> shared = nullptr)
      : World(PolicySource(policies(policy)), std::move(shared)) {}
  explicit World(PolicySource source, std::shared_ptr<SharedState> shared = nullptr)
      : client_(options(std::move(source), std::move(shared))), began_(clock->now()) {}

  std::shared_ptr<ManualScheduler> clock = std::make_shared<ManualScheduler>();
  std::shared_ptr<Server> server = std::make_shared<Server>();
  std::shared_ptr<Heard> heard = std::make_shared<Heard>();
  std::shared_ptr<RecordingObserver> recorded = std::make_shared<RecordingObserver>();
  std::shared_ptr<SharedState> state = local_state();
  double chance = 0.5;

  [[nodiscard]] Duration now() const { return clock->now() - began_; }
  [[nodiscard]] Time at(Duration since) const { return began_ + since; }

  // Plans are in the order of their beginnings. Returns when all have ended.
  std::vector<Ended> run(const std::vector<Plan>& plans) {
    std::vector<Ended> ended(plans.size());
    std::vector<std::stop_source> stops(plans.size());
    std::size_t done = 0;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      advance_to(plans[i].at, plans, stops);
      CallOptions options;
      options.timeout = plans[i].timeout;
      options.stop = stops[i].get_token();
      client_.send_then(
          request(plans[i]),
          [&, i](Outcome outcome) {
            ended[i] = {std::move(outcome), now()};
            ++done;
          },
          options);
      clock->run();
    }
    while (done < plans.size() && clock->sleeping() > 0) {
      advance_to(clock->next() - began_, plans, stops);
    }
    advance_to(now(), plans, stops);
    return ended;
  }
  // One after the other, each when the one before has ended.
  std::vector<Ended> run_in_turn(int calls, const std::string& url = "http://x/") {
    std::vector<Ended> ended;
    for (int i = 0; i < calls; ++i) ended.push_back(call(url));
    return ended;
  }
  Ended call(const std::string& url = "http://x/") {
    Plan plan;
    plan.at = now();
    plan.url = url;
    return std::move(run({plan}).front());
  }

  // When the server saw the requests.
  [[nodiscard]] std::vector<Duration> sends() const {
    std::vector<Duration> times;
    for (const auto& one : server->seen) times.push_back(one.when - began_);
    return times;
  }

 private:
  ClientOptions options(PolicySource source, std::shared_ptr<SharedState> shared) {
    ClientOptions options;
    options.middlewares = {retry(std::move(source)), shared ? guards() : guards(state)};
    options.scheduler = clock;
    options.transport = server;
    options.observers = {heard, recorded};
    options.shared_state = std::move(shared);
    options.random = [this] { return chance; };
    return options;
  }

  static Request request(const Plan& plan) {
    auto request = Request::get(plan.url);
    request.edit_options().priority = plan.priority;
    if (plan.longest_pause) request.edit_options().context.set(LongestPause{*plan.longest_pause});
    if (!plan.authorization.empty()) request.set_header("Authorization", plan.authorization);
    return request;
  }

  // Stops calls on the way.
  void advance_to(Duration when, const std::vector<Plan>& plans,
                  std::vector<std::stop_source>& stops) {
    while (true) {
      std::size_t next = plans.size();
      for (std::size_t i = 0; i < plans.size(); ++i) {
        if (plans[i].canceled > when || stops[i].stop_requested()) continue;
        if (next == plans.size() || plans[i].canceled < plans[next].canceled) next = i;
      }
      if (next == plans.size()) break;
      if (plans[next].canceled > now()) clock->advance(plans[next].canceled - now());
      stops[next].request_stop();
      clock->run();
    }
    if (when > now()) clock->advance(when - now());
  }

  Client client_;
  Time began_;
};

inline std::vector<Plan> at_once(int calls, Duration at = {}) {
  Plan plan;
  plan.at = at;
  return std::vector<Plan>(static_cast<std::size_t>(calls), plan);
}

inline int refused(const std::vector<Ended>& calls) {
  return static_cast<int>(
      std::count_if(calls.begin(), calls.end(), [](const Ended& one) { return one.refused(); }));
}

}  // namespace httpretry::guard_tests
