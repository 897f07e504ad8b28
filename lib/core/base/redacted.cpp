#include "redacted.hpp"

#include <algorithm>

namespace httpretry {
namespace {

// Appends a query or fragment, the text after "?" or "#", and hides the secret values in it:
// "page=2&token=abc" becomes "page=2&token=REDACTED" if `is_secret` returns true for "token". A
// text without "&" and "=" has no name to judge by, and is hidden as a whole.
void append_items(std::string& out, std::string_view items, bool (*is_secret)(std::string_view)) {
  const bool is_nameless = items.find_first_of("&=") == std::string_view::npos;
  for (;;) {  // each round appends one item, such as "page=2"
    const auto item_end = std::min(items.find('&'), items.size());
    const auto item = items.substr(0, item_end);
    const auto equals = item.find('=');
    const auto name = item.substr(0, equals);  // the whole item if it has no "="
    const bool hidden = !item.empty() && (is_nameless || is_secret(name));
    if (!hidden) {
      out += item;
    } else if (equals == std::string_view::npos) {
      out += kRedacted;  // without a value, the item itself may be the secret
    } else {
      out.append(item.substr(0, equals + 1)).append(kRedacted);
    }
    if (item_end == items.size()) return;
    out += '&';
    items.remove_prefix(item_end + 1);
  }
}

constexpr std::string_view kSlashes = "/\\";  // browsers take "\" for "/"

// Returns the size of what may be a user name and password at the beginning of `text`, without the
// "@" after it, or npos. Usually that is up to the last "@" before the path. But in "me:a/b@host"
// or "me:a?b@host", a part of the password looks like a port. Its end is unclear, so all of the
// text counts.
std::size_t userinfo_size(std::string_view text) {
  const auto authority = text.substr(0, text.find_first_of("/\\?#"));
  const auto at_sign = authority.rfind('@');
  const auto colon = authority.rfind(':');
  if (at_sign != std::string_view::npos || colon == std::string_view::npos) return at_sign;
  const bool has_port = authority.find_first_not_of("0123456789", colon + 1) == authority.npos;
  const bool is_host = has_port || authority.ends_with(']') || text.find('@') == text.npos;
  return is_host ? std::string_view::npos : text.size();
}

// Appends a URL up to its query, and replaces its user name and password: "https://me:pw@a/"
// becomes "https://REDACTED:REDACTED@a/". The URL may be malformed, such as "https:///me:pw@a/", or
// a list of URLs without spaces, such as "https://a/,https://me:pw@b/". Returns how much of it was
// appended.
std::size_t append_without_userinfo(std::string& output, std::string_view url) {
  std::size_t copied = 0;  // in each round, slashes and the text between them and the next ones
  while (copied < url.size() && url[copied] != '?' && url[copied] != '#') {
    const auto begin = std::min(url.find_first_not_of(kSlashes, copied), url.size());
    output += url.substr(copied, begin - copied);
    // A name and a password may follow a colon or stand at the beginning, but not in an absolute
    // path.
    const bool after_colon = copied > 0 && url[copied - 1] == ':';
    const bool at_beginning = copied == 0 && begin != 1;
    const bool may_begin = after_colon || at_beginning;
    const auto size = may_begin ? userinfo_size(url.substr(begin)) : std::string_view::npos;
    copied = begin;
    // Without slashes, only "me:pw@a" has a password; "me@a" is a mail address.
    const bool may_be_user = begin > 0 || url.find(':') < size;
    if (size != std::string_view::npos && may_be_user) {
      output.append(kRedacted).append(":").append(kRedacted);
      copied += size;
    }
    const auto end = std::min(url.find_first_of("/\\?#", copied), url.size());
    output += url.substr(copied, end - copied);
    copied = end;
  }
  return copied;
}

}  // namespace

std::string redacted(std::string_view reference, bool (*hides)(std::string_view name)) {
  std::string output;
  auto copied = append_without_userinfo(output, reference);
  while (copied < reference.size()) {
    output += reference[copied++];  // the "?" or "#"
    const auto items_end = std::min(reference.find('#', copied), reference.size());
    append_items(output, reference.substr(copied, items_end - copied), hides);
    copied = items_end;
  }
  return output;
}

}  // namespace httpretry
