#include <httpretry/curl/cookies.hpp>

#include "lib/core/base/regular_file.hpp"
#include "lib/core/base/text.hpp"
#include "lib/core/body/new_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <system_error>

namespace httpretry {
namespace {

// Chrome's limits: when it has 3300 cookies it drops 300, and it keeps 180 for a domain.
constexpr std::size_t kMaxCookies = 3000;
constexpr std::ptrdiff_t kMaxOfDomain = 180;
constexpr std::string_view kHttpOnly = "#HttpOnly_";

enum Field : std::size_t { kDomain, kSubdomains, kPath, kSecure, kExpires, kName, kValue, kFields };
using Fields = std::array<std::string_view, kFields>;

// Returns the first seven fields of a line, which are separated by tabs. Missing fields are empty.
Fields split(std::string_view line) {
  Fields fields;
  for (auto& field : fields) field = take_until(line, '\t');
  return fields;
}

// Returns the domain in lower case, without libcurl's prefix and the dot of a domain cookie.
std::string domain_of(const Fields& fields) {
  auto domain = fields[kDomain];
  if (domain.starts_with(kHttpOnly)) domain.remove_prefix(kHttpOnly.size());
  if (domain.starts_with('.')) domain.remove_prefix(1);
  return to_lower(domain);
}

// Returns whether the cookie has expired. One that a server has deleted stays in libcurl's list,
// with an expiry time in the distant past.
bool is_expired(const Fields& fields) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto expires = to_number<std::int64_t>(fields[kExpires]).value_or(0);
  return expires > 0 && expires <= std::chrono::floor<std::chrono::seconds>(now).count();
}

// Returns "DOMAIN<tab>NAME<tab>PATH", which identifies a cookie and sorts cookies by domain.
std::string key_of(const Fields& fields) {
  auto key = domain_of(fields) + '\t';
  return key.append(fields[kName]).append("\t").append(fields[kPath]);
}

bool is_flag(std::string_view text) { return text == "TRUE" || text == "FALSE"; }

// Returns what is wrong with a line of a Netscape cookie file, or "" if the line is valid. A line
// has seven fields, with a tab between each two: DOMAIN, SUBDOMAINS (TRUE: they get the cookie as
// well), PATH, SECURE (TRUE: only for https), EXPIRES, NAME and VALUE, for example
// ".example.com TRUE / FALSE 0 id 42". An empty VALUE may be missing, with the tab before it.
std::string problem_of_line(std::string_view line) {
  if (line.starts_with("Set-Cookie:")) {
    return "expected the format that curl -c writes, found a Set-Cookie header";
  }
  const auto field_count = std::ranges::count(line, '\t') + 1;
  if (field_count != kFields && field_count != kFields - 1) {
    return "expected 7 fields with tabs between, found " + std::to_string(field_count);
  }
  const auto fields = split(line);
  if (domain_of(fields).empty()) return "the first field must name a domain";
  if (!is_flag(fields[kSubdomains])) return "the second field must be TRUE or FALSE";
  if (!fields[kPath].starts_with('/')) return "the third field must be a path";
  if (!is_flag(fields[kSecure])) return "the fourth field must be TRUE or FALSE";
  if (to_number<std::int64_t>(fields[kExpires]).value_or(-1) < 0) {
    return "the fifth field must be a time in seconds since 1970, or 0";
  }
  if (fields[kName].empty()) return "the sixth field must be the name of a cookie";
  // libcurl takes the line as a C string, so it would not see what follows a NUL.
  if (line.find('\0') != std::string_view::npos) return "a NUL byte is not allowed";
  return {};
}

}  // namespace

// Adds the cookies of a file. Returns an error, and adds none, if it cannot be read or is invalid.
Result<void> CookieJar::load(const std::string& path) {
  auto why = read_problem(path);
  std::ostringstream text;
  if (why.empty()) {
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    if (file.is_open() && file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
    if (!file.is_open() || file.bad() || text.fail()) why = std::generic_category().message(errno);
  }
  if (!why.empty()) {
    return Error(Errc::InvalidRequest, "cannot read cookie file " + path + ": " + why);
  }
  return add(text.str(), path);
}

// Adds the cookies of a text in the format of a Netscape cookie file, one per line. If a line is
// invalid, adds no cookie at all and returns an error such as "NAME:3: the third field must be a
// path", with the number of the first invalid line. `name` is usually the name of a file.
Result<void> CookieJar::add(std::string_view text, std::string_view name) {
  std::vector<std::string> lines;
  for (std::size_t line_number = 1; !text.empty(); ++line_number) {
    auto line = take_until(text, '\n');
    if (line.ends_with('\r')) line.remove_suffix(1);
    // "#HttpOnly_" is not a comment: it precedes a cookie that scripts in a browser must not see.
    const bool is_comment = line.starts_with('#') && !line.starts_with(kHttpOnly);
    const bool is_blank = line.find_first_not_of(" \t") == std::string_view::npos;
    if (is_comment || is_blank) continue;
    if (const auto why = problem_of_line(line); !why.empty()) {
      return Error(Errc::InvalidRequest,
                   std::string(name) + ":" + std::to_string(line_number) + ": " + why);
    }
    lines.emplace_back(line);
  }
  const std::lock_guard lock(mutex_);  // the jar changes only from here on
  for (auto& line : lines) put(std::move(line));
  return {};
}

Result<void> CookieJar::save(const std::string& path) const {
  auto file = NewFile::beside(path, FileAccess::AlwaysOwner);
  if (!file) return std::move(file).error();
  if (auto written = file->write(to_text()); !written) return written;
  return file->commit();
}

std::string CookieJar::to_text() const {
  const std::lock_guard lock(mutex_);
  std::string text = "# Netscape HTTP Cookie File\n";
  for (const auto& [key, cookie] : cookies_) text.append(cookie.line).append("\n");
  return text;
}

std::size_t CookieJar::size() const {
  const std::lock_guard lock(mutex_);
  return cookies_.size();
}

void CookieJar::clear() {
  const std::lock_guard lock(mutex_);
  cookies_.clear();
}

// Returns the lines of the host and of all domains above it. libcurl chooses among them.
std::vector<std::string> CookieJar::lines_for(std::string_view host) const {
  std::vector<std::string> lines;
  const std::lock_guard lock(mutex_);
  for (;;) {
    // The map is sorted, and the keys of this domain are those that begin with it and a tab.
    for (auto entry = cookies_.lower_bound(host); entry != cookies_.end(); ++entry) {
      const auto& [key, cookie] = *entry;
      if (!key.starts_with(host) || key[host.size()] != '\t') break;
      lines.push_back(cookie.line);
    }
    const auto dot = host.find('.');
    if (dot == std::string_view::npos) return lines;
    host.remove_prefix(dot + 1);
  }
}

// Applies only what the exchange changed, because other exchanges may have changed the rest.
void CookieJar::learn(const std::vector<std::string>& before,
                      const std::vector<std::string>& after) {
  const std::lock_guard lock(mutex_);
  for (const auto& line : before) {
    if (std::ranges::find(after, line) == after.end()) cookies_.erase(key_of(split(line)));
  }
  for (const auto& line : after) {
    if (std::ranges::find(before, line) == before.end()) put(line);
  }
}

// Adds or replaces the cookie of this line, or removes it if it has expired. If the domain then has
// too many cookies, drops its oldest one, and if the jar has too many, drops the oldest of all.
void CookieJar::put(std::string line) {
  const auto fields = split(line);
  auto key = key_of(fields);
  if (is_expired(fields)) {
    cookies_.erase(key);
    return;
  }
  const auto domain = domain_of(fields);
  auto& cookie = cookies_[std::move(key)];
  cookie.line = std::move(line);
  cookie.age = ++arrivals_;  // the lower, the older
  // The keys of the domain begin with it and a tab. '\n' is the character after '\t'.
  const auto first = cookies_.lower_bound(domain + '\t');
  const auto last = cookies_.lower_bound(domain + '\n');
  if (std::distance(first, last) > kMaxOfDomain) drop_oldest(first, last);
  if (cookies_.size() > kMaxCookies) drop_oldest(cookies_.begin(), cookies_.end());
}

void CookieJar::drop_oldest(Cookies::iterator first, Cookies::iterator last) {
  const auto older = [](const auto& a, const auto& b) { return a.second.age < b.second.age; };
  cookies_.erase(std::min_element(first, last, older));
}

}  // namespace httpretry
