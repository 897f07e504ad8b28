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
  explicit Attributes(const Span& span) : span_(span) { attributes_.reserve(24); }

  // Returns the attributes of a span for a whole call.
  std::vector<SpanAttribute> of_call() {
    if (span_.policy) {
      const auto& policy = *span_.policy;
      add_text("httpretry.policy", policy.name.empty() ? policy.preset : policy.name);
      add_text("httpretry.endpoint", policy.endpoint);
    }
    add_number("httpretry.attempts", span_.attempts);
    add_text("httpretry.stop_reason", std::string(to_string(span_.stop_reason)));
    if (span_.from_fallback) attributes_.push_back({"httpretry.fallback", true});
    attributes_.push_back({"httpretry.elapsed", to_seconds(span_.end - span_.start)});
    add_text("error.type", error_type(span_));
    return std::move(attributes_);
  }

  // Returns the attributes of a span for one send, with the names that OpenTelemetry's conventions
  // define. The functions below append to `attributes_`; a text that is empty is left out.
  std::vector<SpanAttribute> of_send() {
    add_method();
    if (span_.url) {
      add_text("server.address", address_of(*span_.url));
      add_number("server.port", span_.url->port());
      // without_values() hides all query values, redacted() only those that look like secrets.
      add_text("url.full",
               span_.hide_query ? telemetry::without_values(*span_.url) : redacted(*span_.url));
    }
    add_text("url.template", std::string(template_of(span_)));
    if (span_.status != 0) add_number("http.response.status_code", span_.status);
    add_text("error.type", error_type(span_));
    if (span_.resend_count > 0) add_number("http.request.resend_count", span_.resend_count);
    if (const auto& peer = span_.exchange.peer; !peer.address().empty()) {
      add_text("network.peer.address", std::string(peer.address()));
      add_number("network.peer.port", peer.port);
    }
    add_text("network.protocol.version", span_.http_version);
    add_library_attributes();
    return std::move(attributes_);
  }

 private:
  void add_text(std::string_view key, std::string value) {
    if (value.empty()) return;
    // Assigns each member: if the whole attribute is moved, g++ 12 warns about an uninitialized
    // value without reason.
    auto& added = attributes_.emplace_back();
    added.key = key;
    added.value = std::move(value);
  }
  void add_number(std::string_view key, std::int64_t value) { attributes_.push_back({key, value}); }
  void add_time(std::string_view key, const std::optional<Duration>& value) {
    if (value) attributes_.push_back({key, to_seconds(*value)});
  }

  void add_method() {
    add_text("http.request.method", span_.known_method ? span_.method : "_OTHER");
    if (!span_.known_method) add_text("http.request.method_original", span_.method);
  }

  // Adds the library's own attributes. The decision is known only if the retry middleware judged
  // the send.
  void add_library_attributes() {
    if (span_.attempt != 0) add_number("httpretry.attempt", span_.attempt);
    add_text("httpretry.sent", std::string(to_string(span_.exchange.sent)));
    const auto wire_sends = span_.exchange.wire_sends;
    if (wire_sends > 1) add_number("httpretry.wire_sends", wire_sends);
    if (!span_.judged) return;
    add_text("httpretry.class", std::string(to_string(span_.cls)));
    add_text("httpretry.rule", span_.rule);
    add_time("httpretry.wait", span_.wait);
    add_time("httpretry.backoff", span_.backoff);
    add_time("httpretry.server_delay", span_.server_delay);
    if (span_.budget_left) add_number("httpretry.budget_left", *span_.budget_left);
    if (span_.hedge_of != 0) add_number("httpretry.hedge_of", span_.hedge_of);
    if (span_.lost) attributes_.push_back({"httpretry.lost", true});
  }

  const Span& span_;
  std::vector<SpanAttribute> attributes_;
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
