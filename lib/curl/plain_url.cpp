// Reads the URLs that programs send most without libcurl, in 1 100 instead of 10 000 instructions.
// Whatever is not surely the same to libcurl is left to libcurl; tests/curl/plain_url_test.cpp and
// fuzz/urls compare the two.
#include "url_parts.hpp"

#include "lib/http/text.hpp"

#include <array>

namespace httpretry {
namespace {

constexpr std::size_t kLongest = 64 * 1024;  // libcurl refuses what is over its own limits

enum Place : unsigned char { kInPath = 1, kInQuery = 2, kInHost = 4, kInPort = 8 };

// Unreserved characters and the usual delimiters of RFC 3986, but no percent sign.
constexpr auto kPlaces = [] {
  std::array<unsigned char, 256> places{};
  for (const char c : std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                       "0123456789-._~!$&'()*+,;=:@/")) {
    places[static_cast<unsigned char>(c)] = kInPath | kInQuery;
  }
  places['?'] = kInQuery;
  for (const char c : std::string_view("abcdefghijklmnopqrstuvwxyz0123456789-.")) {
    places[static_cast<unsigned char>(c)] |= kInHost;
  }
  for (char c = '0'; c <= '9'; ++c) places[static_cast<unsigned char>(c)] |= kInPort;
  return places;
}();

// Takes the characters that may stand in `place` off the front of the text.
std::string_view take_all(std::string_view& text, Place place) {
  std::size_t size = 0;
  while (size < text.size() && (kPlaces[static_cast<unsigned char>(text[size])] & place) != 0) {
    ++size;
  }
  const auto taken = text.substr(0, size);
  text.remove_prefix(size);
  return taken;
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

// libcurl also reads "127.1" and "0x7f000001" as addresses: such hosts are left to it. So are "."
// and "a..", which are no names.
bool is_plain_host(std::string_view host) {
  if (host.empty() || host == "." || host.ends_with("..")) return false;
  return !is_digit(host.front()) || is_plain_address(host);
}

bool is_plain_path(std::string_view path) {
  if (!path.starts_with('/')) return false;
  for (auto dot = path.find("/."); dot != std::string_view::npos; dot = path.find("/.", dot + 1)) {
    const auto segment = path.substr(dot + 1, path.find('/', dot + 1) - dot - 1);
    if (segment == "." || segment == "..") return false;
  }
  return true;
}

}  // namespace

std::optional<Url> Url::Parts::read_plain(std::string_view text) {
  const bool tls = text.starts_with("https://");
  if ((!tls && !text.starts_with("http://")) || text.size() > kLongest) return std::nullopt;
  auto rest = text.substr(tls ? 8 : 7);
  const auto host = take_all(rest, kInHost);
  std::uint16_t port = tls ? 443 : 80;
  if (rest.starts_with(':')) {
    rest.remove_prefix(1);
    const auto digits = take_all(rest, kInPort);
    const auto number = to_number<std::uint16_t>(digits);
    if (!number || *number == 0 || digits.front() == '0') return std::nullopt;
    port = *number;
  }
  const auto path = take_all(rest, kInPath);
  std::string_view query;
  if (rest.starts_with('?')) {
    rest.remove_prefix(1);
    query = take_all(rest, kInQuery);
    if (query.empty()) return std::nullopt;
  }
  if (!rest.empty() || !is_plain_host(host) || !is_plain_path(path)) return std::nullopt;
  return make(tls, false, host, port, path, query, nullptr);
}

}  // namespace httpretry
