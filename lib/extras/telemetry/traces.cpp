#include "call_trace.hpp"
#include "words.hpp"

#include <httpretry/chain/call.hpp>

#include <algorithm>
#include <new>
#include <stdexcept>

namespace httpretry {
namespace {

using telemetry::CallTrace;
using telemetry::random_id;
using telemetry::TracedSend;

constexpr double kIdRange = 72057594037927936.0;  // 2^56: the range of a trace id's random part

std::optional<TraceContext> parent_of(const Call& call, const Request& request) {
  const auto* given = call.get<TraceContext>();
  if (given != nullptr && given->trace.valid()) return *given;
  return TraceContext::from(request.headers());
}

TraceContext new_trace() {
  TraceContext context;
  context.trace = {random_id(), random_id()};
  context.flags = TraceContext::kRandom;
  return context;
}

// Returns the current time for spans of the call: the wall time at which the call began plus the
// time that has passed on the loop's monotonic clock. Spans stay in order if the wall clock is set.
WallTime time_of(const CallTrace& trace, const Call& call) {
  return trace.started +
         std::chrono::duration_cast<WallTime::duration>(call.scheduler().now() - call.started());
}

void add_queue_time(Span& span, Duration queued, QueuedBy by) {
  SpanEvent event{"queued", span.start, {}};
  event.attributes.push_back({"httpretry.queued", telemetry::to_seconds(queued)});
  event.attributes.push_back({"httpretry.queued_by", std::string(to_string(by))});
  span.events.push_back(std::move(event));
}

// Sets the members that describe the exchange and its response or error.
void add_outcome(Span& span, const Outcome& outcome) {
  span.exchange = exchange_of(outcome);
  span.status = outcome ? outcome->status : outcome.error().status;
  if (outcome) {
    span.http_version = outcome->http_version;
  } else {
    span.error = outcome.error().code;
  }
  const auto& exchange = span.exchange;
  if (exchange.timings.queued != Duration::zero()) {
    add_queue_time(span, exchange.timings.queued, exchange.queued_by);
  }
}

// Copies from the attempt to the span of its send how the retry middleware judged the send, and
// what followed. If the library's own limits (guards), such as a rate, held the send back, adds
// that wait as an event.
void add_decision(Span& span, const Attempt& attempt) {
  span.judged = true;
  span.policy = attempt.policy;
  span.cls = attempt.cls;    // the class of the outcome, such as transient
  span.rule = attempt.rule;  // the rule that determined the class
  span.wait = attempt.wait;
  span.backoff = attempt.backoff;
  span.server_delay = attempt.server_delay;
  span.budget_left = attempt.budget_left;
  // A hedge is sent while another attempt, `of`, has no response yet. One of them loses the race.
  span.hedge_of = attempt.hedge ? attempt.hedge->of : 0;  // 0: not a hedge
  span.lost = attempt.race == Race::Lost;
  if (telemetry::was_held_by_guards(attempt)) {
    add_queue_time(span, attempt.exchange().timings.queued, attempt.queued_by);
  }
}

class Traces final : public Observer {
 public:
  explicit Traces(TracesOptions options) : options_(std::move(options)) {}

  // If memory runs out, the functions below do not trace, and the call continues.
  void call_started(const Call& call, const Request& request) noexcept override {
    try {
      begin_call(call, request);
    } catch (const std::bad_alloc&) {
      if (auto* trace = trace_for(call); trace != nullptr) trace->call.reset();
    }
  }

  void exchange_started(const Call& call, const Request& request, int number) noexcept override {
    auto* trace = trace_for(call);
    if (trace == nullptr) return;
    try {
      begin_send(*trace, call, request, number);
    } catch (const std::bad_alloc&) {
    }
  }

  // Completes the span of an exchange. Without a retry middleware (the attempt is 0), no decision
  // follows, and the span is exported at once.
  void exchange_ended(const Call& call, const Request& /*request*/, int number,
                      const Outcome& outcome) noexcept override {
    auto* trace = trace_for(call);
    if (trace == nullptr) return;
    TracedSend* ended = nullptr;
    trace->for_each_open([&](TracedSend& send) {
      if (send.number == number) ended = &send;
    });
    if (ended == nullptr) return;
    trace->sends += exchange_of(outcome).wire_sends;
    ended->ended = true;
    ended->span.end = time_of(*trace, call);
    try {
      add_outcome(ended->span, outcome);
    } catch (const std::bad_alloc&) {
      ended->span.events.clear();
    }
    if (ended->span.attempt == 0) export_ended(*trace, ended->span.attempt);
  }

  // Adds the decision to the span of the attempt's last send, and exports the spans of the attempt.
  void attempt_ended(const Call& call, const Request& /*request*/,
                     const Attempt& attempt) noexcept override {
    auto* trace = trace_for(call);
    if (trace == nullptr) return;
    // If the attempt has several sends, only the last one was judged.
    TracedSend* last = nullptr;
    trace->for_each_open([&](TracedSend& send) {
      if (send.ended && send.span.attempt == attempt.number) last = &send;
    });
    try {
      if (last != nullptr) add_decision(last->span, attempt);
    } catch (const std::bad_alloc&) {
      last->span.rule.clear();
    }
    export_ended(*trace, attempt.number);
  }

  // Nothing was sent, so this is only an event of the call's span.
  void shed(const Call& call, const Error& reason) noexcept override {
    auto* trace = trace_for(call);
    if (trace == nullptr) return;
    try {
      SpanEvent event{"refused", time_of(*trace, call), {}};
      event.attributes.push_back({"error.type", std::string(to_string(reason.code))});
      trace->call->events.push_back(std::move(event));
    } catch (const std::bad_alloc&) {
    }
  }

  // Completes the span of a call with its outcome, and passes it to the sink. Before that, does the
  // same with the spans of its sends that are still open. Does nothing if the call is not sampled,
  // or if another observer traces it.
  void call_ended(const Call& call, const Outcome& outcome) noexcept override {
    auto* trace = trace_for(call);
    if (trace == nullptr) return;
    export_open(*trace, call);
    const auto& history = history_of(outcome);
    auto& span = *trace->call;
    span.end = trace->started + std::chrono::duration_cast<WallTime::duration>(history.elapsed);
    span.attempts = static_cast<int>(history.attempts.size());
    span.stop_reason = history.stop_reason;
    span.status = outcome ? outcome->status : outcome.error().status;
    if (!outcome) span.error = outcome.error().code;
    span.from_fallback = outcome && outcome->from_fallback;
    // retry() chooses one policy for all attempts.
    if (!history.attempts.empty()) span.policy = history.attempts.front().policy;
    // The pointer refers to the span, but owns the whole trace.
    options_.sink(SpanPtr(trace->shared_from_this(), &span));
  }

 private:
  // Returns nullptr if the call is not sampled, or if another observer traces it.
  CallTrace* trace_for(const Call& call) const {
    auto* trace = call.get<CallTrace>();
    return trace != nullptr && trace->owner == this && trace->call ? trace : nullptr;
  }

  // Returns whether to trace a call: as its parent decided, or for a share of all trace ids.
  [[nodiscard]] bool is_sampled(const std::optional<TraceContext>& parent,
                                const TraceContext& context) const {
    if (parent && options_.parent_based) return parent->sampled();
    const auto random = static_cast<double>(context.trace.low & ((std::uint64_t{1} << 56U) - 1));
    return random < options_.sample_ratio * kIdRange;
  }

  [[nodiscard]] bool is_known(std::string_view method) const {
    const auto& methods = options_.known_methods;
    if (methods.empty()) return telemetry::is_known_method(method);
    return std::ranges::find(methods, method) != methods.end();
  }

  // Begins the trace of a call, which continues the trace of the caller if there is one, and stores
  // it among the call's values. Does so even if the call is not sampled, so that the headers of its
  // requests tell the server of this decision. Only a sampled call gets a span. Does nothing if
  // another observer has already begun a trace of the call.
  void begin_call(const Call& call, const Request& request) {
    if (call.get<CallTrace>() != nullptr) return;
    const auto parent = parent_of(call, request);
    auto& trace = call.set(CallTrace());
    trace.owner = this;
    trace.started = call.scheduler().wall_now();
    trace.context = parent ? *parent : new_trace();
    trace.context.span = random_id();
    auto& flags = trace.context.flags;  // gets the decision for this call instead of the parent's
    flags &= static_cast<std::uint8_t>(~TraceContext::kSampled);
    if (!is_sampled(parent, trace.context)) return;
    flags |= TraceContext::kSampled;
    auto& span = trace.call.emplace();
    begin_span(span, trace, call, request);
    span.kind = Span::Kind::Internal;
    span.id = trace.context.span;
    span.parent = parent ? parent->span : 0;
  }

  // Sets the members that calls and sends share.
  void begin_span(Span& span, const CallTrace& trace, const Call& call,
                  const Request& request) const {
    span.trace = trace.context.trace;
    span.flags = trace.context.flags;
    span.state = trace.context.state;
    span.start = time_of(trace, call);
    span.method = request.method();
    span.known_method = is_known(span.method);
    if (const auto& url = request.parsed_url()) span.url = *url;
    span.hide_query = options_.hide_query;
  }

  // Adds a span for a send. Its `resend_count` includes the sends that are still in flight.
  void begin_send(CallTrace& trace, const Call& call, const Request& request, int number) const {
    int in_flight = 0;
    trace.for_each_open([&](const TracedSend& send) { in_flight += send.ended ? 0 : 1; });
    trace.begin_send([&](TracedSend& send) {
      auto& span = send.span;
      begin_span(span, trace, call, request);
      span.parent = trace.context.span;
      span.attempt = call.attempt();
      span.resend_count = trace.sends + in_flight;
      span.id = trace.last_send = trace.take_id(request.headers());
      send.number = number;
    });
  }

  void export_ended(CallTrace& trace, int attempt) const {
    while (auto span = trace.take_ended(attempt)) options_.sink(std::move(span));
  }

  // Exports the rest. A send that has not ended was abandoned by its middleware.
  void export_open(CallTrace& trace, const Call& call) const {
    trace.for_each_open([&](TracedSend& send) {
      if (send.ended) return;
      send.span.end = time_of(trace, call);
      send.span.error = Errc::Canceled;
    });
    while (auto span = trace.take_open()) options_.sink(std::move(span));
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

// Returns a middleware that sets the headers of W3C Trace Context on each send: traceparent,
// tracestate and baggage. They come from traces(), if it observes the call, or from a TraceContext
// that the caller has set for the call. Without either, or if one of its ids is zero, the
// middleware leaves the request unchanged.
MiddlewarePtr propagate() {
  return on_request("propagate", [](Request& request, Call& call) {
    auto* trace = call.get<CallTrace>();
    const auto* context = trace != nullptr ? &trace->context : call.get<TraceContext>();
    if (context == nullptr || !context->trace.valid() || context->span == 0) return;
    if (trace != nullptr) {
      request.set_header("traceparent", trace->next_header());  // with a new span id for this send
    } else {
      request.set_header("traceparent", context->traceparent());
    }
    // An empty value removes a header that the request may already have.
    const auto set_or_remove = [&](std::string_view name, const std::string& value) {
      value.empty() ? request.remove_header(name) : request.set_header(name, value);
    };
    set_or_remove("tracestate", context->state);
    // A redirect to another origin must not pass on the baggage, which may be confidential.
    const auto& url = request.parsed_url();
    const bool sends_baggage = !context->baggage.empty() && url && url->origin() == call.origin();
    set_or_remove("baggage", sends_baggage ? context->baggage : std::string());
  });
}

}  // namespace httpretry
