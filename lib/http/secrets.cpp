#include "secrets.hpp"

#include "text.hpp"

#include <httpretry/http/headers.hpp>
#include <httpretry/http/shown_value.hpp>

#include <algorithm>
#include <array>

namespace httpretry {
namespace {

constexpr std::string_view kRedacted = "REDACTED";
constexpr std::string_view kBlanks = " \t";

// Words that tell a secret wherever they are in a name.
constexpr std::array<std::string_view, 8> kAnywhere{"authorization", "cookie",     "secret",
                                                    "password",      "passphrase", "signature",
                                                    "credential",    "session"};
// Words that tell a secret as a whole, such as "sig", which is also a part of "design".
constexpr std::array<std::string_view, 21> kWords{
    "assertion", "auth", "authcode", "authentication", "bearer",   "csrf",   "dpop", "jwt",  "keys",
    "oauth",     "oidc", "otp",      "pass",           "passcode", "passwd", "pwd",  "saml", "sid",
    "sig",       "sign", "xsrf"};
// Headers whose value is one URL or relative reference have one of these words in their names.
constexpr std::array<std::string_view, 5> kReferenceWords{"location", "referer", "referrer", "url",
                                                          "uri"};

bool is_one_of(const auto& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// Calls `test` with each run of letters in a lower case name, until it returns true.
template <class Test>
bool any_word(std::string_view name, const Test& test) {
  for (std::size_t at = 0; at < name.size();) {
    auto end = at;
    while (end < name.size() && is_letter(name[end])) ++end;
    if (end > at && test(name.substr(at, end - at))) return true;
    at = std::max(end, at + 1);
  }
  return false;
}

// "key" and "token" also end words that are written as one: "apikey", "AWSAccessKeyId". "tokens" is
// usually a count.
bool is_secret_word(std::string_view word) {
  if (is_one_of(kWords, word)) return true;
  if (word.ends_with("id")) word.remove_suffix(2);
  return word.ends_with("key") || word.ends_with("token");
}

// Appends the items of a query or fragment, which follow "?" or "#".
void append_items(std::string& to, std::string_view items, bool (*hides)(std::string_view)) {
  const bool alone = items.find_first_of("&=") == std::string_view::npos;
  for (;;) {
    const auto end = std::min(items.find('&'), items.size());
    const auto item = items.substr(0, end);
    const auto equals = item.find('=');
    const bool hidden = alone || hides(item.substr(0, equals));
    if (!hidden || item.empty()) {
      to += item;
    } else if (equals == std::string_view::npos) {
      to += kRedacted;
    } else {
      to.append(item.substr(0, equals + 1)).append(kRedacted);
    }
    if (end == items.size()) return;
    to += '&';
    items.remove_prefix(end + 1);
  }
}

// Appends what stands before the query. A list of URLs without blanks between them has several
// authorities.
void append_without_userinfo(std::string& to, std::string_view head) {
  for (std::size_t at = 0; at < head.size();) {
    const auto slashes = head.find("//", at);
    if (slashes == std::string_view::npos) return void(to += head.substr(at));
    const auto begin = slashes + 2;
    to += head.substr(at, begin - at);
    const bool authority = slashes == 0 || head[slashes - 1] == ':';
    const auto end = std::min(head.find('/', begin), head.size());
    const auto user = head.substr(begin, end - begin).rfind('@');
    at = begin;
    if (!authority || user == std::string_view::npos) continue;
    to.append(kRedacted).append(":").append(kRedacted);
    at += user;
  }
}

// Returns where the next URL within other text begins, at or after `from`, or npos.
std::size_t next_url(std::string_view text, std::size_t from) {
  for (auto colon = text.find("://", from); colon != std::string_view::npos;
       colon = text.find("://", colon + 3)) {
    auto begin = colon;
    while (begin > from &&
           (is_letter(text[begin - 1]) || is_digit(text[begin - 1]) ||
            std::string_view("+-.").find(text[begin - 1]) != std::string_view::npos))
      --begin;
    if (begin < colon) return begin;
  }
  return std::string_view::npos;
}

// Returns where the URL that begins at `begin` ends: at the closing quote or bracket, or a blank.
std::size_t end_of_url(std::string_view text, std::size_t begin) {
  const char before = begin == 0 ? ' ' : text[begin - 1];
  const auto closing = before == '<'    ? std::string_view(">")
                       : before == '"'  ? std::string_view("\"")
                       : before == '\'' ? std::string_view("'")
                                        : kBlanks;
  return std::min(text.find_first_of(closing, begin), text.size());
}

bool hide_all(std::string_view /*name*/) { return true; }

}  // namespace

std::string redacted(std::string_view reference, bool (*hides)(std::string_view name)) {
  std::string shown;
  auto at = std::min(reference.find_first_of("?#"), reference.size());
  append_without_userinfo(shown, reference.substr(0, at));
  while (at < reference.size()) {
    shown += reference[at++];
    const auto end = std::min(reference.find('#', at), reference.size());
    append_items(shown, reference.substr(at, end - at), hides);
    at = end;
  }
  return shown;
}

bool tells_secret(std::string_view header_name) {
  const auto name = to_lower(header_name);
  const auto is_in_name = [&](auto word) { return name.find(word) != std::string::npos; };
  if (std::ranges::any_of(kAnywhere, is_in_name)) return true;
  // An idempotency key names a request; it opens nothing.
  if (is_in_name("idempotency")) return false;
  return any_word(name, is_secret_word);
}

std::string shown_value(std::string_view header_name, std::string_view value) {
  if (tells_secret(header_name)) return std::string(kRedacted);
  const auto is_reference = [](auto word) { return is_one_of(kReferenceWords, word); };
  if (any_word(to_lower(header_name), is_reference)) return redacted(value, hide_all);
  std::string shown;
  auto url = next_url(value, 0);
  for (std::size_t at = 0; at < value.size();) {
    if (url < at) url = next_url(value, at);
    // `Link` has relative references, too, between "<" and ">".
    const auto bracket = std::min(value.find('<', at), value.size() - 1);
    const auto begin = std::min(url, bracket + 1);
    const auto end = end_of_url(value, begin);
    shown += value.substr(at, begin - at);
    shown += redacted(value.substr(begin, end - begin), hide_all);
    at = end;
  }
  return shown;
}

}  // namespace httpretry
