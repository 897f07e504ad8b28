#include "cli/text.hpp"

#include <httpretry/http/headers.hpp>

#include <algorithm>
#include <array>
#include <cstdio>

namespace httpretry::cli {
namespace {

template <class... Args>
std::string formatted(const char* format, Args... args) {
  std::array<char, 64> text{};
  const auto size = std::snprintf(text.data(), text.size(), format, args...);
  return {text.data(), std::min(static_cast<std::size_t>(size), text.size() - 1)};
}

double as_seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

std::string seconds(Duration time) {
  const bool short_time = time < std::chrono::seconds(1);
  return formatted(short_time ? "%.3f s" : "%.1f s", as_seconds(time));
}

std::string precise(Duration time) {
  using namespace std::chrono_literals;
  if (time == Duration::zero()) return "0 s";
  if (time < 1ms) return formatted("%.2f us", as_seconds(time) * 1e6);
  if (time < 100ms) return formatted("%.2f ms", as_seconds(time) * 1e3);
  return formatted("%.2f s", as_seconds(time));
}

std::string with_scheme(const std::string& url) {
  const auto scheme = url.find("://");
  const bool has_one = scheme != std::string::npos && url.find_first_of("/?#") > scheme;
  // "http:a" is no host with the port "a". Before "/a" a scheme would make "a" the host.
  const auto word = url.substr(0, url.find(':'));
  const bool malformed =
      url.starts_with('/') ||
      (word != url && (equal_ignoring_case(word, "http") || equal_ignoring_case(word, "https")));
  return has_one || malformed ? url : "http://" + url;
}

// Where its parts end is unknown, so this rather removes too much.
std::string without_secrets(std::string_view malformed_url) {
  std::string shown(malformed_url.substr(0, malformed_url.find_first_of("?#")));
  const auto scheme = shown.find("://");
  const auto begin = scheme == std::string::npos ? 0 : scheme + 3;
  const auto at = shown.rfind('@');
  if (at != std::string::npos && at >= begin) shown.erase(begin, at + 1 - begin);
  return printable(shown);
}

}  // namespace httpretry::cli
