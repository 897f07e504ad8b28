// The middleware that logs calls.

#include <httpretry/http/shown_value.hpp>
#include <httpretry/middleware/builtin.hpp>

namespace httpretry {
namespace {

std::string in_words(const Headers& headers) {
  std::string text;
  for (const auto field : headers) {
    text +=
        "\n  " + std::string(field.name) + ": " + printable(shown_value(field.name, field.value));
  }
  return text;
}

std::string in_words(const Outcome& outcome) {
  if (outcome) return std::to_string(outcome->status);
  return std::string(to_string(outcome.error().code)) + " (" + printable(outcome.error().message) +
         ")";
}

class Log final : public Middleware {
 public:
  explicit Log(LogOptions options) : options_(std::move(options)) {}
  [[nodiscard]] std::string_view name() const override { return "log"; }

  Task<Outcome> handle(Request request, Call& call, Next next) override {
    const auto begin = call.scheduler().now();
    const auto first_attempt = call.history().attempts.size();
    Outcome outcome = co_await next(request, call);
    write(request, call, outcome, begin, first_attempt);
    co_return outcome;
  }

 private:
  // Writes the log line of a request that began at `begin`. Its attempts are those of the history
  // from the index `first_attempt` on, because a middleware above may have sent earlier ones.
  void write(const Request& request, const Call& call, const Outcome& outcome, Time begin,
             std::size_t first_attempt) const {
    const auto& url = request.parsed_url();
    const auto attempt = call.attempt();  // 0 above `retry`
    auto line =
        "call " + std::to_string(call.id()) +
        (attempt > 0 ? ", attempt " + std::to_string(attempt) : "") + ": " + request.method() +
        " " + (url ? printable(url->without_secrets()) : "(not a URL)") + ": " + in_words(outcome) +
        (outcome && outcome->from_fallback ? " from a fallback" : "") +
        attempts(call, first_attempt) + " in " + duration_text(call.scheduler().now() - begin);
    if (options_.headers) line += headers(request, outcome);
    const auto level = is_good(outcome, call, first_attempt) ? LogLevel::Info : LogLevel::Warning;
    options_.to ? write_log(options_.to, level, line) : write_log(level, line);
  }

  // Returns the policy's judgment if the middleware retry is below, otherwise whether the status is
  // less than 400.
  static bool is_good(const Outcome& outcome, const Call& call, std::size_t first_attempt) {
    if (!outcome) return false;
    const auto& history = call.history();
    const auto* last = history.attempts.size() == first_attempt ? nullptr : history.last();
    if (last == nullptr || last->status != outcome->status) return outcome->status < 400;
    return last->cls == Class::Success;
  }

  // Returns an empty text for a single attempt. There are more only if this middleware is above
  // retry.
  static std::string attempts(const Call& call, std::size_t first_attempt) {
    const auto count = call.history().attempts.size() - first_attempt;
    if (count < 2) return "";
    return " after " + std::to_string(count) + " attempts (" +
           std::string(to_string(call.history().stop_reason)) + ")";
  }

  static std::string headers(const Request& request, const Outcome& outcome) {
    return "\n request" + in_words(request.headers()) + "\n response" +
           in_words(outcome ? outcome->headers : outcome.error().headers);
  }

  LogOptions options_;
};

}  // namespace

MiddlewarePtr log(LogOptions options) { return std::make_shared<Log>(std::move(options)); }

}  // namespace httpretry
