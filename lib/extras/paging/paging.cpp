#include <httpretry/paging/paging.hpp>

#include "json_pointer.hpp"

#include "lib/core/base/text.hpp"
#include "lib/core/http/detail/link.hpp"
#include "lib/core/json/detail/json.hpp"

#include <httpretry/client/report.hpp>
#include <httpretry/http/url.hpp>

#include <algorithm>
#include <optional>
#include <set>
#include <stdexcept>

namespace httpretry {
namespace {

using JsonType = JsonNode::Type;

// Returns whether `text`, the name of a query item, is the name `encoded`, as percent_encode()
// returns it. The hex digits of `text` may be in lower case.
bool is_name(std::string_view text, std::string_view encoded) {
  if (text.size() != encoded.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool in_escape = (i >= 1 && text[i - 1] == '%') || (i >= 2 && text[i - 2] == '%');
    const bool same = in_escape ? to_lower(text[i]) == to_lower(encoded[i]) : text[i] == encoded[i];
    if (!same) return false;
  }
  return true;
}

// Returns the URL with this parameter in its query, instead of an earlier value.
std::string with_parameter(const std::string& url, std::string_view name, std::string_view value) {
  std::string_view rest = url;
  rest = rest.substr(0, rest.find('#'));
  std::string changed(take_until(rest, '?'));
  const auto encoded = percent_encode(name);
  char separator = '?';  // before the first item; '&' before the others
  while (!rest.empty()) {
    const auto item = take_until(rest, '&');
    const auto item_name = item.substr(0, item.find('='));
    if (item.empty() || is_name(item_name, encoded) || item_name == name) continue;
    changed.append(1, std::exchange(separator, '&')).append(item);
  }
  return changed.append(1, separator).append(encoded).append("=").append(percent_encode(value));
}

// Returns "user:password@" of a URL, or an empty text.
std::string userinfo_of(std::string_view url) {
  const auto begin = url.find("://");
  if (begin == url.npos) return {};
  const auto authority = url.substr(begin + 3, url.find_first_of("/?#", begin + 3) - begin - 3);
  const auto end = authority.rfind('@');
  return end == authority.npos ? std::string() : std::string(authority.substr(0, end + 1));
}

// Writes the origins as Url::origin does: "https://a.test" for "HTTPS://A.test:443/".
Paging with_plain_origins(Paging paging) {
  for (auto& origin : paging.origins) {
    if (const auto url = Url::parse(origin); url && url->is_origin()) origin = url->origin();
  }
  return paging;
}

Paging paging_by(Paging::By by, std::string pointer, std::string parameter) {
  Paging paging;
  paging.by = by;
  paging.pointer = std::move(pointer);
  paging.parameter = std::move(parameter);
  return paging;
}

}  // namespace

Paging Paging::links() { return Paging(); }
Paging Paging::urls(std::string pointer) { return paging_by(By::Url, std::move(pointer), {}); }
Paging Paging::cursors(std::string pointer, std::string parameter, std::string more) {
  auto paging = paging_by(By::Cursor, std::move(pointer), std::move(parameter));
  paging.more = std::move(more);
  return paging;
}
Paging Paging::numbers(std::string parameter, std::string items, std::int64_t first) {
  auto paging = paging_by(By::Number, std::move(items), std::move(parameter));
  paging.first = first;
  return paging;
}

struct PageWalk::State {
  // Sets the request for the first page: for page numbers, `request` with the first number as a
  // parameter, and otherwise `request` itself. Throws std::invalid_argument if `paging` has an
  // invalid JSON pointer, or lacks the pointer or the parameter that its way of paging needs.
  State(Request request, Paging paging)
      : how(with_plain_origins(std::move(paging))), first(std::move(request)) {
    // A pointer that this way of paging does not use is empty, which is valid: the whole body.
    for (const auto& pointer : {how.pointer, how.more}) {
      if (detail::is_json_pointer(pointer)) continue;
      throw std::invalid_argument("Paging: \"" + pointer + "\" is not a JSON pointer");
    }
    if (how.by == Paging::By::Url && how.pointer.empty()) {
      throw std::invalid_argument("Paging: urls() needs a JSON pointer such as \"/next\"");
    }
    const bool needs_parameter = how.by == Paging::By::Cursor || how.by == Paging::By::Number;
    if (needs_parameter && how.parameter.empty()) {
      throw std::invalid_argument("Paging: the name of the parameter is empty");
    }
    auto begin = first;
    if (how.by == Paging::By::Number) begin.set_url(numbered(how.first));
    go_to(std::move(begin));
  }

  [[nodiscard]] std::string numbered(std::int64_t number) const {
    return with_parameter(first.url(), how.parameter, std::to_string(number));
  }

  void go_to(Request request) {
    visited.insert(request.url());
    next = std::move(request);
  }

  // Ends the list with an error at this page, which counts from 1.
  void fail(std::size_t page, Error why) {
    why.message = "page " + std::to_string(page) + ": " + why.message;
    error = std::move(why);
  }
  void fail(std::size_t page, Errc code, const std::string& message) {
    fail(page, Error(code, message));
  }

  // Sets the request for the page that follows `page`, which `pages` counts already. Sets none
  // after the last page. Ends the list with an error if the reference to the next page is not
  // valid.
  void find_next(const Response& page) {
    if (how.by == Paging::By::Number) {
      // Each number leads to another page. take() ends the list at the first one without items.
      const auto number = how.first + static_cast<std::int64_t>(pages);
      return continue_at(numbered(number), page);
    }
    if (how.by == Paging::By::Link) {
      // The Link header with rel="next". The last page has none.
      const auto url = detail::find_link(page, "next");
      if (!url) return fail(pages + 1, Errc::Protocol, url.error().message);
      if (*url) continue_at(**url, page);
      return;
    }
    // The body has the URL of the next page, or a cursor, which becomes a parameter of the query.
    const auto url_or_cursor = text_in(page);
    // nullopt or empty: `page` was the last one, or text_in() has ended the list with an error.
    if (!url_or_cursor || url_or_cursor->empty()) return;
    if (how.by == Paging::By::Cursor) {
      return continue_at(with_parameter(first.url(), how.parameter, *url_or_cursor), page);
    }
    const auto url = page.resolve(*url_or_cursor);
    if (url) return continue_at(*url, page);
    fail(pages + 1, Errc::Protocol, url.error().message);
  }

  // Reads the body into `tree`. Returns false, with an error, if it is not JSON.
  bool read_body(const Response& page, std::size_t number, JsonTree& tree) {
    if (page.body.empty() && page.delivered > 0) {
      fail(number, Errc::InvalidRequest, "its body went to the sink of the request");
      return false;
    }
    Problems problems("the response");
    read_json(page.body, tree, problems);
    if (tree.root != nullptr) return true;
    fail(number, Errc::Protocol, error_lines(problems.take()));
    return false;
  }

  // Returns the string or number at the pointer. Returns nullopt if that is the last page: the
  // value is missing, null or false, or `more` is false. Also returns nullopt, with an error, if
  // the value is of another type.
  std::optional<std::string> text_in(const Response& page) {
    JsonTree tree;
    if (!read_body(page, pages, tree)) return std::nullopt;
    if (!how.more.empty() && !has_more(*tree.root)) return std::nullopt;
    const auto* value = detail::value_at(*tree.root, how.pointer);
    const bool ends = value == nullptr || value->is(JsonType::Null) ||
                      (value->is(JsonType::Boolean) && !value->boolean);
    // With `more`, the page has said that there is another one, so the value must be there.
    if (ends && how.more.empty()) return std::nullopt;
    if (!ends && (value->is(JsonType::String) || value->is(JsonType::Number))) {
      return std::string(value->text);
    }
    expected("a text", how.pointer, value);
    return std::nullopt;
  }

  // Returns whether the page says at `more` that there is another one. Sets an error if it does not
  // say.
  bool has_more(const JsonNode& body) {
    const auto* value = detail::value_at(body, how.more);
    if (value != nullptr && value->is(JsonType::Boolean)) return value->boolean;
    expected("true or false", how.more, value);
    return false;
  }

  void expected(const std::string& what, const std::string& pointer, const JsonNode* found) {
    fail(pages, Errc::Protocol,
         "expected " + what + " at \"" + pointer + "\", found " +
             (found == nullptr ? "nothing" : described(*found)));
  }

  // Ends the list with an error, and returns true, if another page would be one too many.
  bool fail_at_limit() {
    if (pages < how.max_pages) return false;
    fail(pages + 1, Errc::TooLarge,
         "there are more than " + std::to_string(how.max_pages) + " pages, which is the limit");
    return true;
  }

  // Returns whether the page has items. Sets an error if it cannot have any, or is one too many.
  // Called before `pages` counts the page.
  bool has_items(const Response& page) {
    JsonTree tree;
    if (!read_body(page, pages + 1, tree)) return false;
    const auto* items = detail::value_at(*tree.root, how.pointer);
    if (items == nullptr || items->is(JsonType::Null)) return false;
    if (items->is(JsonType::Array)) return !items->children.empty() && !fail_at_limit();
    fail(pages + 1, Errc::Protocol,
         "expected an array at \"" + how.pointer + "\", found " + described(*items));
    return false;
  }

  // Sets the request for the next page, which is at `url`; `page` is the one before it. Ends the
  // list with an error instead if there are too many pages, if the URL was requested before, or if
  // it is on an origin that must not get the credentials of the first request.
  void continue_at(std::string url, const Response& page) {
    const auto number = pages + 1;  // of the next page, for messages
    // A numbered page is one too many only if it has items, which has_items() checks.
    if (how.by != Paging::By::Number && fail_at_limit()) return;
    // Only the URL of the first request with a new parameter can be relative. It needs no check.
    if (const auto parsed = Url::parse(url)) {
      // Here, `page` is the first page. Its URL has the origin if the first request's is relative.
      if (!origin) origin = first_origin(page);
      const bool is_first_origin = parsed->origin() == *origin;
      if (!is_first_origin && std::ranges::count(how.origins, parsed->origin()) == 0) {
        return fail(number, Errc::Protocol,
                    "it is at " + std::string(parsed->origin()) +
                        ", another origin than the first page, and must not get the credentials "
                        "of that page");
      }
      // "user:password@" in the first URL applies to all pages of its origin, but servers do not
      // repeat it in the URLs of further pages.
      const auto userinfo = userinfo_of(first.url());
      if (is_first_origin && !userinfo.empty() && userinfo_of(url).empty()) {
        url.insert(url.find("://") + 3, userinfo);
      }
      // If the first URL was relative, makes this one relative, so that the client adds the same to
      // both: ClientOptions::base_query, for example. Keeps the host: a path that begins with "//"
      // would name another one.
      if (is_first_origin && !first.parsed_url()) {
        url = parsed->to_string();
        url.erase(0, url.find("//"));
      }
    }
    if (visited.contains(url)) {
      return fail(number, Errc::Protocol, "the server named a page that was already requested");
    }
    auto request = first;
    request.set_url(std::move(url));
    go_to(std::move(request));
  }

  // Returns the origin of the first request. If its URL is relative, the first response has it,
  // unless it was redirected.
  [[nodiscard]] std::string first_origin(const Response& page) const {
    if (const auto& url = first.parsed_url()) return std::string(url->origin());
    const auto& attempts = page.history.attempts;
    const bool redirected = std::ranges::any_of(
        attempts, [](const Attempt& attempt) { return attempt.status / 100 == 3; });
    const auto url = Url::parse(page.url);
    return url && !redirected ? std::string(url->origin()) : std::string();
  }

  const Paging how;
  const Request first;
  std::optional<Request> next;
  // The origin of the first page, or "" if it is not known; nullopt until it is needed.
  std::optional<std::string> origin;
  std::set<std::string> visited;
  std::size_t pages = 0;
  std::optional<Error> error;
};

PageWalk::PageWalk(Request first, Paging how)
    : state_(std::make_unique<State>(std::move(first), std::move(how))) {}
PageWalk::~PageWalk() = default;

const Request* PageWalk::next() const { return state_->next ? &*state_->next : nullptr; }
std::size_t PageWalk::pages() const { return state_->pages; }

Result<std::size_t> PageWalk::result() const {
  if (state_->error) return *state_->error;
  return state_->pages;
}

// Handles the outcome of the request for a page. If it is a page of the list, counts it, finds the
// request for the next one, and returns true. Otherwise ends the list and returns false: the
// outcome is a failure, which becomes the error of the list, or a page without items, which is
// after the last page if pages are numbered.
bool PageWalk::take(const Outcome& outcome) {
  auto& state = *state_;
  const auto number = state.pages + 1;
  state.next.reset();  // without a next request, the list ends; find_next() may set one
  if (!outcome) {
    state.fail(number, outcome.error());  // there is no response
    return false;
  }
  // A redirect that is not followed, or a 304, is a success for the client, but not a page.
  const bool is_page = succeeded(outcome) && outcome->status / 100 != 3;
  if (!is_page) {
    const auto url = Url::parse(outcome->url);
    Error error(Errc::Status, url ? url->without_secrets() + ": " : std::string());
    error.message += succeeded(outcome) ? "status " + std::to_string(outcome->status) +
                                              ", which is not a page of the list"
                                        : describe(outcome);
    error.status = outcome->status;
    error.history = outcome->history;
    error.exchange = outcome->exchange;
    state.fail(number, std::move(error));
    return false;
  }
  // has_items() also returns false, and sets the error of the list, if the body is not as expected.
  if (state.how.by == Paging::By::Number && !state.has_items(*outcome)) return false;
  ++state.pages;
  state.find_next(*outcome);
  return true;
}

}  // namespace httpretry
