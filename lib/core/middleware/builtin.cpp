// The middlewares timeout, retry_if, fallback and default_headers.
#include <httpretry/middleware/builtin.hpp>

#include "lib/core/chain/detail/call_state.hpp"
#include "lib/core/retry/error_codes.hpp"

#include <stdexcept>

namespace httpretry {
namespace {

class Timeout final : public Middleware {
 public:
  explicit Timeout(Duration limit) : limit_(limit) {
    if (limit <= Duration::zero())
      throw std::invalid_argument("a timeout must be greater than zero");
  }
  [[nodiscard]] std::string_view name() const override { return "timeout"; }

  Task<Outcome> handle(Request request, Call& call, Next next) override {
    Call bounded = call.with(later(call.scheduler().now(), limit_), Call::State::own_stop(call));
    Outcome outcome = co_await next(std::move(request), bounded);
    co_return outcome;
  }

 private:
  Duration limit_;
};

class FallbackStage final : public Middleware {
 public:
  explicit FallbackStage(Fallback make) : make_substitute_(std::move(make)) {}
  [[nodiscard]] std::string_view name() const override { return "fallback"; }

  // Sends the request. If that fails, asks the user's function for a substitute response, and
  // returns it with `from_fallback` set. Returns the outcome itself if the call succeeded, was
  // canceled or had an invalid request, or if the function makes no response.
  Task<Outcome> handle(Request request, Call& call, Next next) override {
    Outcome outcome = co_await next(request, call);
    Call::State::complete_history(call, outcome);  // sets why the call ended, for has_failed
    auto& history = call.history();
    if (!has_failed(outcome, history)) co_return outcome;
    // The function gets the outcome with its history, as the caller of the client would.
    (outcome ? outcome->history : outcome.error().history) = history;
    auto substitute = make_substitute_(request, outcome, call);
    if (!substitute) co_return outcome;
    substitute->from_fallback = true;
    substitute->exchange = exchange_of(outcome);  // what was really sent
    if (const auto& url = request.parsed_url(); url && substitute->url.empty()) {
      substitute->url = url->to_string();
    }
    co_return *std::move(substitute);
  }

 private:
  static bool has_failed(const Outcome& outcome, const History& history) {
    if (history.stop_reason == Reason::Canceled) return false;
    if (!outcome) return outcome.error().code != Errc::InvalidRequest;
    return history.stop_reason != Reason::Success;
  }

  const Fallback make_substitute_;
};

}  // namespace

MiddlewarePtr timeout(Duration limit) { return std::make_shared<Timeout>(limit); }

MiddlewarePtr retry_if(std::function<bool(const Outcome&)> should_retry) {
  return on_outcome("retry_if", [should_retry = std::move(should_retry)](const Request&,
                                                                         Outcome& outcome, Call&) {
    // No retry can follow if a sink has received the body, or if the error is not the transport's.
    const bool can_ask =
        outcome ? outcome->delivered == 0 : policy::transport_kind(outcome.error()).has_value();
    if (can_ask && should_retry(outcome)) exchange_of(outcome).retry_requested = true;
  });
}

MiddlewarePtr fallback(Fallback make) {
  if (!make) throw std::invalid_argument("fallback() needs a function that returns a response");
  return std::make_shared<FallbackStage>(std::move(make));
}

MiddlewarePtr default_headers(Headers headers) {
  return on_request("default_headers",
                    [headers = std::move(headers)](Request& request, Call& call) {
                      const auto& url = request.parsed_url();
                      if (!url || url->origin() != call.origin()) return;
                      // A copy from before the loop, because a default header may have several
                      // lines, and all of them are added.
                      const Headers callers_headers = request.headers();
                      for (const auto header : headers) {
                        if (!callers_headers.contains(header.name))
                          request.add_header(header.name, header.value);
                      }
                    });
}

}  // namespace httpretry
