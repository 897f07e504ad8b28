// for_each_page sends a request for each page of a list.
//
//   const auto pages = for_each_page(client, Request::get("https://api.example.com/items"),
//                                    Paging::links(), [&](const Response& page) { add(page); });
//   if (!pages) std::fprintf(stderr, "%s\n", pages.error().message.c_str());
//
// Each page is a call of the client, so its policy retries it.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/client/client.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace httpretry {

// Paging says how a page leads to the next one, and limits the walk through the pages.
struct HTTPRETRY_API Paging {
  // The way to the next page; the functions below explain each one.
  enum class By : std::uint8_t { Link, Url, Cursor, Number };

  // The Link header with rel="next" (RFC 8288), as GitHub sends it. A page without it is the last,
  // and one whose rel="next" has no usable URL ends the list with an error.
  static Paging links();
  // The URL at a JSON pointer (RFC 6901) of the body: Paging::urls("/next"). It may be relative. A
  // page without it, or with null or "" there, is the last one.
  static Paging urls(std::string pointer);
  // A cursor at a JSON pointer, which becomes a parameter of the query:
  // Paging::cursors("/meta/next_cursor", "cursor"). The last page is determined as for `urls`, or
  // by `more`, the JSON pointer of a boolean that is true if there is another page. "-" in a
  // pointer is the last item of an array: Paging::cursors("/data/-/id", "starting_after",
  // "/has_more").
  static Paging cursors(std::string pointer, std::string parameter, std::string more = "");
  // A parameter of the query that counts the pages: Paging::numbers("page", "/items"). The first
  // page whose array at the JSON pointer `items` is empty or missing ends the list, and is not
  // passed to the function. "" is the whole body.
  static Paging numbers(std::string parameter, std::string items = "", std::int64_t first = 1);

  By by = By::Link;
  std::string pointer;     // `items` for numbers
  std::string parameter;   // of the query; for Cursor and Number
  std::string more;        // for Cursor; "" if the cursor alone says whether there is another page
  std::int64_t first = 1;  // the number of the first page; for Number
  // The list ends with an error after this many pages, unless that was the last one. The page
  // without items that ends a numbered list does not count. Keeps a server that always names a next
  // page from filling the disk.
  std::size_t max_pages = 10'000;
  // Further origins ("https://api2.example.com") that pages may be requested from, with everything
  // that the first request has, for example its credentials. A page on any other origin ends the
  // list with an error, because the server that names it could get the credentials of another.
  std::vector<std::string> origins;
};

// PageWalk knows which request is next. It is what the functions below use; it sends nothing.
class HTTPRETRY_API PageWalk {
 public:
  // Throws std::invalid_argument if `how` has an invalid pointer or lacks a parameter.
  PageWalk(Request first, Paging how);
  ~PageWalk();
  PageWalk(const PageWalk&) = delete;
  PageWalk& operator=(const PageWalk&) = delete;

  // Returns the request for the next page, or nullptr at the end of the list.
  [[nodiscard]] const Request* next() const;
  // Reports the outcome of that request. Returns whether it is a page of the list.
  bool take(const Outcome& outcome);
  // Returns the number of pages so far.
  [[nodiscard]] std::size_t pages() const;
  // Returns the number of pages, or the error that ended the list.
  [[nodiscard]] Result<std::size_t> result() const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

namespace detail {

// Calls a function that returns whether to continue, an error, or nothing.
template <class F>
Result<bool> continues(F& f, const Response& page) {
  using Returned = std::invoke_result_t<F&, const Response&>;
  if constexpr (std::is_void_v<Returned>) {
    return f(page), true;
  } else if constexpr (std::is_same_v<Returned, Result<void>>) {
    const auto done = f(page);
    if (!done) return done.error();
    return true;
  } else if constexpr (std::is_same_v<Returned, Result<bool>>) {
    return f(page);
  } else {
    return static_cast<bool>(f(page));
  }
}

}  // namespace detail

// Sends the request, and then one for each further page. Calls `f(const Response&)` with each page,
// in order; if it returns false, the list ends. Returns the number of pages that `f` got, or the
// error that ended the list, which says at which page; `f` got the pages before that one. `f` may
// also return a Result<void> or Result<bool>, whose error ends the list. A redirect that the client
// does not follow, or a 304, is not a page, but an error with Errc::Status.
//
// `options` apply to each page: `timeout` limits one page, and `deadline` the list.
template <class F>
Result<std::size_t> for_each_page(Client& client, Request first, Paging how, F f,
                                  const CallOptions& options = CallOptions()) {
  PageWalk walk(std::move(first), std::move(how));
  while (const auto* request = walk.next()) {
    const Outcome outcome = client.send(*request, options);
    if (!walk.take(outcome)) break;
    const auto continues = detail::continues(f, *outcome);
    if (!continues) return continues.error();
    if (!*continues) return walk.pages();
  }
  return walk.result();
}

// The same as a coroutine. `client` must outlive the task.
template <class F>
Task<Result<std::size_t>> co_for_each_page(Client& client, Request first, Paging how, F f,
                                           CallOptions options = CallOptions()) {
  PageWalk walk(std::move(first), std::move(how));
  while (walk.next() != nullptr) {
    auto sending = client.co_send(*walk.next(), options);
    const Outcome outcome = co_await sending;
    if (!walk.take(outcome)) break;
    const auto continues = detail::continues(f, *outcome);
    if (!continues) co_return continues.error();
    if (!*continues) co_return walk.pages();
  }
  co_return walk.result();
}

}  // namespace httpretry
