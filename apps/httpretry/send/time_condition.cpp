#include "send/time_condition.hpp"

#include <sys/stat.h>
#include <array>
#include <ctime>

namespace httpretry::cli {
namespace {

// Those of HTTP, and the usual ones of people and of `date`. Without a time zone it is GMT, as for
// curl.
constexpr const char* kFormats[] = {
    "%a, %d %b %Y %H:%M:%S %Z",
    "%A, %d-%b-%y %H:%M:%S %Z",
    "%a %b %d %H:%M:%S %Y",
    "%a, %d %b %Y %H:%M:%S %z",
    "%d %b %Y %H:%M:%S %z",
    "%d %b %Y %H:%M:%S %Z",
    "%d %b %Y %H:%M:%S",
    "%d %b %Y %H:%M",
    "%d %b %Y",
    "%a %d %b %Y %H:%M:%S",
    "%a %b %d %H:%M:%S %Z %Y",
    "%b %d %Y",
    "%b %d, %Y",
    "%Y-%m-%dT%H:%M:%S%z",
    "%Y-%m-%dT%H:%M:%SZ",
    "%Y-%m-%d %H:%M:%S %z",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%d",
    "%Y%m%d %H:%M:%S",
    "%Y%m%d",
};

std::optional<std::time_t> as_date(const std::string& text) {
  for (const char* format : kFormats) {
    std::tm parts{};
    const char* end = ::strptime(text.c_str(), format, &parts);
    if (end == nullptr || *end != '\0') continue;
    const auto east = parts.tm_gmtoff;
    return ::timegm(&parts) - east;
  }
  return std::nullopt;
}

std::optional<std::time_t> time_of_file(const std::string& path) {
  struct ::stat about {};
  if (::stat(path.c_str(), &about) != 0) return std::nullopt;
  return about.st_mtime;
}

std::string http_date(std::time_t time) {
  constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  std::array<char, 64> rest{};
  const auto size = std::strftime(rest.data(), rest.size(), "%Y %H:%M:%S GMT", &parts);
  const auto day = (parts.tm_mday < 10 ? "0" : "") + std::to_string(parts.tm_mday);
  return std::string(kDays[parts.tm_wday]) + ", " + day + " " + kMonths[parts.tm_mon] + " " +
         std::string(rest.data(), size);
}

}  // namespace

std::optional<std::pair<std::string, std::string>> time_condition(const std::string& value) {
  const bool older = value.starts_with('-');
  const auto text = older ? value.substr(1) : value;
  auto time = as_date(text);
  if (!time) time = time_of_file(text);
  if (!time) return std::nullopt;
  return std::pair(std::string(older ? "If-Unmodified-Since" : "If-Modified-Since"),
                   http_date(*time));
}

}  // namespace httpretry::cli
