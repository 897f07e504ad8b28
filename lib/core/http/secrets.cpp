#include "lib/core/base/redacted.hpp"
#include "lib/core/base/text.hpp"

#include <httpretry/http/headers.hpp>
#include <httpretry/http/shown_value.hpp>

#include <algorithm>
#include <array>

namespace httpretry {
namespace {

// Words that mark a secret anywhere in a name.
constexpr std::array<std::string_view, 8> kAnywhere{"authorization", "cookie",     "secret",
                                                    "password",      "passphrase", "signature",
                                                    "credential",    "session"};
// Words that mark a secret only as whole words: "sig" is also a part of "design".
constexpr std::array<std::string_view, 21> kWords{
    "assertion", "auth", "authcode", "authentication", "bearer",   "csrf",   "dpop", "jwt",  "keys",
    "oauth",     "oidc", "otp",      "pass",           "passcode", "passwd", "pwd",  "saml", "sid",
    "sig",       "sign", "xsrf"};
// A header whose name has one of these words has one URL, or a relative one, as its value.
constexpr std::array<std::string_view, 5> kUrlHeaderWords{"location", "referer", "referrer", "url",
                                                          "uri"};

bool is_one_of(const auto& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// Returns whether `test` returns true for one of the words, the runs of letters, in a name.
template <class Test>
bool any_word(std::string_view name, const Test& test) {
  for (std::size_t begin = 0; begin < name.size();) {
    auto end = begin;
    while (end < name.size() && is_letter(name[end])) ++end;
    if (end > begin && test(name.substr(begin, end - begin))) return true;
    begin = std::max(end, begin + 1);
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

// Returns the offset at which the next URL within other text begins: its scheme, before "://".
// Looks only at the text from `from` on. Returns npos if there is no URL.
std::size_t next_url(std::string_view text, std::size_t from) {
  const auto is_of_scheme = [](char c) {
    return is_letter(c) || is_digit(c) || c == '+' || c == '-' || c == '.';
  };
  auto colon = text.find("://", from);
  for (; colon != std::string_view::npos; colon = text.find("://", colon + 3)) {
    auto begin = colon;
    while (begin > from && is_of_scheme(text[begin - 1])) --begin;
    if (begin < colon) return begin;  // otherwise there is no scheme
  }
  return std::string_view::npos;
}

// Returns the offset at which the URL that begins at `begin` ends: at the quote or bracket that
// closes it, or at a space.
std::size_t end_of_url(std::string_view text, std::size_t begin) {
  const char before = begin == 0 ? ' ' : text[begin - 1];
  const auto closing = before == '<'    ? std::string_view(">")
                       : before == '"'  ? std::string_view("\"")
                       : before == '\'' ? std::string_view("'")
                                        : std::string_view(" \t");
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

// Returns the value of a header as logs show it. A header whose name suggests a secret, such as
// "Authorization", becomes "REDACTED". In the URLs of other headers, the passwords and the values
// in queries are hidden: "see https://host/a?key=1" becomes "see https://host/a?key=REDACTED".
std::string shown_value(std::string_view header_name, std::string_view value) {
  if (tells_secret(header_name)) return std::string(kRedacted);
  const auto is_url_word = [](auto word) { return is_one_of(kUrlHeaderWords, word); };
  // The whole value is one URL: "Location", "Referer" and the like.
  if (any_word(to_lower(header_name), is_url_word)) return redacted(value, hide_all);
  std::string shown;
  auto scheme_at = next_url(value, 0);  // where the next URL with a scheme begins, or npos
  // Each round copies the text before the next URL, and then that URL with its secrets hidden.
  for (std::size_t copied = 0; copied < value.size();) {
    // If the URL at `scheme_at` has been copied, finds the next one.
    if (scheme_at < copied) scheme_at = next_url(value, copied);
    // A URL without a scheme may follow a "<", as in `Link: </next?key=1>; rel=next`.
    const auto bracket = value.find('<', copied);
    const auto after_bracket = bracket == std::string_view::npos ? value.size() : bracket + 1;
    const auto begin = std::min(scheme_at, after_bracket);  // the end if no URL is left
    const auto end = end_of_url(value, begin);
    shown += value.substr(copied, begin - copied);
    shown += redacted(value.substr(begin, end - begin), hide_all);
    copied = end;
  }
  return shown;
}

}  // namespace httpretry
