#include "send_records.hpp"
#include "words.hpp"

#include "lib/core/base/encoding.hpp"
#include "lib/core/base/text.hpp"

#include <httpretry/client/report.hpp>
#include <httpretry/http/shown_value.hpp>
#include <httpretry/telemetry/har.hpp>

#include <algorithm>
#include <mutex>

namespace httpretry {

using telemetry::JsonList;
using telemetry::JsonObject;
using telemetry::SendRecord;
using telemetry::to_ms;

struct Har::State {
  HarOptions options;
  std::mutex mutex;
  std::string entries;
  std::size_t count = 0;
  std::shared_ptr<Observer> observer;
};

namespace {

// Returns "HTTP/1.1", for example. Readers accept any text; browsers write "http/2.0".
std::string version_text(const std::string& version) {
  return version.empty() ? "HTTP/1.1" : version == "2" ? "HTTP/2" : "HTTP/" + version;
}

void put_headers(JsonObject& object, const Headers& headers) {
  JsonList list(object.key("headers"));
  for (const auto field : headers) {
    JsonObject header(list.item());
    header.text("name", field.name);
    header.text("value", shown_value(field.name, field.value));
  }
}

// Writes the names of the query's items, with all values REDACTED.
void put_query(JsonObject& object, std::string_view query) {
  JsonList list(object.key("queryString"));
  while (!query.empty()) {
    const auto item = take_until(query, '&');
    const auto name = item.substr(0, item.find('='));
    JsonObject entry(list.item());
    // An item that is not NAME=VALUE may itself be a secret.
    const bool has_name = name.size() < item.size();
    entry.text("name", has_name ? name : std::string_view("REDACTED"));
    entry.text("value", has_name ? "REDACTED" : "");
  }
}

// In HAR, a size of -1 means unknown.
constexpr int kUnknownSize = -1;

void put_har_request(JsonObject& entry, const SendRecord& send) {
  JsonObject request(entry.key("request"));
  const auto& url = send.request.parsed_url();
  request.text("method", send.request.method());
  request.text("url", url ? telemetry::without_values(*url) : "");
  request.text("httpVersion", version_text(send.http_version));
  request.key("cookies") += "[]";
  put_headers(request, send.request.headers());
  put_query(request, url ? url->query() : std::string_view());
  request.number("headersSize", kUnknownSize);
  request.number("bodySize", send.exchange.body_sent);
}

// Writes the body of a response. In HAR, a body is decoded. If the client did not decode it, as
// `is_encoded` says, the member "_encoded" tells readers.
void put_body(JsonObject& content, const std::string& body, bool is_encoded) {
  const bool is_text = is_utf8(body);
  content.text("text", is_text ? body : encode_base64(body));
  if (!is_text) content.text("encoding", "base64");
  if (is_encoded) content.boolean("_encoded", true);
}

// Writes the member "response" of an entry in a HAR file, the format in which browsers save their
// network traffic. If there was no response, its "status" is 0. If the send failed, "_error" has
// the name of the error.
void put_response(JsonObject& entry, const SendRecord& send) {
  JsonObject response(entry.key("response"));
  response.number("status", send.status);
  response.text("statusText", send.reason);
  response.text("httpVersion", version_text(send.http_version));
  response.key("cookies") += "[]";  // required, but the headers have them
  put_headers(response, send.headers);
  const bool is_encoded = send.headers.contains("Content-Encoding");
  {  // the destructor closes the object
    JsonObject content(response.key("content"));
    // The body is kept only if the options ask for it. Otherwise the size is that on the wire.
    content.number("size", send.body ? send.body->size() : send.exchange.body_received);
    content.text("mimeType", send.headers.get("Content-Type").value_or("x-unknown"));
    if (send.body) put_body(content, *send.body, is_encoded);
  }
  // shown_value() hides secrets.
  response.text("redirectURL", shown_value("Location", send.headers["Location"]));
  response.number("headersSize", kUnknownSize);
  response.number("bodySize", send.exchange.body_received);
  // Chromium's developer tools use the same key.
  if (send.error) response.text("_error", to_string(*send.error));
}

// Writes the member "timings" of an entry in a HAR file: the duration of each phase of the
// exchange. `timings` has the time of each step, since the exchange began, or 0 for a step that did
// not happen. The phases add up to the time of the entry, except "ssl", which is part of "connect".
void put_har_timings(JsonObject& entry, const Timings& timings) {
  // Returns 0 for steps in the wrong order, because a duration below 0 would be invalid.
  const auto phase_ms = [](Duration from, Duration to) { return std::max(to_ms(to - from), 0.0); };
  const auto zero = Duration::zero();
  // Each phase begins when the one before it ends. `timings.sent` is when sending began, so "wait"
  // includes the sending. If the request was not sent, "send" has no length. If there was no
  // response, "wait" lasts until the end of the exchange.
  const auto connect_end = std::max(timings.connected, timings.secured);
  const auto ready = std::max(connect_end, timings.resolved);  // the connection can be used
  const bool has_sent = timings.sent != zero;
  const auto send_end = has_sent ? std::max(timings.sent, ready) : ready;
  const bool has_response = timings.first_byte != zero;
  const auto wait_end = has_response ? std::max(timings.first_byte, send_end) : timings.total;
  JsonObject phases(entry.key("timings"));
  phases.number("blocked", to_ms(timings.queued));
  const auto put_optional_phase = [&](std::string_view name, bool happened, double duration) {
    phases.number(name, happened ? duration : -1);  // in HAR, -1: no such phase
  };
  put_optional_phase("dns", timings.resolved != zero, to_ms(timings.resolved));
  put_optional_phase("connect", connect_end != zero, phase_ms(timings.resolved, connect_end));
  put_optional_phase("ssl", timings.secured != zero, phase_ms(timings.connected, timings.secured));
  phases.number("send", phase_ms(ready, send_end));
  phases.number("wait", phase_ms(send_end, wait_end));
  phases.number("receive", phase_ms(wait_end, timings.total));
}

// Returns the comment of an entry: a line for people that says which attempt the send belongs to,
// and what was decided after it, for example "attempt 1: transient (status 503), sent: answered;
// retry in 1.2s". After "sent: ", it says whether the server may have received the request: never,
// maybe or answered. `attempt` is nullptr if no decision was made after this send.
std::string comment_of(const SendRecord& send, const Attempt* attempt) {
  std::string text;
  // The number is 0 without the retry middleware.
  if (send.attempt != 0) text = "attempt " + std::to_string(send.attempt) + ": ";
  if (send.error) text += std::string(to_string(*send.error)) + ": " + send.message + "; ";
  if (attempt != nullptr && attempt->hedge) {  // sent because another send had no response yet
    text += "hedge of attempt " + std::to_string(attempt->hedge->of) + " after " +
            duration_text(attempt->hedge->after) + "; ";
  }
  if (attempt == nullptr) return text + "sent: " + std::string(to_string(send.exchange.sent));
  // What the outcome means for a retry, and the rule that says so.
  text += std::string(to_string(attempt->cls)) + " (" + attempt->rule +
          "), sent: " + std::string(to_string(attempt->sent));
  if (!attempt->retried) return text + "; no retry";
  text += "; retry in " + duration_text(attempt->wait.value_or(Duration::zero()));
  if (attempt->server_delay) {
    text += " (the server asked for " + duration_text(*attempt->server_delay) + ")";
  }
  return text;
}

class HarWriter final : public telemetry::SendWriter {
 public:
  explicit HarWriter(Har::State& state) : state_(state) {}

 private:
  // Appends an entry for a send to the archive. `attempt` has what the retry middleware decided
  // after it, and is nullptr if it decided nothing. May run on several threads at once.
  void on_send_ended(const Call& call, const SendRecord& send, const Attempt* attempt) override {
    std::string json;
    {  // the destructor closes the object
      JsonObject entry(json);
      entry.text("startedDateTime", rfc3339(send.at));
      const auto& timings = send.exchange.timings;
      entry.number("time", to_ms(timings.queued + timings.total));
      put_har_request(entry, send);
      put_response(entry, send);
      entry.key("cache") += "{}";  // required, but unknown
      put_har_timings(entry, timings);
      if (const auto peer = send.exchange.peer; !peer.address().empty()) {
        entry.text("serverIPAddress", peer.address());
      }
      entry.text("comment", "call " + std::to_string(call.id()) + ", " + comment_of(send, attempt));
    }
    const std::lock_guard lock(state_.mutex);
    state_.entries.append(state_.entries.empty() ? "" : ",\n").append(json);
    ++state_.count;
  }

  [[nodiscard]] std::uint64_t max_body() const override { return state_.options.max_body; }

  Har::State& state_;
};

}  // namespace

Har::Har(HarOptions options) : state_(std::make_shared<State>()) {
  state_->options = options;
  state_->observer = std::make_shared<HarWriter>(*state_);
}
Har::~Har() = default;

std::shared_ptr<Observer> Har::observer() const { return {state_, state_->observer.get()}; }

std::size_t Har::entries() const {
  const std::lock_guard lock(state_->mutex);
  return state_->count;
}

std::string Har::text() const {
  const std::lock_guard lock(state_->mutex);
  return "{\"log\":{\"version\":\"1.2\",\"creator\":{\"name\":\"httpretry\",\"version\":\"" +
         std::string(HTTPRETRY_VERSION) + "\"},\"entries\":[\n" + state_->entries + "\n]}}\n";
}

}  // namespace httpretry
