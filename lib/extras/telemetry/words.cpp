#include "words.hpp"

#include "lib/core/base/redacted.hpp"
#include "lib/core/base/text.hpp"

#include <httpretry/client/report.hpp>
#include <httpretry/telemetry/traces.hpp>

#include <algorithm>
#include <array>
#include <cmath>

namespace httpretry {
namespace telemetry {
namespace {

// Redacts user and password, and the values of the query items that `hides` selects.
std::string redacted_url(const Url& url, bool (*hides)(std::string_view name)) {
  auto text = url.to_string();
  // to_string() omits user and password; this shows that the URL had them.
  if (url.has_userinfo()) text.insert(url.scheme().size() + 3, "REDACTED:REDACTED@");
  return redacted(text, hides);
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
  if (method == "GET") return true;  // the most frequent one
  constexpr std::array<std::string_view, 10> kKnown{
      "GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS", "QUERY", "TRACE", "CONNECT"};
  return std::ranges::find(kKnown, method) != kKnown.end();
}

std::string number_text(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "+Inf" : "-Inf";
  return text_of(number);
}

std::string without_values(const Url& url) {
  return redacted_url(url, [](std::string_view /*name*/) { return true; });
}

void JsonObject::text(std::string_view name, std::string_view value) {
  key(name) += quote_json(value);
}

void JsonObject::number(std::string_view name, double value) {
  key(name) += std::isfinite(value) ? number_text(value) : "null";
}

}  // namespace telemetry

std::string redacted(const Url& url) { return telemetry::redacted_url(url, tells_secret); }

}  // namespace httpretry
