#include "cli/text.hpp"

#include <httpretry/http/headers.hpp>

#include <cstdlib>

namespace httpretry::cli {

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string join(const std::vector<std::string>& texts, std::string_view separator) {
  std::string all;
  for (const auto& text : texts) all.append(all.empty() ? "" : separator).append(text);
  return all;
}

std::string counted(std::size_t count, const std::string& noun, const std::string& plural) {
  const auto text = std::to_string(count) + ' ';
  return count == 1 ? text + noun : text + (plural.empty() ? noun + 's' : plural);
}

std::string with_scheme(const std::string& url, const std::string& scheme) {
  const auto mark = url.find("://");
  const bool has_one = mark != std::string::npos && url.find_first_of("/?#") > mark;
  // These stay malformed. "http:a" does not mean port "a" of a host "http", and a scheme in front
  // of "/a" would make "a" the host.
  const auto word = url.substr(0, url.find(':'));
  const bool malformed =
      url.starts_with('/') ||
      (word != url && (equal_ignoring_case(word, "http") || equal_ignoring_case(word, "https")));
  return has_one || malformed ? url : scheme + "://" + url;
}

std::string shown_url(const Request& request) {
  const auto& url = request.parsed_url();
  if (!url) return without_secrets(request.url());
  return printable(url->without_secrets()) + (url->query().empty() ? "" : "?…");
}

// The parts of a malformed URL have no clear ends, so this may remove too much, but not too little.
std::string without_secrets(std::string_view malformed_url) {
  std::string shown(malformed_url.substr(0, malformed_url.find_first_of("?#")));
  const auto scheme = shown.find("://");
  const auto begin = scheme == std::string::npos ? 0 : scheme + 3;
  const auto at = shown.rfind('@');
  if (at != std::string::npos && at >= begin) {
    shown.erase(begin, at + 1 - begin);
  } else if (shown.find(':', begin) != std::string::npos &&
             malformed_url.find('@') != std::string::npos) {
    shown.replace(begin, std::string::npos, "...");  // the "?" may be a part of the password
  }
  return printable(shown);
}

}  // namespace httpretry::cli
