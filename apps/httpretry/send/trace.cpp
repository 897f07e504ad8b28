#include "send/trace.hpp"

#include "cli/message.hpp"
#include "cli/text.hpp"

namespace httpretry::cli {
namespace {

constexpr const char* kRed = "\x1b[31m";
constexpr const char* kGreen = "\x1b[32m";
constexpr const char* kYellow = "\x1b[33m";
constexpr const char* kPlain = "\x1b[0m";

std::string url_of(const Request& request) {
  const auto& url = request.parsed_url();
  return url ? printable(url->without_secrets()) : "(invalid URL)";
}

std::string wait_reason(const Attempt& attempt) {
  if (!attempt.server_delay) return "";
  return " (" + std::string(attempt.server_delay_source) + ": " + precise(*attempt.server_delay) +
         ", backoff: " + precise(attempt.backoff.value_or(Duration{})) + ")";
}

class Tracer final : public Observer {
 public:
  explicit Tracer(bool in_color) : in_color_(in_color) {}

  void attempt_started(const Call& /*call*/, const Request& request, int number) noexcept override {
    print_message("attempt " + std::to_string(number) + ": " + request.method() + " " +
                  url_of(request));
  }

  void attempt_ended(const Call& /*call*/, const Request& /*request*/,
                     const Attempt& attempt) noexcept override {
    auto line = "attempt " + std::to_string(attempt.number) + ": " + colored(attempt) + " after " +
                precise(attempt.duration) + ": " + std::string(to_string(attempt.cls)) + " (" +
                printable(attempt.rule) + "), sent: " + std::string(to_string(attempt.sent));
    if (attempt.budget_left) line += ", budget " + std::to_string(*attempt.budget_left);
    if (attempt.retried) {
      line += "; retry in " + precise(attempt.wait.value_or(Duration{})) + wait_reason(attempt);
    }
    print_message(line);
  }

  void redirected(const Call& /*call*/, const Request& next) noexcept override {
    print_message("redirect: " + next.method() + " " + url_of(next));
  }

  void call_ended(const Call& /*call*/, const Outcome& outcome) noexcept override {
    const auto& history = history_of(outcome);
    const auto count = history.attempts.size();
    print_message(
        "done: " +
        (outcome ? std::to_string(outcome->status) : std::string(to_string(outcome.error().code))) +
        " after " + std::to_string(count) + (count == 1 ? " attempt" : " attempts") + " in " +
        seconds(history.elapsed) + " (" + std::string(to_string(history.stop_reason)) + ")");
  }

 private:
  [[nodiscard]] std::string colored(const Attempt& attempt) const {
    if (!in_color_) return attempt_text(attempt);
    const bool good = attempt.cls == Class::Success;
    const auto* color = good ? kGreen : attempt.retried ? kYellow : kRed;
    return color + attempt_text(attempt) + kPlain;
  }

  bool in_color_;
};

void print_headers(const char* mark, const Headers& headers) {
  for (const auto field : headers) {
    const auto value = tells_secret(field.name) ? "(not shown)" : printable(field.value);
    print_message(mark + std::string(field.name) + ": " + value);
  }
  print_message(mark);
}

}  // namespace

std::shared_ptr<Observer> tracer(bool in_color) { return std::make_shared<Tracer>(in_color); }

MiddlewarePtr verbose() {
  return on_outcome("verbose", [](const Request& request, Outcome& outcome, Call& /*call*/) {
    print_message("> " + request.method() + " " + url_of(request));
    print_headers("> ", request.headers());
    if (!outcome) return print_message("* " + printable(outcome.error().message));
    print_message("< HTTP/" + outcome->http_version + " " + std::to_string(outcome->status) + " " +
                  printable(outcome->reason));
    print_headers("< ", outcome->headers);
  });
}

}  // namespace httpretry::cli
