// The name, status and attributes of a span, as they are exported.
#include "words.hpp"

#include <httpretry/policy/policy_set.hpp>
#include <httpretry/telemetry/traces.hpp>

namespace httpretry {
namespace {

using telemetry::address_of;
using telemetry::to_seconds;

// Returns the path of the endpoint if it is a pattern. Otherwise the name of the span would only
// repeat the URL.
std::string_view template_of(const Span& span) {
  if (!span.policy) return {};
  const std::string_view path = span.policy->path;
  return path.find_first_of("{*") == std::string_view::npos ? std::string_view() : path;
}

// Returns "503" or "timeout", for example; empty if the span is not an error.
std::string error_type(const Span& span) {
  if (span.outcome() != Span::Status::Error) return {};
  if (span.error) return std::string(to_string(*span.error));
  return span.status != 0 ? std::to_string(span.status) : std::string(to_string(span.stop_reason));
}

class Attributes {
 public:
  explicit Attributes(const Span& span) : span_(span) { all_.reserve(24); }

  // Returns the attributes of a span for a whole call.
  std::vector<SpanAttribute> of_call() {
    if (span_.policy) {
      const auto& policy = *span_.policy;
      text("httpretry.policy", policy.name.empty() ? policy.preset : policy.name);
      text("httpretry.endpoint", policy.endpoint);
    }
    number("httpretry.attempts", span_.attempts);
    text("httpretry.stop_reason", std::string(to_string(span_.stop_reason)));
    if (span_.from_fallback) all_.push_back({"httpretry.fallback", true});
    all_.push_back({"httpretry.elapsed", to_seconds(span_.end - span_.start)});
    text("error.type", error_type(span_));
    return std::move(all_);
  }

  // Returns the attributes of a span for one send, which follow the semantic conventions. Texts
  // that are empty are left out.
  std::vector<SpanAttribute> of_send() {
    method();
    if (span_.url) {
      text("server.address", address_of(*span_.url));
      number("server.port", span_.url->port());
      text("url.full",
           span_.hide_query ? telemetry::without_values(*span_.url) : redacted(*span_.url));
    }
    text("url.template", std::string(template_of(span_)));
    if (span_.status != 0) number("http.response.status_code", span_.status);
    text("error.type", error_type(span_));
    if (span_.resend_count > 0) number("http.request.resend_count", span_.resend_count);
    if (const auto& peer = span_.exchange.peer; !peer.address().empty()) {
      text("network.peer.address", std::string(peer.address()));
      number("network.peer.port", peer.port);
    }
    text("network.protocol.version", span_.http_version);
    decision();
    return std::move(all_);
  }

 private:
  void text(std::string_view key, std::string value) {
    if (value.empty()) return;
    // Assigns each member: if the whole attribute is moved, g++ 12 warns about an uninitialized
    // value without reason.
    auto& added = all_.emplace_back();
    added.key = key;
    added.value = std::move(value);
  }
  void number(std::string_view key, std::int64_t value) { all_.push_back({key, value}); }
  void time(std::string_view key, const std::optional<Duration>& value) {
    if (value) all_.push_back({key, to_seconds(*value)});
  }

  void method() {
    text("http.request.method", span_.known_method ? span_.method : "_OTHER");
    if (!span_.known_method) text("http.request.method_original", span_.method);
  }

  // Adds the library's own attributes. The decision is known only if the retry middleware judged
  // the send.
  void decision() {
    if (span_.attempt != 0) number("httpretry.attempt", span_.attempt);
    text("httpretry.sent", std::string(to_string(span_.exchange.sent)));
    if (span_.exchange.wire_sends > 1) number("httpretry.wire_sends", span_.exchange.wire_sends);
    if (!span_.judged) return;
    text("httpretry.class", std::string(to_string(span_.cls)));
    text("httpretry.rule", span_.rule);
    time("httpretry.wait", span_.wait);
    time("httpretry.backoff", span_.backoff);
    time("httpretry.server_delay", span_.server_delay);
    if (span_.budget_left) number("httpretry.budget_left", *span_.budget_left);
    if (span_.hedge_of != 0) number("httpretry.hedge_of", span_.hedge_of);
    if (span_.lost) all_.push_back({"httpretry.lost", true});
  }

  const Span& span_;
  std::vector<SpanAttribute> all_;
};

}  // namespace

std::string Span::name() const {
  if (kind == Kind::Internal) return "httpretry.call";
  std::string name = known_method ? method : "HTTP";
  if (const auto path = template_of(*this); !path.empty()) name.append(" ").append(path);
  return name;
}

Span::Status Span::outcome() const {
  if (error && *error == Errc::Canceled) return Status::Unset;
  if (kind == Kind::Internal) {
    const bool good = stop_reason == Reason::Success || stop_reason == Reason::Canceled;
    return good ? Status::Unset : Status::Error;
  }
  return error || status >= 400 ? Status::Error : Status::Unset;
}

std::vector<SpanAttribute> Span::attributes() const {
  Attributes attributes(*this);
  return kind == Kind::Internal ? attributes.of_call() : attributes.of_send();
}

}  // namespace httpretry
