// What is logged: the middleware log, and what the library itself says.
#include "lib/flow/nested_retry.hpp"
#include "lib/policy/policy_set_data.hpp"

#include <httpretry/middleware/builtin.hpp>

#include <spdlog/spdlog.h>

#include <atomic>

namespace httpretry {
namespace {

std::string in_words(const Headers& headers) {
  std::string text;
  for (const auto field : headers) {
    text += fmt::format("\n  {}: {}", field.name,
                        tells_secret(field.name) ? "(not logged)" : printable(field.value));
  }
  return text;
}

class Log final : public Middleware {
 public:
  explicit Log(LogOptions options) : options_(std::move(options)) {}
  [[nodiscard]] std::string_view name() const override { return "log"; }

  Task<Outcome> handle(Request request, Call& call, Next next) override {
    const auto begin = call.scheduler().now();
    const auto first = call.history().attempts.size();
    Outcome outcome = co_await next(request, call);
    write(request, call, outcome, begin, first);
    co_return outcome;
  }

 private:
  void write(const Request& request, const Call& call, const Outcome& outcome, Time begin,
             std::size_t first) const {
    const auto logger = find();
    const bool good = outcome && outcome->status < 400;
    const auto level = good ? spdlog::level::info : spdlog::level::warn;
    if (!logger || !logger->should_log(level)) return;
    const std::chrono::duration<double, std::milli> took = call.scheduler().now() - begin;
    const auto& url = request.parsed_url();
    logger->log(level, "call {}: {} {}: {}{} in {:.1f} ms{}", call.id(), request.method(),
                url ? printable(url->without_secrets()) : "(not a URL)",
                outcome ? std::to_string(outcome->status)
                        : fmt::format("{} ({})", to_string(outcome.error().code),
                                      printable(outcome.error().message)),
                attempts(call, first), took.count(),
                options_.headers ? headers(request, outcome) : "");
  }

  // Only where it stands above the middleware retry are there any to speak of.
  static std::string attempts(const Call& call, std::size_t first) {
    const auto count = call.history().attempts.size() - first;
    if (count < 2) return "";
    return fmt::format(" after {} attempts ({})", count, to_string(call.history().stop_reason));
  }

  static std::string headers(const Request& request, const Outcome& outcome) {
    return fmt::format("\n request{}\n response{}", in_words(request.headers()),
                       in_words(outcome ? outcome->headers : outcome.error().headers));
  }

  [[nodiscard]] std::shared_ptr<spdlog::logger> find() const {
    auto logger = options_.logger.empty() ? nullptr : spdlog::get(options_.logger);
    return logger ? logger : spdlog::default_logger();
  }

  LogOptions options_;
};

}  // namespace

MiddlewarePtr log(LogOptions options) { return std::make_shared<Log>(std::move(options)); }

void log_policy_reload(const PolicyReload& reload) {
  const auto logger = spdlog::default_logger();
  if (!logger) return;
  std::string lines;
  for (const auto& problem : reload.problems) lines += "\n" + to_string(problem);
  if (reload.accepted) {
    logger->info("httpretry: the policies of {} were read again{}", reload.file, lines);
  } else {
    logger->error("httpretry: {} is refused, and the policies read before stay in force:{}",
                  reload.file, lines);
  }
}

void warn_of_nested_retry() {
  static std::atomic<bool> warned = false;
  const auto logger = spdlog::default_logger();
  if (!logger || warned.exchange(true, std::memory_order_relaxed)) return;
  logger->warn(
      "httpretry: a call that retries was made inside the function of retry_call: their attempts "
      "multiply. Let only one of them retry (RequestOptions::retry, max_attempts). Logged only "
      "once.");
}

}  // namespace httpretry
