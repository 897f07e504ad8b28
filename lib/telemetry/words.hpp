// How values are written in metrics, spans and logs: the same everywhere.
#pragma once

#include <httpretry/http/attempt.hpp>
#include <httpretry/http/time.hpp>
#include <httpretry/http/url.hpp>

#include <concepts>
#include <string>
#include <string_view>

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

// Writes a JSON object, member by member.
class JsonObject {
 public:
  explicit JsonObject(std::string& to) : to_(to) { to_ += '{'; }
  JsonObject(const JsonObject&) = delete;
  JsonObject& operator=(const JsonObject&) = delete;
  ~JsonObject() { to_ += '}'; }

  // What comes next is the value.
  std::string& key(std::string_view name);
  void text(std::string_view name, std::string_view value);
  void number(std::string_view name, std::integral auto value) {
    key(name) += std::to_string(value);
  }
  void number(std::string_view name, double value);  // a number that JSON can have
  void boolean(std::string_view name, bool value) { key(name) += value ? "true" : "false"; }
  void null(std::string_view name) { key(name) += "null"; }

 private:
  std::string& to_;
  bool first_ = true;
};

}  // namespace httpretry::telemetry
