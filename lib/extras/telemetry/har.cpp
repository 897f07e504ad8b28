#include "send_records.hpp"
#include "words.hpp"

#include "lib/core/base/text.hpp"

#include <httpretry/client/report.hpp>
#include <httpretry/http/shown_value.hpp>
#include <httpretry/telemetry/har.hpp>

#include <algorithm>
#include <mutex>

namespace httpretry {

using telemetry::JsonList;
using telemetry::JsonObject;
using telemetry::milliseconds;
using telemetry::SendRecord;

struct Har::State {
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

void put_request(JsonObject& entry, const SendRecord& send) {
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

// Writes the response of a send. If there was none, the status is 0 and "_error" has the reason.
void put_response(JsonObject& entry, const SendRecord& send) {
  JsonObject response(entry.key("response"));
  response.number("status", send.status);
  response.text("statusText", send.reason);
  response.text("httpVersion", version_text(send.http_version));
  response.key("cookies") += "[]";
  put_headers(response, send.headers);
  {
    JsonObject content(response.key("content"));
    content.number("size", send.exchange.body_received);
    content.text("mimeType", send.headers.get("Content-Type").value_or("x-unknown"));
  }
  response.text("redirectURL", shown_value("Location", send.headers["Location"]));
  response.number("headersSize", kUnknownSize);
  response.number("bodySize", send.exchange.body_received);
  // The key that Chromium's developer tools use.
  if (send.error) response.text("_error", to_string(*send.error));
}

// Writes the duration of each phase, or -1 for a phase that did not happen. The library's timings
// are points in time since the exchange began, or 0 for what did not happen. The durations add up
// to the time of the entry, except `ssl`, which is a part of `connect`.
void put_timings(JsonObject& entry, const Timings& timings) {
  // Phases may overlap; a duration below 0 would be invalid.
  const auto ms = [](Duration from, Duration to) { return std::max(milliseconds(to - from), 0.0); };
  const auto zero = Duration::zero();
  const auto connected = std::max(timings.connected, timings.secured);
  const auto ready = std::max(connected, timings.resolved);  // the connection can be used
  const bool has_sent = timings.sent != zero;
  const auto sent = has_sent ? std::max(timings.sent, ready) : ready;
  const bool has_response = timings.first_byte != zero;
  const auto first_byte = has_response ? std::max(timings.first_byte, sent) : timings.total;
  JsonObject phases(entry.key("timings"));
  phases.number("blocked", milliseconds(timings.queued));
  const auto put_optional_phase = [&](std::string_view name, bool happened, double duration) {
    happened ? phases.number(name, duration) : phases.number(name, -1);
  };
  put_optional_phase("dns", timings.resolved != zero, milliseconds(timings.resolved));
  put_optional_phase("connect", connected != zero, ms(timings.resolved, connected));
  put_optional_phase("ssl", timings.secured != zero, ms(timings.connected, timings.secured));
  phases.number("send", ms(ready, sent));
  phases.number("wait", ms(sent, first_byte));
  phases.number("receive", ms(first_byte, timings.total));
}

// Returns one line for readers: the attempt, its error, what the attempt was a hedge of, the
// decision and the wait. `attempt` is nullptr if the send was not judged.
std::string comment_of(const SendRecord& send, const Attempt* attempt) {
  std::string text;
  if (send.attempt != 0) text = "attempt " + std::to_string(send.attempt) + ": ";
  if (send.error) text += std::string(to_string(*send.error)) + ": " + send.message + "; ";
  if (attempt != nullptr && attempt->hedge) {
    text += "hedge of attempt " + std::to_string(attempt->hedge->of) + " after " +
            duration_text(attempt->hedge->after) + "; ";
  }
  if (attempt == nullptr) return text + "sent: " + std::string(to_string(send.exchange.sent));
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
  // Appends an entry to the archive. `attempt` is nullptr if the send was not judged.
  void on_send_ended(const Call& call, const SendRecord& send, const Attempt* attempt) override {
    std::string json;
    {
      JsonObject entry(json);
      entry.text("startedDateTime", rfc3339(send.at));
      const auto& timings = send.exchange.timings;
      entry.number("time", milliseconds(timings.queued + timings.total));
      put_request(entry, send);
      put_response(entry, send);
      entry.key("cache") += "{}";
      put_timings(entry, timings);
      if (const auto peer = send.exchange.peer; !peer.address().empty()) {
        entry.text("serverIPAddress", peer.address());
      }
      entry.text("comment", "call " + std::to_string(call.id()) + ", " + comment_of(send, attempt));
    }
    const std::lock_guard lock(state_.mutex);
    state_.entries.append(state_.entries.empty() ? "" : ",\n").append(json);
    ++state_.count;
  }

  Har::State& state_;
};

}  // namespace

Har::Har() : state_(std::make_shared<State>()) {
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
