#include "cli/date.hpp"

#include "cli/args.hpp"

namespace httpretry::cli {
namespace {

// The formats of HTTP, then those of `date` and others that people use.
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

}  // namespace

std::optional<std::time_t> date_in(const std::string& text) {
  for (const char* format : kFormats) {
    std::tm parts{};
    const char* end = ::strptime(text.c_str(), format, &parts);
    if (end == nullptr || *end != '\0') continue;
    const auto east = parts.tm_gmtoff;
    return ::timegm(&parts) - east;
  }
  return std::nullopt;
}

WallTime parse_date(const std::string& text, std::string_view flag) {
  constexpr std::time_t kEnd = 7'258'118'400;  // 2200-01-01
  const auto date = date_in(text);
  if (!date || *date < 0 || *date >= kEnd) {
    throw UsageError("option " + std::string(flag) + ": \"" + text +
                     "\" is not a date from 1970 to 2199, such as 2026-01-02T03:04:05Z");
  }
  return WallTime(std::chrono::seconds(*date));
}

}  // namespace httpretry::cli
