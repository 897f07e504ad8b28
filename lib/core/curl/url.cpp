#include <httpretry/http/url.hpp>

#include "resolver.hpp"
#include "url_parts.hpp"

#include "lib/core/base/text.hpp"

#include <idn2.h>

#include <algorithm>
#include <new>

namespace httpretry {
namespace {

using detail::CurlUrl;
using detail::url_part;

// Returns whether the host is a name. libcurl has already converted each form of an IPv4 address to
// the usual one.
bool is_name(std::string_view host) {
  const auto in_address = [](char c) { return is_digit(c) || c == '.'; };
  if (host.front() == '[' || std::ranges::all_of(host, in_address)) return false;
  return host != "localhost" && !host.ends_with(".localhost");
}

// Returns whether the host has an empty label, or a percent sign after libcurl has decoded it. Both
// make it invalid, and some versions of libcurl would look it up nevertheless.
bool is_invalid_name(std::string_view host) {
  return host == "." || host.ends_with("..") ||
         (!host.starts_with('[') && host.find('%') != std::string_view::npos);
}

Error bad_url(std::string_view why) {
  return Error(Errc::InvalidRequest, "not a usable URL: " + std::string(why));
}

// Returns whether the host is missing. libcurl takes the first segment of "http:/a/b",
// "http:///a/b" and "///a/b" for the host. If a variable in the URL was empty, the request and its
// credentials would go to that host.
bool lacks_host(std::string_view text) {
  const auto scheme = text.substr(0, text.find_first_of(":/?#"));
  const bool absolute = equal_ignoring_case(scheme, "http") || equal_ignoring_case(scheme, "https");
  if (absolute && scheme.size() < text.size() && text[scheme.size()] == ':') {
    text.remove_prefix(scheme.size() + 1);
    if (!text.starts_with("//")) return true;
  }
  return text.starts_with("///");
}

// Returns why the text is not a URL, or nullptr if libcurl must decide.
const char* problem_of(std::string_view text) {
  if (std::ranges::any_of(text, is_control)) return "it contains a control character";
  if (lacks_host(text)) return "it has no host; expected \"//\" and a host after the scheme";
  return nullptr;
}

// Returns an international name in ASCII by UTS 46, as browsers and libcurl convert it, or nullopt
// if it has no such form. It is not left to libcurl, which reads it in the encoding of the
// program's locale, although URLs are UTF-8, and leaks names that it cannot convert.
std::optional<std::string> to_ascii(const std::string& name) {
  const auto* utf8 = reinterpret_cast<const std::uint8_t*>(name.c_str());
  // The transitional rules convert some names that the first ones refuse.
  for (const int rules : {IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL, int{IDN2_TRANSITIONAL}}) {
    std::uint8_t* converted = nullptr;
    const int code = idn2_lookup_u8(utf8, &converted, rules);
    const Owned<std::uint8_t, idn2_free> owner(converted);
    if (code == IDN2_OK) return reinterpret_cast<const char*>(converted);
    if (code == IDN2_MALLOC) throw std::bad_alloc();
  }
  return std::nullopt;
}

// Returns the usual form of an IPv4 address, "127.0.0.1" for "127.1" and "0x7f000001". Returns any
// other host as it is, or "" if libcurl refuses it.
std::string usual_address(const std::string& host) {
  if (host.empty() || !is_digit(host.front())) return host;
  const CurlUrl url(curl_url());
  if (!url) throw std::bad_alloc();
  curl_url_set(url.get(), CURLUPART_URL, ("http://" + host).c_str(), 0);
  return url_part(url.get(), CURLUPART_HOST);  // an error leaves the URL without a host
}

// Returns the host in the form in which it is looked up, or an error for an invalid international
// name. Also replaces the host in `url`, so that libcurl need not convert it when it connects.
Result<std::string> ascii_host(CURLU* url) {
  const auto given = url_part(url, CURLUPART_HOST);
  auto host = given;
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (!std::ranges::all_of(host, is_ascii)) {
    const auto ascii = to_ascii(host);
    if (!ascii) return bad_url("its host is not a valid international name");
    host = *ascii;
  }
  // libcurl changes "127.1" to "127.0.0.1", but not "%3127.1" or one with wide digits.
  host = usual_address(host);
  if (host != given && curl_url_set(url, CURLUPART_HOST, host.c_str(), 0) != CURLUE_OK) {
    return bad_url("its host is not valid");
  }
  return to_lower(host);
}

// The functions below read the most common URLs without libcurl, in 1 100 instead of 10 000
// instructions. Everything that libcurl might read differently is left to libcurl;
// tests/curl/plain_url_test.cpp and fuzz/urls compare the two.

constexpr std::size_t kLongest = 64 * 1024;  // libcurl refuses what exceeds its own limits

bool is_host_char(char c) { return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '.'; }
// Unreserved characters and the usual delimiters of RFC 3986, but no percent sign.
bool is_path_char(char c) {
  constexpr std::string_view kOthers = "-._~!$&'()*+,;=:@/";
  return is_letter(c) || is_digit(c) || kOthers.find(c) != kOthers.npos;
}
bool is_query_char(char c) { return is_path_char(c) || c == '?'; }

std::uint16_t default_port(bool tls) { return tls ? 443 : 80; }

// Removes the `allowed` characters from the front of the text and returns them.
std::string_view take_all(std::string_view& text, bool (*allowed)(char)) {
  const auto size = std::ranges::find_if_not(text, allowed) - text.begin();
  const auto taken = text.substr(0, static_cast<std::size_t>(size));
  text.remove_prefix(taken.size());
  return taken;
}

// Returns whether libcurl need not read the host. It must read a host that begins with a digit,
// because it takes "127.1" and "0x7f000001" for addresses, and "." and "a..", which are invalid.
bool is_plain_host(std::string_view host) {
  if (host.empty() || is_invalid_name(host)) return false;
  return !is_digit(host.front()) || is_numeric(std::string(host));
}

// Returns whether the path has no segment "." or "..", which libcurl would resolve.
bool is_plain_path(std::string_view path) {
  if (!path.starts_with('/')) return false;
  for (auto dot = path.find("/."); dot != std::string_view::npos; dot = path.find("/.", dot + 1)) {
    const auto segment = path.substr(dot + 1, path.find('/', dot + 1) - dot - 1);
    if (segment == "." || segment == "..") return false;
  }
  return true;
}

}  // namespace

// Makes a Url of its text, "scheme://host:port/path?query", and notes the offset at which each part
// ends. `host` is in lower case, `path` begins with "/". `has_userinfo` says whether `handle`,
// libcurl's parsed form, has a user name or password: the text has neither. `handle` is null for a
// plain URL.
Url Url::Parts::make(std::string text, std::string_view host, std::uint16_t port,
                     std::string_view path, bool has_userinfo, CurlUrl handle) {
  auto parts = std::make_shared<Parts>();
  parts->scheme_end = text.find(':');
  parts->host_end = parts->scheme_end + 3 + host.size();
  parts->origin_end = std::min(text.find_first_of("/?", parts->host_end), text.size());
  parts->path_end = parts->origin_end + path.size();
  parts->text = std::move(text);
  parts->port = port;
  parts->userinfo = has_userinfo;
  parts->host_is_name = is_name(host);  // it must be looked up
  parts->handle = std::move(handle);
  return Url(std::move(parts));
}

// Reads a common URL without libcurl, in a ninth of the instructions. Returns nullopt for any
// other: one that is invalid, or that libcurl might read differently, for example because it has
// capitals in its host, a user name, a percent sign or a fragment. libcurl then decides.
std::optional<Url> Url::Parts::read_plain(std::string_view text) {
  const bool tls = text.starts_with("https://");
  if ((!tls && !text.starts_with("http://")) || text.size() > kLongest) return std::nullopt;
  auto rest = text.substr(text.find("//") + 2);
  // take_all removes the allowed characters from the front of `rest`, and returns them.
  const auto host = take_all(rest, is_host_char);
  auto port = default_port(tls);
  if (rest.starts_with(':')) {
    rest.remove_prefix(1);
    const auto digits = take_all(rest, is_digit);
    const auto number = to_number<std::uint16_t>(digits);
    // Also refuses "080", which libcurl would write as "80", and the default, which is left out.
    if (!number || *number == port || digits.front() == '0') return std::nullopt;
    port = *number;
  }
  const auto path = take_all(rest, is_path_char);
  std::string_view query;
  if (rest.starts_with('?')) {
    rest.remove_prefix(1);
    query = take_all(rest, is_query_char);
    if (query.empty()) return std::nullopt;  // what a "?" without a query means is up to libcurl
  }
  // Anything that is left begins with a character that is not allowed above.
  if (!rest.empty() || !is_plain_host(host) || !is_plain_path(path)) return std::nullopt;
  return make(std::string(text), host, port, path, /*has_userinfo=*/false, /*handle=*/CurlUrl());
}

// Parses a URL with libcurl. The text must be an absolute http or https URL; if `handle` already
// has a URL, it may also be a reference relative to that, such as "../a?b". Returns an error that
// says what is wrong with the text. `flags` are those of curl_url_set, such as CURLU_ALLOW_SPACE.
Result<Url> Url::Parts::read(CurlUrl handle, std::string_view text, unsigned flags) {
  if (const char* problem = problem_of(text)) return bad_url(problem);
  if (!handle) throw std::bad_alloc();
  auto* const url = handle.get();
  // Any scheme is allowed here, because the message about it below is better than libcurl's.
  const auto code = curl_url_set(url, CURLUPART_URL, std::string(text).c_str(),
                                 CURLU_URLENCODE | CURLU_NON_SUPPORT_SCHEME | flags);
  // Versions of libcurl report different codes for an empty text.
  const bool lacks_scheme =
      text.empty() || (code == CURLUE_BAD_SCHEME && text.find("://") == text.npos);
  if (code != CURLUE_OK && lacks_scheme) return bad_url("it must begin with http:// or https://");
  if (code != CURLUE_OK) return bad_url(curl_url_strerror(code));

  const auto scheme = to_lower(url_part(url, CURLUPART_SCHEME));
  if (scheme != "http" && scheme != "https") {
    return bad_url("its scheme must be http or https, not \"" + scheme + "\"");
  }
  const auto host = ascii_host(url);
  if (!host) return host.error();
  if (host->empty()) return bad_url("it has no host");
  // libcurl decodes "%7F" in a host.
  if (std::ranges::any_of(*host, is_control))
    return bad_url("its host contains a control character");
  if (is_invalid_name(*host)) return bad_url("its host \"" + *host + "\" is not a name");
  bool has_userinfo = false;
  for (const auto part : {CURLUPART_USER, CURLUPART_PASSWORD}) {
    if (url_part(url, part).empty()) continue;
    has_userinfo = true;
    // RFC 7617 forbids control characters, and libcurl does not decode a part that contains one.
    if (url_part(url, part, CURLU_URLDECODE).empty()) {
      return bad_url("its name or password contains a control character");
    }
  }
  curl_url_set(url, CURLUPART_FRAGMENT, nullptr, 0);  // a fragment is never sent
  // With this flag, every http or https URL has a port.
  const auto port = to_number<std::uint16_t>(url_part(url, CURLUPART_PORT, CURLU_DEFAULT_PORT));
  const auto path = url_part(url, CURLUPART_PATH);
  const auto query = url_part(url, CURLUPART_QUERY);
  auto plain = scheme + "://" + *host;
  if (port != default_port(scheme == "https")) plain += ":" + std::to_string(port.value_or(0));
  plain += path;
  if (!query.empty()) plain += "?" + query;
  return make(std::move(plain), *host, port.value_or(0), path, has_userinfo, std::move(handle));
}

std::string detail::url_part(CURLU* url, CURLUPart which, unsigned flags) {
  char* text = nullptr;
  if (curl_url_get(url, which, &text, flags) != CURLUE_OK) return {};
  const Owned<char, curl_free> owned(text);
  return text;
}

// Parses an absolute URL. Returns an error that says what is wrong.
Result<Url> Url::parse(std::string_view text, bool keep_dot_segments) {
  if (auto plain = Parts::read_plain(text)) return *std::move(plain);
  if (text.find(' ') != std::string_view::npos) {
    return bad_url("it contains a space; in a path or query, write %20");
  }
  if (text.starts_with('/')) {
    return bad_url("it begins with \"/\" and has no host; is a variable empty?");
  }
  return Parts::read(CurlUrl(curl_url()), text, keep_dot_segments ? CURLU_PATH_AS_IS : 0U);
}

std::string_view Url::scheme() const { return parts_->between(0, parts_->scheme_end); }
std::string_view Url::host() const {
  return parts_->between(parts_->scheme_end + 3, parts_->host_end);
}
std::uint16_t Url::port() const { return parts_->port; }
std::string_view Url::path() const { return parts_->between(parts_->origin_end, parts_->path_end); }
std::string_view Url::query() const {
  const auto& text = parts_->text;
  return parts_->between(std::min(parts_->path_end + 1, text.size()), text.size());
}
bool Url::has_userinfo() const { return parts_->userinfo; }
std::string_view Url::origin() const { return parts_->between(0, parts_->origin_end); }
bool Url::is_origin() const {
  return !parts_->userinfo && parts_->text.size() == parts_->origin_end + 1;  // only "/" follows
}
std::string Url::without_secrets() const { return parts_->text.substr(0, parts_->path_end); }
std::string Url::to_string() const { return parts_->text; }

// Resolves a reference relative to this URL. The result has the name and password of the reference
// only.
Result<Url> Url::resolve(std::string_view reference) const {
  CurlUrl handle(parts_->handle ? curl_url_dup(parts_->handle.get()) : curl_url());
  if (!handle) throw std::bad_alloc();
  if (!parts_->handle) curl_url_set(handle.get(), CURLUPART_URL, parts_->text.c_str(), 0);
  curl_url_set(handle.get(), CURLUPART_USER, nullptr, 0);
  curl_url_set(handle.get(), CURLUPART_PASSWORD, nullptr, 0);
  return Parts::read(std::move(handle), reference, CURLU_ALLOW_SPACE);
}

// Does not use curl_easy_escape, which fails for a text of 24 MB.
std::string percent_encode(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    if (is_letter(c) || is_digit(c) || std::string_view("-._~").find(c) != std::string_view::npos) {
      encoded += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded.append(1, '%').append(1, kDigits[byte / 16]).append(1, kDigits[byte % 16]);
  }
  return encoded;
}

// Adds NAME=VALUE to the query, before the fragment.
std::string with_query(std::string_view url, std::string_view name, std::string_view value) {
  const auto fragment = std::min(url.find('#'), url.size());
  std::string result(url.substr(0, fragment));
  const auto question_mark = result.find('?');
  if (question_mark == std::string::npos) {
    result.push_back('?');
  } else if (question_mark + 1 != result.size() && result.back() != '&') {
    result.push_back('&');
  }
  result.append(percent_encode(name)).append("=").append(percent_encode(value));
  return result.append(url.substr(fragment));
}

}  // namespace httpretry
