#include "send/time_condition.hpp"

#include "cli/date.hpp"

#include <httpretry/retry/server_delay.hpp>

#include <sys/stat.h>
#include <ctime>

namespace httpretry::cli {
namespace {

std::optional<std::time_t> time_of_file(const std::string& path) {
  struct ::stat about {};
  if (::stat(path.c_str(), &about) != 0) return std::nullopt;
  return about.st_mtime;
}

}  // namespace

std::optional<std::pair<std::string, std::string>> time_condition(const std::string& value) {
  const bool older = value.starts_with('-');
  const auto text = older ? value.substr(1) : value;
  auto time = date_in(text);
  if (!time) time = time_of_file(text);
  if (!time) return std::nullopt;
  return std::pair(std::string(older ? "If-Unmodified-Since" : "If-Modified-Since"),
                   http_date(std::chrono::sys_seconds(std::chrono::seconds(*time))));
}

}  // namespace httpretry::cli
