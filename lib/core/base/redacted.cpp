#include "redacted.hpp"

#include <algorithm>

namespace httpretry {
namespace {

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

// Appends the part before the query. A list of URLs without blanks between them has several
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

}  // namespace httpretry
