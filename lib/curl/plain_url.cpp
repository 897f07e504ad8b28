// Reads the URLs that programs send most without libcurl, in 2 600 instead of 10 000 instructions.
// Whatever is not surely the same to libcurl is left to libcurl; tests/curl/plain_url_test.cpp and
// fuzz/urls compare the two.
#include "url_parts.hpp"

#include "lib/http/text.hpp"

#include <algorithm>
#include <array>

namespace httpretry {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kHost = "abcdefghijklmnopqrstuvwxyz0123456789-.";
constexpr std::size_t kLongest = 64 * 1024;  // libcurl refuses what is over its own limits

enum Place : unsigned char { kInPath = 1, kInQuery = 2, kInHost = 4 };

// Unreserved characters and the usual delimiters of RFC 3986, but no percent sign.
constexpr auto kPlaces = [] {
  std::array<unsigned char, 256> places{};
  for (const char c : std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                       "0123456789-._~!$&'()*+,;=:@/")) {
    places[static_cast<unsigned char>(c)] = kInPath | kInQuery;
  }
  places['?'] = kInQuery;
  for (const char c : kHost) places[static_cast<unsigned char>(c)] |= kInHost;
  return places;
}();

bool all_in(std::string_view text, Place place) {
  return std::ranges::all_of(
      text, [&](char c) { return (kPlaces[static_cast<unsigned char>(c)] & place) != 0; });
}

// Four numbers, as libcurl writes them.
bool is_plain_address(std::string_view host) {
  for (int left = 3; left >= 0; --left) {
    const auto digits = host.substr(0, host.find('.'));
    const auto number = to_number<std::uint8_t>(digits);
    if (!number || (digits.size() > 1 && digits.front() == '0')) return false;
    host.remove_prefix(digits.size());
    if (host.empty()) return left == 0;
    host.remove_prefix(1);
  }
  return false;
}

// libcurl also reads "127.1" and "0x7f000001" as addresses: such hosts are left to it.
bool is_plain_host(std::string_view host) {
  if (host.empty() || !all_in(host, kInHost)) return false;
  return kDigits.find(host.front()) == std::string_view::npos || is_plain_address(host);
}

bool is_plain_path(std::string_view path) {
  if (!all_in(path, kInPath)) return false;
  for (auto dot = path.find("/."); dot != std::string_view::npos; dot = path.find("/.", dot + 1)) {
    const auto segment = path.substr(dot + 1, path.find('/', dot + 1) - dot - 1);
    if (segment == "." || segment == "..") return false;
  }
  return true;
}

// Takes the part of the text before any of `ends`.
std::string_view take_until(std::string_view& text, std::string_view ends) {
  // std::string_view::find_first_of calls memchr for each character: 500 instructions a URL.
  const auto* const end = std::find_first_of(text.begin(), text.end(), ends.begin(), ends.end());
  const auto part = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(part.size());
  return part;
}

}  // namespace

std::optional<Url> Url::Parts::read_plain(std::string_view text) {
  const bool tls = text.starts_with("https://");
  if ((!tls && !text.starts_with("http://")) || text.size() > kLongest) return std::nullopt;
  auto rest = text.substr(tls ? 8 : 7);
  const auto host = take_until(rest, ":/?");
  std::uint16_t port = tls ? 443 : 80;
  if (rest.starts_with(':')) {
    rest.remove_prefix(1);
    const auto digits = take_until(rest, "/?");
    const auto number = to_number<std::uint16_t>(digits);
    if (!number || *number == 0 || digits.front() == '0') return std::nullopt;
    port = *number;
  }
  const auto path = take_until(rest, "?");
  const auto query = rest.substr(std::min<std::size_t>(rest.size(), 1));
  const bool has_query = !rest.empty();
  if (!is_plain_host(host) || !path.starts_with('/') || !is_plain_path(path)) return std::nullopt;
  if (has_query && (query.empty() || !all_in(query, kInQuery))) return std::nullopt;
  return make(tls, false, host, port, path, query, nullptr);
}

}  // namespace httpretry
