#include "call_trace.hpp"
#include "words.hpp"

#include <httpretry/flow/call.hpp>

#include <algorithm>
#include <new>
#include <stdexcept>

namespace httpretry {
namespace {

using telemetry::CallTrace;
using telemetry::random_id;

constexpr double kIds = 72057594037927936.0;  // 2^56: the random part of a trace id

std::optional<TraceContext> parent_of(const Call& call, const Request& request) {
  if (const auto* given = call.get<TraceContext>()) return *given;
  return TraceContext::from(request.headers());
}

TraceContext new_trace() {
  TraceContext context;
  context.trace = {random_id(), random_id()};
  context.flags = TraceContext::kRandom;
  return context;
}

// As the clock of the loop says, from the time when the call began.
WallTime time_of(const CallTrace& trace, const Call& call) {
  return trace.started +
         std::chrono::duration_cast<WallTime::duration>(call.scheduler().now() - call.started());
}

// That propagate() has put into the header, unless another send had it, too.
std::uint64_t id_for(const CallTrace& trace, const Request& request) {
  const auto header = request.headers().get("traceparent");
  const auto sent = header ? TraceContext::parse(*header) : std::nullopt;
  const bool own = sent && sent->trace == trace.context.trace && sent->span != trace.context.span &&
                   sent->span != trace.last_send;
  return own ? sent->span : random_id();
}

void add_outcome(Span& span, const Outcome& outcome) {
  span.exchange = exchange_of(outcome);
  span.status = outcome ? outcome->status : outcome.error().status;
  if (outcome) {
    span.http_version = outcome->http_version;
  } else {
    span.error = outcome.error().code;
  }
  const auto queued = span.exchange.timings.queued;
  if (queued == Duration::zero()) return;
  SpanEvent event{"queued", span.start, {}};
  event.attributes.push_back({"httpretry.queued", telemetry::seconds(queued)});
  span.events.push_back(std::move(event));
}

void add_decision(Span& span, const Attempt& attempt) {
  span.judged = true;
  span.policy = attempt.policy;
  span.cls = attempt.cls;
  span.rule = attempt.rule;
  span.wait = attempt.wait;
  span.backoff = attempt.backoff;
  span.server_delay = attempt.server_delay;
  span.budget_left = attempt.budget_left;
}

class Traces final : public Observer {
 public:
  explicit Traces(TracesOptions options) : options_(std::move(options)) {}

  // What lacks memory is not traced; the call goes on.
  void call_started(const Call& call, const Request& request) noexcept override {
    try {
      begin_call(call, request);
    } catch (const std::bad_alloc&) {
    }
  }

  void exchange_started(const Call& call, const Request& request, int number) noexcept override {
    auto* trace = traced(call);
    if (trace == nullptr) return;
    try {
      begin_send(*trace, call, request, number);
    } catch (const std::bad_alloc&) {
    }
  }

  void exchange_ended(const Call& call, const Request& /*request*/, int number,
                      const Outcome& outcome) noexcept override {
    auto* trace = traced(call);
    if (trace == nullptr) return;
    const auto found = std::ranges::find(trace->open, number, &CallTrace::Open::number);
    if (found == trace->open.end()) return;
    trace->sends += exchange_of(outcome).wire_sends;
    found->ended = true;
    found->span->end = time_of(*trace, call);
    try {
      add_outcome(*found->span, outcome);
    } catch (const std::bad_alloc&) {
      found->span->events.clear();
    }
    if (found->span->attempt == 0) give(*trace, found);
  }

  void attempt_ended(const Call& call, const Request& /*request*/,
                     const Attempt& attempt) noexcept override {
    auto* trace = traced(call);
    if (trace == nullptr) return;
    // Of several sends of an attempt, the last one was judged.
    Span* last = nullptr;
    for (auto& open : trace->open) {
      if (open.ended && open.span->attempt == attempt.number) last = open.span.get();
    }
    try {
      if (last != nullptr) add_decision(*last, attempt);
    } catch (const std::bad_alloc&) {
      last->rule.clear();
    }
    for (std::size_t i = 0; i < trace->open.size();) {
      const auto& open = trace->open[i];
      if (open.ended && open.span->attempt == attempt.number) {
        give(*trace, trace->open.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
  }

  void call_ended(const Call& call, const Outcome& outcome) noexcept override {
    auto* trace = traced(call);
    if (trace == nullptr) return;
    while (!trace->open.empty()) {  // a middleware did not await them
      auto& open = trace->open.front();
      if (!open.ended) {
        open.span->end = time_of(*trace, call);
        open.span->error = Errc::Canceled;
      }
      give(*trace, trace->open.begin());
    }
    const auto& history = history_of(outcome);
    auto& span = *trace->call;
    span.end = trace->started + std::chrono::duration_cast<WallTime::duration>(history.elapsed);
    span.attempts = static_cast<int>(history.attempts.size());
    span.stop_reason = history.stop_reason;
    span.status = outcome ? outcome->status : outcome.error().status;
    if (!outcome) span.error = outcome.error().code;
    if (!history.attempts.empty()) span.policy = history.attempts.front().policy;
    options_.sink(std::move(trace->call));
  }

 private:
  // nullptr where the call is not sampled.
  CallTrace* traced(const Call& call) const {
    auto* trace = call.get<CallTrace>();
    return trace != nullptr && trace->owner == this && trace->call ? trace : nullptr;
  }

  [[nodiscard]] bool sampled(const std::optional<TraceContext>& parent,
                             const TraceContext& context) const {
    if (parent && options_.parent_based) return parent->sampled();
    const auto random = static_cast<double>(context.trace.low & ((std::uint64_t{1} << 56U) - 1));
    return random < options_.sample_ratio * kIds;
  }

  [[nodiscard]] bool known(std::string_view method) const {
    const auto& known = options_.known_methods;
    if (known.empty()) return telemetry::is_known_method(method);
    return std::ranges::find(known, method) != known.end();
  }

  void begin_call(const Call& call, const Request& request) {
    if (call.get<CallTrace>() != nullptr) return;
    const auto parent = parent_of(call, request);
    CallTrace trace;
    trace.owner = this;
    trace.started = call.scheduler().wall_now();
    trace.context = parent ? *parent : new_trace();
    auto& flags = trace.context.flags;
    flags &= static_cast<std::uint8_t>(~TraceContext::kSampled);
    trace.context.span = random_id();
    if (sampled(parent, trace.context)) {
      flags |= TraceContext::kSampled;
      trace.call = call_span(trace, call, request, parent ? parent->span : 0);
    }
    call.set(std::move(trace));
  }

  std::unique_ptr<Span> call_span(const CallTrace& trace, const Call& call, const Request& request,
                                  std::uint64_t parent) const {
    auto span = std::make_unique<Span>();
    span->kind = Span::Kind::Internal;
    span->trace = trace.context.trace;
    span->id = trace.context.span;
    span->parent = parent;
    span->flags = trace.context.flags;
    span->state = trace.context.state;
    span->start = time_of(trace, call);
    span->method = request.method();
    span->known_method = known(span->method);
    if (const auto& url = request.parsed_url()) span->url = *url;
    span->hide_query = options_.hide_query;
    return span;
  }

  void begin_send(CallTrace& trace, const Call& call, const Request& request, int number) const {
    auto span = std::make_unique<Span>();
    span->trace = trace.context.trace;
    span->id = id_for(trace, request);
    span->parent = trace.context.span;
    span->flags = trace.context.flags;
    span->state = trace.context.state;
    span->start = time_of(trace, call);
    span->method = request.method();
    span->known_method = known(span->method);
    if (const auto& url = request.parsed_url()) span->url = *url;
    span->hide_query = options_.hide_query;
    span->attempt = call.attempt();
    const auto under_way = std::ranges::count(trace.open, false, &CallTrace::Open::ended);
    span->resend_count = trace.sends + static_cast<int>(under_way);
    const auto id = span->id;
    trace.open.push_back({number, false, std::move(span)});
    trace.last_send = id;
  }

  void give(CallTrace& trace, std::vector<CallTrace::Open>::iterator which) const {
    auto span = std::move(which->span);
    trace.open.erase(which);
    options_.sink(std::move(span));
  }

  TracesOptions options_;
};

}  // namespace

std::shared_ptr<Observer> traces(TracesOptions options) {
  if (!options.sink) throw std::invalid_argument("traces() needs a sink for the spans");
  if (!(options.sample_ratio >= 0 && options.sample_ratio <= 1)) {
    throw std::invalid_argument("TracesOptions::sample_ratio must be between 0 and 1");
  }
  return std::make_shared<Traces>(std::move(options));
}

std::shared_ptr<Observer> traces(std::function<void(SpanPtr)> sink) {
  TracesOptions options;
  options.sink = std::move(sink);
  return traces(std::move(options));
}

MiddlewarePtr propagate() {
  return on_request("propagate", [](Request& request, Call& call) {
    const auto* trace = call.get<CallTrace>();
    const auto* given = call.get<TraceContext>();
    if (trace == nullptr && given == nullptr) return;
    TraceContext context = trace != nullptr ? trace->context : *given;
    if (trace != nullptr) context.span = random_id();
    request.set_header("traceparent", context.traceparent());
    if (context.state.empty()) {
      request.remove_header("tracestate");
    } else {
      request.set_header("tracestate", context.state);
    }
    const auto& url = request.parsed_url();
    const bool at_home = url && url->origin() == call.origin();
    if (!at_home || context.baggage.empty()) {
      request.remove_header("baggage");
    } else {
      request.set_header("baggage", context.baggage);
    }
  });
}

}  // namespace httpretry
