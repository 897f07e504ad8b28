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

// Appends `head`, a URL up to its query, and replaces its user name and password:
// "https://me:pw@a/" becomes "https://REDACTED:REDACTED@a/". Looks at each "//", because `head` may
// be a list of URLs without spaces, such as "https://a/,https://me:pw@b/".
void append_without_userinfo(std::string& output, std::string_view head) {
  std::size_t copied = 0;  // this many bytes of `head` have been copied or replaced
  for (auto slashes = head.find("//"); slashes != head.npos; slashes = head.find("//", copied)) {
    const auto authority = slashes + 2;  // where "user:password@host" may begin
    output += head.substr(copied, authority - copied);
    copied = authority;
    // An authority follows a "//" at the beginning or after a colon. Any other "//" is in a path.
    const bool begins_authority = slashes == 0 || head[slashes - 1] == ':';
    const auto authority_end = std::min(head.find('/', authority), head.size());
    const auto at_sign = head.substr(authority, authority_end - authority).rfind('@');
    if (!begins_authority || at_sign == std::string_view::npos) continue;
    output.append(kRedacted).append(":").append(kRedacted);
    copied += at_sign;  // up to the "@", which is copied with what follows
  }
  output += head.substr(copied);
}

}  // namespace

std::string redacted(std::string_view reference, bool (*hides)(std::string_view name)) {
  std::string output;
  auto copied = std::min(reference.find_first_of("?#"), reference.size());
  append_without_userinfo(output, reference.substr(0, copied));
  while (copied < reference.size()) {
    output += reference[copied++];  // the "?" or "#"
    const auto items_end = std::min(reference.find('#', copied), reference.size());
    append_items(output, reference.substr(copied, items_end - copied), hides);
    copied = items_end;
  }
  return output;
}

}  // namespace httpretry
