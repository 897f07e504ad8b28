// How values are written in metrics, spans and logs: the same everywhere.
#pragma once

#include <httpretry/http/attempt.hpp>
#include <httpretry/http/time.hpp>
#include <httpretry/http/url.hpp>

#include <concepts>
#include <string>
#include <string_view>
#include <utility>

namespace httpretry::telemetry {

inline double seconds(Duration time) { return std::chrono::duration<double>(time).count(); }
inline double milliseconds(Duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

// Guards hold a send back before its exchange begins: only its attempt tells of that.
inline bool held_by_guards(const Attempt& attempt) {
  return attempt.queued_by != QueuedBy::Nothing && attempt.queued_by != QueuedBy::MaxInFlight;
}

// The host; an IPv6 address without brackets.
std::string address_of(const Url& url);
// "192.0.2.1:443", "[2001:db8::1]:443"; empty where the peer is not known.
std::string peer_text(const Peer& peer);

// As the conventions say: RFC 9110's, PATCH and QUERY.
bool is_known_method(std::string_view method);

// The shortest text that is the same number when it is read again; +Inf, -Inf and NaN as Prometheus
// writes them.
std::string number_text(double number);

// The URL with all values of its query REDACTED: for files that are passed on.
std::string without_values(const Url& url);

// Writes a JSON array, item by item, and ends it when it is destroyed.
class JsonList {
 public:
  explicit JsonList(std::string& to) : JsonList(to, '[', ']') {}
  JsonList(const JsonList&) = delete;
  JsonList& operator=(const JsonList&) = delete;
  ~JsonList() { to_ += end_; }

  // What comes next is the item.
  std::string& item() { return std::exchange(first_, false) ? to_ : to_ += ','; }

 protected:
  JsonList(std::string& to, char begin, char end) : to_(to += begin), end_(end) {}

 private:
  std::string& to_;
  char end_;
  bool first_ = true;
};

// The same for an object, member by member.
class JsonObject : JsonList {
 public:
  explicit JsonObject(std::string& to) : JsonList(to, '{', '}') {}

  // What comes next is the value.
  std::string& key(std::string_view name) { return item().append("\"").append(name).append("\":"); }
  void text(std::string_view name, std::string_view value);
  void number(std::string_view name, std::integral auto value) {
    key(name) += std::to_string(value);
  }
  void number(std::string_view name, double value);  // a number that JSON can have
  void boolean(std::string_view name, bool value) { key(name) += value ? "true" : "false"; }
  void null(std::string_view name) { key(name) += "null"; }
};

}  // namespace httpretry::telemetry
