#include "send/trace.hpp"

#include "cli/message.hpp"
#include "cli/text.hpp"
#include "lib/core/chain/detail/attempt_headers.hpp"
#include "send/whole_run.hpp"

#include <httpretry/chain/call.hpp>
#include <httpretry/http/shown_value.hpp>

#include <algorithm>

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
  return " (" + std::string(attempt.server_delay_source) + ": " +
         duration_text(*attempt.server_delay) +
         ", backoff: " + duration_text(attempt.backoff.value_or(Duration{})) + ")";
}

std::string queued(const Attempt& attempt) {
  if (attempt.queued_by == QueuedBy::Nothing) return "";
  return ", of which " + duration_text(attempt.exchange().timings.queued) + " held back by " +
         std::string(to_string(attempt.queued_by));
}

// Returns a word of kSentWords (reference.cpp).
std::string_view sent_word(const Attempt& attempt) {
  return attempt.exchange().refused ? "refused" : to_string(attempt.sent);
}

class Tracer final : public Observer {
 public:
  Tracer(bool in_color, std::string mark) : in_color_(in_color), mark_(std::move(mark)) {}

  void attempt_started(const Call& call, const Request& request, int number) noexcept override {
    print_message(mark(call) + "attempt " + std::to_string(number) + ": " + request.method() + " " +
                  url_of(request));
  }

  void attempt_ended(const Call& call, const Request& /*request*/,
                     const Attempt& attempt) noexcept override {
    auto line = mark(call) + "attempt " + std::to_string(attempt.number) + ": " + colored(attempt) +
                " after " + duration_text(attempt.duration) + queued(attempt) + ": " +
                std::string(to_string(attempt.cls)) + " (" + printable(attempt.rule) +
                "), sent: " + std::string(sent_word(attempt));
    if (attempt.wire_sends > 1) line += ", " + std::to_string(attempt.wire_sends) + " sends";
    if (attempt.budget_left) line += ", budget " + std::to_string(*attempt.budget_left);
    if (attempt.retried) {
      line +=
          "; retry in " + duration_text(attempt.wait.value_or(Duration{})) + wait_reason(attempt);
    }
    print_message(line);
  }

  void hedge_started(const Call& call, const Request& /*request*/, int number,
                     Duration after) noexcept override {
    print_message(mark(call) + "attempt " + std::to_string(number) +
                  ": a hedge: no response yet after " + duration_text(after));
  }

  void hedge_refused(const Call& call, HedgeRefused why) noexcept override {
    print_message(mark(call) + "no hedge: " + std::string(to_string(why)));
  }

  void held_back(const Call& call, QueuedBy by, Time until) noexcept override {
    auto line = mark(call) + "held back: " + std::string(to_string(by));
    if (until != kNever) line += ", for " + duration_text(until - call.scheduler().now());
    print_message(line);
  }

  void circuit_changed(const Call& call, const CircuitChange& change) noexcept override {
    auto line =
        mark(call) + "circuit " + printable(change.key) + ": " + std::string(to_string(change.to));
    if (change.until != kNever) {
      line += " for " + duration_text(change.until - call.scheduler().now());
    }
    line += " (" + std::string(change.why) + ")";
    if (change.dry_run) line += ", a dry run: nothing is refused";
    print_message(line);
  }

  void paused(const Call& call, const PauseBegun& pause) noexcept override {
    print_message(mark(call) + "pause " + printable(pause.key) + ": for " +
                  duration_text(pause.until - call.scheduler().now()) + " (" +
                  std::string(pause.source) + ")");
  }

  void resumed(const Call& call, std::string_view key) noexcept override {
    print_message(mark(call) + "pause " + printable(key) + ": over");
  }

  void limit_changed(const Call& call, const LimitChange& change) noexcept override {
    print_message(mark(call) + "concurrency " + printable(change.key) + ": from " +
                  std::to_string(change.from) + " to " + std::to_string(change.to));
  }

  void shared_state_changed(const Call& call, const SharedStateChange& change) noexcept override {
    print_message(mark(call) + "limits on " + printable(change.place) +
                  (change.degraded ? ": away (" + printable(change.why) + ")" : ": shared again"));
  }

  void shed(const Call& call, const Error& reason) noexcept override {
    print_message(mark(call) + "not sent: " + printable(reason.message));
  }

  void redirected(const Call& call, const Request& next) noexcept override {
    print_message(mark(call) + "redirect: " + next.method() + " " + url_of(next));
  }

  void call_ended(const Call& call, const Outcome& outcome) noexcept override {
    print_message(mark(call) + "done: " + printable(describe(outcome)));
  }

 private:
  [[nodiscard]] std::string colored(const Attempt& attempt) const {
    if (!in_color_) return attempt_text(attempt);
    const bool good = attempt.cls == Class::Success;
    const bool over = attempt.retried || attempt.race == Race::Lost;
    const auto* color = good ? kGreen : over ? kYellow : kRed;
    return color + attempt_text(attempt) + kPlain;
  }

  // Returns the start of each line about a call.
  [[nodiscard]] std::string mark(const Call& call) const {
    const auto* url = call.get<UrlOfRun>();
    return url == nullptr ? mark_ : mark_ + url->label;
  }

  bool in_color_;
  std::string mark_;
};

void print_headers(const std::string& mark, const Headers& headers) {
  for (const auto field : headers) {
    print_message(mark + std::string(field.name) + ": " +
                  printable(shown_value(field.name, field.value)));
  }
  print_message(mark);
}

// Returns the subject of the first certificate, " of CN = example.com", from libcurl's text.
std::string certificate_name(const ConnectionInfo& connection) {
  if (connection.certificates.empty()) return {};
  constexpr std::string_view kSubject = "Subject:";
  const auto& text = connection.certificates.front();
  const auto begin = text.find(kSubject);
  if (begin == std::string::npos) return {};
  const auto from = begin + kSubject.size();
  return " of " + printable(text.substr(from, text.find('\n', from) - from));
}

std::string address(const std::string& ip, int port) {
  const bool v6 = ip.find(':') != std::string::npos;
  return (v6 ? "[" + ip + "]:" : ip + ":") + std::to_string(port);
}

// Prints the connection of an attempt, for -v. If the connection is new, this includes the time
// from the start of the exchange until it was connected, and until TLS was set up:
//
//   * connection to 192.0.2.1:443 from 198.51.100.7:50312: new, connected after 20.1 ms
//   * TLS: TLSv1.3 / TLS_AES_256_GCM_SHA384, set up after 45.3 ms, certificate of CN = x is valid
//
// Prints nothing if there was no connection.
void print_connection(const Exchange& exchange, const ConnectionInfo& connection) {
  if (connection.remote_ip.empty()) return;
  const auto& timings = exchange.timings;
  auto line = "* connection to " + address(connection.remote_ip, connection.remote_port) +
              " from " + address(connection.local_ip, connection.local_port);
  if (connection.new_connections == 0) return print_message(line + ": used before");
  line += ": new";
  // `connected` and `secured` are 0 if the step was not completed, or if the exchange began on
  // another connection.
  if (timings.connected > Duration::zero()) {
    line += ", connected after " + duration_text(timings.connected);
  }
  print_message(line);
  if (timings.secured == Duration::zero()) return;     // without TLS
  const auto verify_error = connection.verify_result;  // 0: the certificate is valid
  const auto negotiated = connection.tls.empty() ? "" : printable(connection.tls) + ", ";
  print_message("* TLS: " + negotiated + "set up after " + duration_text(timings.secured) +
                ", certificate" + certificate_name(connection) +
                (verify_error == 0
                     ? " is valid"
                     : " is not valid (OpenSSL's error " + std::to_string(verify_error) + ")"));
}

// Prints a request for -v, each line after "> ": the first line, such as "GET /v1/items HTTP/1.1",
// and the headers without their secrets. The HTTP version is that of the response, and left out
// without one. libcurl sends a Host header that the request lacks, so it is printed as well.
void print_request(const Request& request, const Outcome& outcome) {
  const auto& url = request.parsed_url();
  if (!url) return;
  const auto text = url->without_secrets();  // "https://example.com/v1/items": without a query
  const auto host_begin = url->scheme().size() + 3;  // after "://"
  const auto path_begin = std::min(text.find('/', host_begin), text.size());
  const auto path = path_begin == text.size() ? "/" : printable(text.substr(path_begin));
  auto line = "> " + request.method() + " " + path;
  if (outcome) line += " HTTP/" + outcome->http_version;
  print_message(line);
  if (!request.headers().contains("Host")) {
    print_message("> Host: " + printable(text.substr(host_begin, path_begin - host_begin)));
  }
  print_headers("> ", request.headers());
}

class Verbose final : public Middleware {
 public:
  [[nodiscard]] std::string_view name() const override { return "verbose"; }

  Task<Outcome> handle(Request request, Call& call, Next next) override {
    auto connection = std::make_shared<ConnectionInfo>();
    listen(request, connection);
    add_attempt_headers(request, call);
    Outcome outcome = co_await next(request, call);
    print(request, outcome, *connection);
    co_return outcome;
  }

 private:
  static void listen(Request& request, const std::shared_ptr<ConnectionInfo>& connection) {
    auto& listener = request.edit_options().on_connection;
    listener = [connection, before = std::move(listener)](const ConnectionInfo& info) {
      *connection = info;
      if (before) before(info);
    };
  }

  static void print(const Request& request, const Outcome& outcome,
                    const ConnectionInfo& connection) {
    const auto& exchange = exchange_of(outcome);
    print_connection(exchange, connection);
    if (exchange.sent != Sent::Never) print_request(request, outcome);
    if (!outcome) return print_message("* " + printable(outcome.error().message));
    print_message("< HTTP/" + outcome->http_version + " " + std::to_string(outcome->status) + " " +
                  printable(outcome->reason));
    print_headers("< ", outcome->headers);
  }
};

}  // namespace

std::shared_ptr<Observer> tracer(bool in_color, std::string mark) {
  return std::make_shared<Tracer>(in_color, std::move(mark));
}

MiddlewarePtr verbose() { return std::make_shared<Verbose>(); }

}  // namespace httpretry::cli
