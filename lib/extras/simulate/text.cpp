#include "text.hpp"

#include "lib/core/base/text.hpp"

#include <cmath>
#include <cstdio>

namespace httpretry::simulation {

std::string number(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string grouped(double value) {
  auto text = number(value, 0);
  const std::ptrdiff_t first_digit = value < 0 ? 1 : 0;
  for (auto i = static_cast<std::ptrdiff_t>(text.size()) - 3; i > first_digit; i -= 3) {
    text.insert(static_cast<std::size_t>(i), " ");
  }
  return text;
}

std::string counted(const std::string& count, std::string_view one, std::string_view many) {
  return count + " " + std::string(count == "1" ? one : many);
}

std::string percent(double ratio) {
  if (ratio <= 0 || ratio >= 1) return number(100 * ratio, 0) + " %";
  const double shown = std::min(std::max(100 * ratio, 0.1), 99.9);
  return number(shown, 1) + " %";
}

std::string milliseconds(double value) {
  return duration_text(Duration(std::chrono::duration<double, std::milli>(value)));
}

std::string describe(const Distribution& distribution) {
  using Kind = Distribution::Kind;
  const auto mean = to_text(distribution.mean);
  switch (distribution.kind) {
    case Kind::Constant: return mean;
    case Kind::Exponential: return "exponential(" + mean + ")";
    case Kind::Normal: return "normal(" + mean + "," + to_text(distribution.deviation) + ")";
    case Kind::Lognormal: return "lognormal(" + mean + "," + number(distribution.sigma, 2) + ")";
    case Kind::Mix: return "a mix of " + std::to_string(distribution.parts.size());
    case Kind::Empirical:
      return counted(std::to_string(distribution.values.size()), "recorded time", "recorded times");
  }
  return "";
}

namespace {

// Returns a rate as it was given, but without decimals if it is at least 1000.
std::string rate_text(double rate) { return rate < 1000 ? text_of(rate) : grouped(rate); }

// Returns what the simulated server does, in a few words, for example "50.0 % of requests get a
// 503".
std::string describe_kind(const ServerModel& model) {
  using Kind = ServerModel::Kind;
  switch (model.kind) {
    case Kind::Fail:  // a share of the requests fails, whatever the load
      return percent(model.probability) + " of requests get a " + std::to_string(model.status);
    case Kind::Capacity:  // requests beyond this rate are rejected
      return counted(rate_text(model.rate), "request", "requests") + " a second";
    case Kind::Queue:  // "10 workers of 50ms, a queue for 1 000"
      return counted(grouped(model.servers), "worker", "workers") + " of " +
             describe(model.service) + ", a queue for " + grouped(model.queue);
    case Kind::Slope:  // "50ms and 500us for each other request above 10": the response time
      return to_text(model.base) + " and " + to_text(model.per_request) +
             " for each other request" +
             (model.above > 0 ? " above " + std::to_string(model.above) : "");
    case Kind::Occ:  // optimistic concurrency control
      return "one row that all clients update";
    case Kind::Trace:  // replays a recorded file
      return counted(std::to_string(model.recorded.size()), "attempt", "attempts") + " of " +
             model.file;
  }
  return "";
}

}  // namespace

// Describes the server with its network, layers and triggers.
std::string describe(const ServerModel& model) {
  auto text = std::string(to_string(model.kind)) + ": " + describe_kind(model);
  if (model.kind != ServerModel::Kind::Trace) {
    text += "; network " + describe(model.network) + " each way";
  }
  if (!model.layers.empty()) {
    text += "; behind " + counted(std::to_string(model.layers.size()), "service", "services");
  }
  for (const auto& trigger : model.triggers) text += "; " + describe(trigger);
  return text;
}

std::string describe(const Load& load) {
  if (load.kind == Load::Kind::Once) return "once: one call from each client, all at the start";
  if (load.kind == Load::Kind::Closed) {
    return "closed: the next call " + describe(load.think) + " after the last one";
  }
  if (!load.curve.empty()) {
    return "open: a curve of " + counted(std::to_string(load.curve.size()), "point", "points");
  }
  return "open: " + counted(rate_text(load.rate), "call", "calls") + " a second";
}

// Returns "from 20s for 10s 50 % of the capacity, 2 times the calls", for example.
std::string describe(const Trigger& trigger) {
  auto text = "from " + to_text(trigger.at) + " for " + to_text(trigger.lasts);
  std::string list;
  const auto add = [&list](const std::string& item) { list += (list.empty() ? " " : ", ") + item; };
  if (trigger.capacity) add(percent(*trigger.capacity) + " of the capacity");
  if (trigger.fail) add(percent(*trigger.fail) + " get a " + std::to_string(trigger.status));
  if (trigger.fail && trigger.retry_after > Duration()) {
    add("Retry-After " + to_text(trigger.retry_after));
  }
  if (trigger.load) add(text_of(*trigger.load) + " times the calls");
  return text + list;
}

// Returns the sends per call at worst, the load that is safe, and what a budget allows beyond that.
std::string describe(const PolicyBounds& bounds) {
  if (!bounds.w_l) return "no limit on sends: no load is safe";
  auto text = number(*bounds.w_l, 2) + " sends a call at worst: stable below " +
              percent(bounds.stable_below) + " of the capacity";
  if (bounds.burst && bounds.sends_at_first && *bounds.sends_at_first > *bounds.w_l) {
    text += "; after " + counted(grouped(*bounds.burst), "retry", "retries") +
            " of a full budget (" + number(*bounds.sends_at_first, 0) + " sends a call)";
  }
  if (bounds.always.value_or(0) > 0) {  // with a `burst`, the budget is a ratio
    text += "; " +
            (bounds.burst
                 ? counted(rate_text(*bounds.always), "retry a second is", "retries a second are")
                 : counted(grouped(*bounds.always), "retry at once is", "retries at once are")) +
            " always allowed";
  }
  return text;
}

}  // namespace httpretry::simulation
