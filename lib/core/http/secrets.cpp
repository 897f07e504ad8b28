#include "lib/core/base/redacted.hpp"
#include "lib/core/base/text.hpp"

#include <httpretry/http/headers.hpp>
#include <httpretry/http/shown_value.hpp>

#include <algorithm>
#include <array>

namespace httpretry {
namespace {

constexpr std::string_view kBlanks = " \t";

// Words that mark a secret anywhere in a name.
constexpr std::array<std::string_view, 8> kAnywhere{"authorization", "cookie",     "secret",
                                                    "password",      "passphrase", "signature",
                                                    "credential",    "session"};
// Words that mark a secret only as whole words: "sig" is also a part of "design".
constexpr std::array<std::string_view, 21> kWords{
    "assertion", "auth", "authcode", "authentication", "bearer",   "csrf",   "dpop", "jwt",  "keys",
    "oauth",     "oidc", "otp",      "pass",           "passcode", "passwd", "pwd",  "saml", "sid",
    "sig",       "sign", "xsrf"};
// A header whose name has one of these words has one URL or relative reference as its value.
constexpr std::array<std::string_view, 5> kReferenceWords{"location", "referer", "referrer", "url",
                                                          "uri"};

bool is_one_of(const auto& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// Calls `test` with each run of letters in a lowercase name, until it returns true.
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

// "key" and "token" may also be the end of a compound: "apikey", "AWSAccessKeyId". "tokens" is
// usually a count.
bool is_secret_word(std::string_view word) {
  if (is_one_of(kWords, word)) return true;
  if (word.ends_with("id")) word.remove_suffix(2);
  return word.ends_with("key") || word.ends_with("token");
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

// Returns where the URL that begins at `begin` ends: at its closing quote or bracket, or at a
// blank.
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

bool tells_secret(std::string_view header_name) {
  const auto name = to_lower(header_name);
  const auto is_in_name = [&](auto word) { return name.find(word) != std::string::npos; };
  if (std::ranges::any_of(kAnywhere, is_in_name)) return true;
  // An idempotency key identifies a request but grants no access.
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
    // `Link` also has relative references, between "<" and ">".
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
