#include "words.hpp"

#include <httpretry/client/report.hpp>
#include <httpretry/telemetry/traces.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace httpretry {
namespace telemetry {
namespace {

constexpr std::string_view kRedacted = "REDACTED";

// The names that the conventions list, as they are written there.
constexpr std::array<std::string_view, 7> kSecretNames{
    "X-Amz-Signature", "X-Amz-Credential", "X-Amz-Security-Token",
    "AWSAccessKeyId",  "Signature",        "sig",
    "X-Goog-Signature"};
// And what other names tell.
constexpr std::array<std::string_view, 8> kSecretWords{
    "key", "token", "secret", "password", "credential", "signature", "auth", "session"};

bool tells_secret_value(std::string_view name) {
  if (std::ranges::find(kSecretNames, name) != kSecretNames.end()) return true;
  std::string lower(name);
  for (auto& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return std::ranges::any_of(kSecretWords,
                             [&](auto word) { return lower.find(word) != std::string::npos; });
}

template <class Hides>
std::string shown(const Url& url, const Hides& hides) {
  std::string text = url.to_string();
  if (url.has_userinfo()) text.insert(url.scheme().size() + 3, "REDACTED:REDACTED@");
  const auto query = url.query();
  if (query.empty()) return text;
  text.erase(text.find('?'));
  char separator = '?';
  for (auto rest = query; !rest.empty();) {
    const auto end = std::min(rest.find('&'), rest.size());
    const auto item = rest.substr(0, end);
    const auto equals = item.find('=');
    const auto name = item.substr(0, equals);
    text += std::exchange(separator, '&');
    if (equals == std::string_view::npos) {
      // A query without a name may be the secret itself.
      text.append(hides(name) || name == query ? kRedacted : item);
    } else {
      text.append(name).append("=").append(hides(name) ? kRedacted : item.substr(equals + 1));
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return text;
}

}  // namespace

std::string address_of(const Url& url) {
  const auto host = url.host();
  return std::string(host.starts_with('[') ? host.substr(1, host.size() - 2) : host);
}

std::string peer_text(const Peer& peer) {
  if (peer.address().empty()) return {};
  const std::string address(peer.address());
  const bool six = address.find(':') != std::string::npos;
  return (six ? "[" + address + "]" : address) + ":" + std::to_string(peer.port);
}

bool is_known_method(std::string_view method) {
  if (method == "GET") return true;  // most are
  constexpr std::array<std::string_view, 10> kKnown{
      "GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS", "QUERY", "TRACE", "CONNECT"};
  return std::ranges::find(kKnown, method) != kKnown.end();
}

std::string number_text(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "+Inf" : "-Inf";
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  return {digits.data(), end};
}

std::string without_values(const Url& url) {
  return shown(url, [](std::string_view /*name*/) { return true; });
}

std::string& JsonObject::key(std::string_view name) {
  if (!std::exchange(first_, false)) to_ += ',';
  to_.append("\"").append(name).append("\":");
  return to_;
}

void JsonObject::text(std::string_view name, std::string_view value) {
  key(name) += quote_json(value);
}

void JsonObject::number(std::string_view name, double value) {
  key(name) += std::isfinite(value) ? number_text(value) : "null";
}

}  // namespace telemetry

std::string redacted(const Url& url) {
  return telemetry::shown(url, telemetry::tells_secret_value);
}

}  // namespace httpretry
