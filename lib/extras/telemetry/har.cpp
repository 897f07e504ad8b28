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

void put_query(JsonObject& object, std::string_view query) {
  JsonList list(object.key("queryString"));
  while (!query.empty()) {
    const auto part = take_until(query, '&');
    const auto name = part.substr(0, part.find('='));
    JsonObject item(list.item());
    // An item without a name may itself be a secret.
    const bool named = name.size() < part.size();
    item.text("name", named ? name : std::string_view("REDACTED"));
    item.text("value", named ? "REDACTED" : "");
  }
}

void put_request(JsonObject& entry, const SendRecord& send) {
  JsonObject request(entry.key("request"));
  const auto& url = send.request.parsed_url();
  request.text("method", send.request.method());
  request.text("url", url ? telemetry::without_values(*url) : "");
  request.text("httpVersion", version_text(send.http_version));
  request.key("cookies") += "[]";
  put_headers(request, send.request.headers());
  put_query(request, url ? url->query() : std::string_view());
  request.number("headersSize", -1);
  request.number("bodySize", send.exchange.body_sent);
}

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
  response.number("headersSize", -1);
  response.number("bodySize", send.exchange.body_received);
  // The key that Chromium's developer tools use.
  if (send.error) response.text("_error", to_string(*send.error));
}

// Writes -1 for a step that did not happen. The other steps add up to the time of the entry, except
// `ssl`, which is part of `connect`.
void put_timings(JsonObject& entry, const Timings& timings) {
  const auto ms = [](Duration from, Duration to) { return std::max(milliseconds(to - from), 0.0); };
  const auto zero = Duration::zero();
  const auto connected = std::max(timings.connected, timings.secured);
  const auto ready = std::max(connected, timings.resolved);
  const bool has_sent = timings.sent != zero;
  const auto sent = std::max(timings.sent, ready);
  const bool answered = timings.first_byte != zero;
  const auto first_byte = answered ? std::max(timings.first_byte, sent) : sent;
  JsonObject phases(entry.key("timings"));
  phases.number("blocked", milliseconds(timings.queued));
  const auto step = [&](std::string_view name, bool happened, double took) {
    happened ? phases.number(name, took) : phases.number(name, -1);
  };
  step("dns", timings.resolved != zero, milliseconds(timings.resolved));
  step("connect", connected != zero, ms(timings.resolved, connected));
  step("ssl", timings.secured != zero, ms(timings.connected, timings.secured));
  phases.number("send", has_sent ? ms(ready, sent) : 0.0);
  const auto wait_from = has_sent ? sent : ready;
  phases.number("wait", answered ? ms(wait_from, first_byte) : ms(wait_from, timings.total));
  phases.number("receive", answered ? ms(first_byte, timings.total) : 0.0);
}

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
