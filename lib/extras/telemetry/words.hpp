// Formats values in the same way for metrics, spans and logs.
#pragma once

#include <httpretry/http/attempt.hpp>
#include <httpretry/http/time.hpp>
#include <httpretry/http/url.hpp>

#include <concepts>
#include <string>
#include <string_view>
#include <utility>

namespace httpretry::telemetry {

inline double to_seconds(Duration time) { return std::chrono::duration<double>(time).count(); }
inline double to_ms(Duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

// Whether guards made the send wait. They do so before its exchange begins, so only the attempt
// records this wait.
inline bool was_held_by_guards(const Attempt& attempt) {
  return attempt.queued_by != QueuedBy::Nothing && attempt.queued_by != QueuedBy::MaxInFlight;
}

// Returns the host, with an IPv6 address without brackets.
std::string address_of(const Url& url);
// Returns "192.0.2.1:443" or "[2001:db8::1]:443", for example. Empty if the peer is unknown.
std::string peer_text(const Peer& peer);

// As in the semantic conventions: the methods of RFC 9110, PATCH and QUERY.
bool is_known_method(std::string_view method);

// Returns the shortest text that reads back as the same number. Infinity and NaN are written as in
// Prometheus: +Inf, -Inf, NaN.
std::string number_text(double number);

// Returns the URL with all query values REDACTED, for files that users share.
std::string without_values(const Url& url);

// Appends a JSON array to a text, item by item. The destructor closes the array.
class JsonList {
 public:
  explicit JsonList(std::string& to) : JsonList(to, '[', ']') {}
  JsonList(const JsonList&) = delete;
  JsonList& operator=(const JsonList&) = delete;
  ~JsonList() { to_ += end_; }

  // Begins an item, which the caller appends to the result.
  std::string& item() { return std::exchange(first_, false) ? to_ : to_ += ','; }

 protected:
  JsonList(std::string& to, char begin, char end) : to_(to += begin), end_(end) {}

 private:
  std::string& to_;
  char end_;
  bool first_ = true;
};

// Does the same for a JSON object, member by member.
class JsonObject : JsonList {
 public:
  explicit JsonObject(std::string& to) : JsonList(to, '{', '}') {}

  // Begins a member, whose value the caller appends to the result.
  std::string& key(std::string_view name) { return item().append("\"").append(name).append("\":"); }
  void text(std::string_view name, std::string_view value);
  void number(std::string_view name, std::integral auto value) {
    key(name) += std::to_string(value);
  }
  // Writes null for infinity and NaN, which JSON does not have.
  void number(std::string_view name, double value);
  void boolean(std::string_view name, bool value) { key(name) += value ? "true" : "false"; }
  void null(std::string_view name) { key(name) += "null"; }
};

}  // namespace httpretry::telemetry
