// The links and cookies of a response.
#include "detail/link.hpp"

#include "lib/core/base/text.hpp"

#include <httpretry/http/url.hpp>

namespace httpretry {
namespace {

// Removes everything up to one of the `delimiters` from the front of `text`, and returns the value
// that stands there: a token without the spaces around it, or the contents of a quoted string,
// which may contain delimiters.
std::string take_value(std::string_view& text, std::string_view delimiters) {
  std::string value;
  if (take(text, '"')) {
    while (!text.empty() && !take(text, '"')) {
      // A backslash stands before a character that belongs to the string, even if it is a quote.
      if (text.front() == '\\' && text.size() > 1) text.remove_prefix(1);
      value += text.front();
      text.remove_prefix(1);
    }
  } else {
    value = trimmed(text.substr(0, text.find_first_of(delimiters)));
  }
  text.remove_prefix(std::min(text.find_first_of(delimiters), text.size()));
  return value;
}

void skip_spaces(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
}

struct Link {
  std::optional<std::string> target;     // nullopt if it is not between "<" and ">"
  std::optional<std::string> relations;  // separated by spaces; nullopt without "rel"
  bool of_response = true;  // false: it has an anchor, so it belongs to another document
};

// Removes a link, such as `<items?page=2>; rel="next"`, from the front of `text`, the value of a
// Link header. Returns the link, or nullopt at the end of the text. A link with an "anchor" belongs
// to another document, not to the response.
std::optional<Link> take_link(std::string_view& text) {
  while (text.starts_with(',') || text.starts_with(' ') || text.starts_with('\t')) {
    text.remove_prefix(1);
  }
  if (text.empty()) return std::nullopt;
  Link link;
  const bool is_opened = take(text, '<');
  const auto bracket = std::min(text.find_first_of("<>"), text.size());
  // In "<a, <b>", the first link is not closed: the next bracket begins the second link.
  const bool is_closed = is_opened && text.substr(bracket).starts_with('>');
  if (is_closed) {
    link.target = take_until(text, '>');
  } else {
    // Leaves `target` unset, but reads the parameters: if this link has the relation that
    // find_link looks for, it counts as an error.
    text.remove_prefix(std::min(text.find_first_of(";,"), text.size()));
  }
  for (skip_spaces(text); take(text, ';'); skip_spaces(text)) {
    skip_spaces(text);
    const auto name = take_value(text, "=;,");
    std::string value;
    if (take(text, '=')) {
      skip_spaces(text);
      value = take_value(text, ";,");
    }
    if (equal_ignoring_case(name, "anchor")) link.of_response = false;
    // Only the first `rel` counts (RFC 8288 §3.3).
    if (equal_ignoring_case(name, "rel") && !link.relations) link.relations = std::move(value);
  }
  return link;
}

bool has_relation(std::string_view relations, std::string_view relation) {
  while (!relations.empty()) {
    if (equal_ignoring_case(take_until(relations, ' '), relation)) return true;
  }
  return false;
}

}  // namespace

Result<std::string> Response::resolve(std::string_view reference) const {
  return Url::parse(url)
      .and_then([&](const Url& base) { return base.resolve(reference); })
      .transform([](const Url& resolved) { return resolved.to_string(); });
}

// Returns the URL of the first usable link with this relation, and nullopt if no link has it. If
// none of these links is usable, returns the error of the first one.
Result<std::optional<std::string>> detail::find_link(const Response& response,
                                                     std::string_view relation) {
  std::optional<Error> problem;
  for (std::string_view text : response.headers.get_all("Link")) {
    while (const auto link = take_link(text)) {
      const bool is_wanted = link->relations && has_relation(*link->relations, relation);
      if (!link->of_response || !is_wanted) continue;
      auto url = link->target ? response.resolve(*link->target)
                              : Error(Errc::InvalidRequest,
                                      "not a usable URL: it is not between \"<\" and \">\"");
      if (url) return std::optional(*std::move(url));
      if (!problem) problem = url.error();
    }
  }
  if (problem) return *std::move(problem);
  return std::optional<std::string>();
}

std::optional<std::string> Response::link(std::string_view relation) const {
  return detail::find_link(*this, relation).value_or(std::nullopt);
}

// Returns the cookies that the response sets, one for each header such as "Set-Cookie: id=7;
// Path=/; Secure". This one has the name "id", the value "7", and the attributes "Path: /" and
// "Secure:". Leaves out cookies without a name or "=", and malformed attributes.
std::vector<SetCookie> Response::cookies() const {
  std::vector<SetCookie> cookies;
  for (std::string_view rest : headers.get_all("Set-Cookie")) {
    // take_until removes the text before the delimiter, and the delimiter, and returns the text.
    auto value = take_until(rest, ';');
    if (value.find('=') == std::string_view::npos) continue;
    SetCookie cookie;
    cookie.name = trimmed(take_until(value, '='));
    cookie.value = trimmed(value);
    while (!rest.empty()) {
      auto attribute_value = take_until(rest, ';');
      const auto attribute_name = trimmed(take_until(attribute_value, '='));
      static_cast<void>(cookie.attributes.try_add(attribute_name, trimmed(attribute_value)));
    }
    if (!cookie.name.empty()) cookies.push_back(std::move(cookie));
  }
  return cookies;
}

}  // namespace httpretry
