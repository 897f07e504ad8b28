#include "send_records.hpp"
#include "words.hpp"

#include <httpretry/client/report.hpp>
#include <httpretry/policy/policy_set.hpp>
#include <httpretry/telemetry/json_log.hpp>
#include <httpretry/telemetry/trace_context.hpp>

#include <stdexcept>

namespace httpretry {
namespace {

using telemetry::JsonObject;
using telemetry::SendRecord;
using telemetry::to_ms;

void put_or_null(JsonObject& line, std::string_view key, std::string_view text) {
  text.empty() ? line.null(key) : line.text(key, text);
}

void put_time(JsonObject& line, std::string_view key, const std::optional<Duration>& time) {
  time ? line.number(key, to_ms(*time)) : line.null(key);
}

void begin_line(JsonObject& line, const Call& call, std::string_view event, WallTime at) {
  line.text("time", rfc3339(at));
  line.text("event", event);
  line.number("call", call.id());
}

void put_request(JsonObject& line, const Request& request) {
  line.text("method", request.method());
  const auto& url = request.parsed_url();
  put_or_null(line, "url", url ? url->without_secrets() : "");
}

// Writes null for a status of 0, which means that there was no response, and for no error.
void put_outcome(JsonObject& line, int status, const std::optional<Errc>& error,
                 std::string_view message) {
  status == 0 ? line.null("status") : line.number("status", status);
  put_or_null(line, "error", error ? to_string(*error) : std::string_view());
  if (error) line.text("message", message);
}

void put_timings(JsonObject& line, const Timings& timings) {
  JsonObject times(line.key("timings_ms"));
  times.number("queued", to_ms(timings.queued));
  times.number("resolved", to_ms(timings.resolved));
  times.number("connected", to_ms(timings.connected));
  times.number("secured", to_ms(timings.secured));
  times.number("sent", to_ms(timings.sent));
  times.number("first_byte", to_ms(timings.first_byte));
  times.number("total", to_ms(timings.total));
}

// Writes how the attempt was judged, and what followed. Without an attempt, there was no decision.
void put_decision(JsonObject& line, const Attempt* attempt) {
  if (attempt == nullptr) return line.null("decision");
  line.text("class", to_string(attempt->cls));
  line.text("rule", attempt->rule);
  line.text("decision", attempt->retried ? "retry" : "stop");
  put_time(line, "wait_ms", attempt->wait);
  put_time(line, "backoff_ms", attempt->backoff);
  put_time(line, "server_delay_ms", attempt->server_delay);
  attempt->budget_left ? line.number("budget_left", *attempt->budget_left)
                       : line.null("budget_left");
  if (attempt->hedge) line.number("hedge_of", attempt->hedge->of);
  if (attempt->race != Race::None) line.boolean("lost", attempt->race == Race::Lost);
}

std::string_view name_or_preset(const ResolvedPolicy& policy) {
  return policy.name.empty() ? policy.preset : policy.name;
}

void put_trace(JsonObject& line, const Call& call) {
  const auto trace = trace_of(call);
  if (trace) line.text("trace_id", trace->trace.hex());
}

class JsonLog final : public telemetry::SendWriter {
 public:
  explicit JsonLog(JsonLineSink sink) : sink_(std::move(sink)) {}

  // Keeps the request, because call_ended() does not receive it.
  void call_started(const Call& call, const Request& request) noexcept override {
    try {
      call.set(FirstRequest{request});
    } catch (const std::bad_alloc&) {
    }
  }

  void redirected(const Call& call, const Request& next) noexcept override {
    event(call, "redirect", [&](JsonObject& line) { put_request(line, next); });
  }

  void hedge_started(const Call& call, const Request& /*request*/, int number,
                     Duration after) noexcept override {
    event(call, "hedge", [&](JsonObject& line) {
      line.number("attempt", number);
      line.number("after_ms", to_ms(after));
    });
  }

  void hedge_refused(const Call& call, HedgeRefused why) noexcept override {
    event(call, "hedge_refused", [&](JsonObject& line) { line.text("reason", to_string(why)); });
  }

  void held_back(const Call& call, QueuedBy by, Time until) noexcept override {
    event(call, "held_back", [&](JsonObject& line) {
      line.text("by", to_string(by));
      if (until != kNever) line.number("for_ms", to_ms(until - call.scheduler().now()));
    });
  }

  void circuit_changed(const Call& call, const CircuitChange& change) noexcept override {
    event(call, "circuit", [&](JsonObject& line) {
      line.text("key", change.key);
      line.text("from", to_string(change.from));
      line.text("to", to_string(change.to));
      line.text("why", change.why);
      line.boolean("dry_run", change.dry_run);
    });
  }

  void paused(const Call& call, const PauseBegun& pause) noexcept override {
    event(call, "pause", [&](JsonObject& line) {
      line.text("key", pause.key);
      line.number("for_ms", to_ms(pause.until - call.scheduler().now()));
      line.text("source", pause.source);
    });
  }

  void resumed(const Call& call, std::string_view key) noexcept override {
    event(call, "resume", [&](JsonObject& line) { line.text("key", key); });
  }

  void limit_changed(const Call& call, const LimitChange& change) noexcept override {
    event(call, "limit", [&](JsonObject& line) {
      line.text("key", change.key);
      line.number("from", change.from);
      line.number("to", change.to);
    });
  }

  void shared_state_changed(const Call& call, const SharedStateChange& change) noexcept override {
    event(call, "shared_state", [&](JsonObject& line) {
      line.boolean("degraded", change.degraded);
      line.text("place", change.place);
      line.text("why", change.why);
    });
  }

  void shed(const Call& call, const Error& reason) noexcept override {
    event(call, "refused", [&](JsonObject& line) {
      line.text("error", to_string(reason.code));
      line.text("message", reason.message);
    });
  }

 private:
  struct FirstRequest {
    Request request;
  };

  template <class Put>
  void write(const Put& put) const {
    std::string text;
    {
      JsonObject line(text);
      put(line);
    }
    sink_(text);
  }

  // Writes a line for an event. If memory runs out, this line is lost.
  template <class Put>
  void event(const Call& call, std::string_view name, const Put& put) noexcept {
    try {
      write([&](JsonObject& line) {
        begin_line(line, call, name, call.scheduler().wall_now());
        put(line);
        put_trace(line, call);
      });
    } catch (const std::bad_alloc&) {
    }
  }

  // Writes a line of the log for a send, with the event "send": the request, the response or the
  // error, and what the retry middleware decided after it. `attempt` is nullptr if it decided
  // nothing. The put functions add members to the line, some of which are null if they are unknown.
  void on_send_ended(const Call& call, const SendRecord& send, const Attempt* attempt) override {
    write([&](JsonObject& line) {
      begin_line(line, call, "send", call.scheduler().wall_now());
      line.number("exchange", send.number);
      // The number of the attempt, which is 0 without the retry middleware.
      send.attempt == 0 ? line.null("attempt") : line.number("attempt", send.attempt);
      put_request(line, send.request);
      put_or_null(line, "peer", telemetry::peer_text(send.exchange.peer));
      put_outcome(line, send.status, send.error, send.message);
      put_or_null(line, "http_version", send.http_version);
      put_timings(line, send.exchange.timings);
      put_or_null(line, "queued_by", to_string(send.exchange.queued_by));
      line.boolean("reused_connection", send.exchange.reused_connection);
      line.number("body_sent", send.exchange.body_sent);
      line.number("body_received", send.exchange.body_received);
      line.text("sent", to_string(send.exchange.sent));
      put_decision(line, attempt);
      put_trace(line, call);
    });
  }

  // Writes a line "attempt" for an attempt that ended before anything was sent.
  void on_not_sent(const Call& call, const Request& request, const Attempt& attempt) override {
    write([&](JsonObject& line) {
      begin_line(line, call, "attempt", call.scheduler().wall_now());
      line.number("attempt", attempt.number);
      put_request(line, request);
      put_outcome(line, attempt.status, attempt.error, attempt.error_message);
      line.text("sent", to_string(attempt.sent));
      put_decision(line, &attempt);
      put_trace(line, call);
    });
  }

  // Writes a line of the log for a whole call when it ends, with the event "call": the request, the
  // policy, the response or the error, and the number of attempts. The endpoint and the policy are
  // those of the first attempt, and null if the call ended before it.
  void on_call_ended(const Call& call, const Outcome& outcome) override {
    const auto& history = history_of(outcome);
    write([&](JsonObject& line) {
      begin_line(line, call, "call", call.scheduler().wall_now());
      // call_started() has stored the request, unless memory ran out.
      if (const auto* first = call.get<FirstRequest>()) put_request(line, first->request);
      const auto& attempts = history.attempts;
      const auto policy = attempts.empty() ? nullptr : attempts.front().policy;
      put_or_null(line, "endpoint", policy ? policy->endpoint : "");
      put_or_null(line, "policy", policy ? name_or_preset(*policy) : "");
      if (outcome) {
        put_outcome(line, outcome->status, /*error=*/std::nullopt, /*message=*/"");
      } else {
        put_outcome(line, /*status=*/0, outcome.error().code, outcome.error().message);
      }
      line.number("attempts", attempts.size());
      line.text("stop_reason", to_string(history.stop_reason));
      if (outcome && outcome->from_fallback) line.boolean("fallback", true);
      line.number("elapsed_ms", to_ms(history.elapsed));
      put_trace(line, call);
    });
  }

  JsonLineSink sink_;
};

}  // namespace

std::shared_ptr<Observer> json_log(JsonLineSink sink) {
  if (!sink) throw std::invalid_argument("json_log() needs a function that takes the lines");
  return std::make_shared<JsonLog>(std::move(sink));
}

}  // namespace httpretry
