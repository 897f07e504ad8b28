#include "send/paginate.hpp"

#include "cli/text.hpp"
#include "lib/core/base/text.hpp"
#include "lib/core/json/detail/json.hpp"
#include "lib/extras/paging/json_pointer.hpp"

#include <httpretry/json/problem.hpp>

namespace httpretry::cli {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 30U;  // of all pages, which are in memory

// Parses the value of --page-by, which says how a page leads to the next one. Throws UsageError.
//   json:/next                             the next URL is at this JSON pointer of the body
//   cursor:PARAMETER=/meta/next            the cursor at this pointer becomes a query parameter
//   cursor:PARAMETER=/data/-/id,/has_more  the same, while the value at /has_more is true; "-" is
//                                          the last item of the array
//   number:PARAMETER=/items                PARAMETER counts the pages until the array is empty
//   number:PARAMETER                       the same, if the whole body is the array
Paging parse_paging(const std::string& text) {
  std::string_view rest = text;
  const auto kind = take_until(rest, ':');
  if (kind == "json" && !rest.empty() && detail::is_json_pointer(rest)) {
    return Paging::urls(std::string(rest));
  }
  const std::string parameter(take_until(rest, '='));
  const std::string pointer(rest);
  // Checks two pointers, "/data/-/id,/has_more", as one: in a pointer, a comma is not special.
  const bool has_pointer = !pointer.empty() && detail::is_json_pointer(pointer);
  if (kind == "cursor" && !parameter.empty() && has_pointer) {
    const auto comma = pointer.find(",/");
    if (comma == pointer.npos) return Paging::cursors(pointer, parameter);
    return Paging::cursors(pointer.substr(0, comma), parameter, pointer.substr(comma + 1));
  }
  if (kind == "number" && !parameter.empty() && (has_pointer || pointer.empty())) {
    return Paging::numbers(parameter, pointer);
  }
  throw UsageError(
      "option --page-by: \"" + printable(text) +
      "\" is not json:/POINTER, cursor:PARAMETER=/POINTER, "
      "cursor:PARAMETER=/POINTER,/MORE, number:PARAMETER or number:PARAMETER=/POINTER");
}

// AllPages collects the bodies of the pages as one text: one body after another, or with
// --join-pages one JSON array with the items of all pages.
class AllPages {
 public:
  explicit AllPages(const std::optional<std::string>& join) : join_(join) {}

  // Adds the body of a page. Returns what is wrong with it, or an empty text.
  std::string add(const std::string& body) {
    auto problem = join_ ? append_items(body) : std::string();
    if (!join_) {
      text_ += body;
      if (!body.empty() && !body.ends_with('\n')) text_ += '\n';
    }
    if (problem.empty() && text_.size() > kMostBytes) {
      problem = "all pages together are larger than 1 GiB";
    }
    return problem;
  }
  std::string take() {
    if (join_) text_ += text_.empty() ? "[]\n" : "\n]\n";
    return std::move(text_);
  }

 private:
  // Appends the items of a page to the joined array in `text_`, whose closing bracket take() adds.
  // They are the items of the array at the JSON pointer `join_` of the body. Returns a message
  // about what is wrong with the body, or an empty text.
  std::string append_items(const std::string& body) {
    JsonTree tree;
    Problems problems("the response");
    read_json(body, tree, problems);
    if (tree.root == nullptr) return error_lines(problems.take());
    const auto* const array = detail::value_at(*tree.root, *join_);
    if (array == nullptr || !array->is(JsonNode::Type::Array)) {
      const auto found = array == nullptr ? "nothing" : described(*array);
      return "--join-pages expects an array at \"" + *join_ + "\", found " + found;
    }
    for (const auto* const item : array->children) {
      text_ += text_.empty() ? "[\n" : ",\n";
      text_ += compact(*item);
    }
    return {};
  }

  const std::optional<std::string>& join_;
  std::string text_;
};

Error page_error(std::size_t number, Errc code, const std::string& problem) {
  Error error(code, "page " + std::to_string(number) + ": " + problem);
  error.permanent = true;
  return error;
}

// Returns the outcome of the command if the page after `pages` pages has failed: an error that
// names the page, or the outcome of the first page itself, so that its response is shown as it
// would be without --paginate. With --join-pages, a redirect is not shown, because the output of a
// successful command is an array.
Outcome failed_page(const Pagination& options, std::size_t pages, Outcome outcome, Error why) {
  const bool is_shown =
      !outcome || (why.code == Errc::Status && (!options.join || outcome->status >= 400));
  if (pages == 0 && is_shown) return outcome;
  if (!outcome) {
    outcome.error().message = std::move(why.message);  // names the page
    return outcome;
  }
  why.permanent = true;
  return why;
}

// Requests the pages of a list one after another, beginning with `first`. PageWalk finds the
// request for the next page in the response of each page. `send` passes a request to the other
// middlewares, which also retry it. Returns the response of the last page, with the bodies of all
// pages as its body. If a page fails, returns its failure instead.
Task<Outcome> request_pages(Pagination options, Request first, Call& call, Next send) {
  // A sink would receive each page alone. The client passes the returned body to it at the end.
  first.edit_options().sink.reset();
  PageWalk walk(std::move(first), options.how);
  AllPages all_pages(options.join);
  std::optional<Response> last_page;
  while (walk.next() != nullptr) {
    const auto sending = send(*walk.next(), call);
    Outcome outcome = co_await sending;
    // PageWalk needs to know how the retry middleware judged this page. The client sets the history
    // of an outcome only at the end of the whole call, so take() gets a short one, which is removed
    // afterwards.
    auto& history = outcome ? outcome->history : outcome.error().history;
    if (const auto* attempt = call.history().last()) history.attempts = {*attempt};
    history.stop_reason = call.history().stop_reason;
    const bool is_page = walk.take(outcome);
    history = History();
    if (!is_page) {  // the page failed, or it has no items, which ends a list of numbered pages
      const auto result = walk.result();
      if (!result) co_return failed_page(options, walk.pages(), std::move(outcome), result.error());
      if (!last_page) last_page = *std::move(outcome);  // the list has no items at all
      break;
    }
    const auto problem = all_pages.add(outcome->body);
    if (!problem.empty()) co_return page_error(walk.pages(), Errc::Protocol, problem);
    last_page = *std::move(outcome);
  }
  // An error if the last page names a next one that must not be requested: on another origin, for
  // example, or beyond --max-pages. A retry would not change that.
  auto result = walk.result();
  if (!result) {
    result.error().permanent = true;
    co_return std::move(result).error();
  }
  last_page->body = all_pages.take();
  co_return *std::move(last_page);
}

}  // namespace

// Returns the flags for lists of several pages. Each has a letter ('\0': none), a name, the name of
// its value (empty: none), a help text, and an action that stores the value `v` in `to`, which must
// outlive the flags. All of them turn on the paging (`to.on`).
std::vector<Flag> paging_flags(Pagination& to) {
  return {
      {'\0', "paginate", "",
       "request all pages of a list by following the Link headers (rel=\"next\"), and write them "
       "when the last one has arrived",
       enable(to.on)},
      {'\0', "page-by", "WAY",
       "with --paginate: find the next page another way: json:/POINTER (its URL is in the body), "
       "cursor:PARAMETER=/POINTER (a cursor in the body becomes a query parameter; "
       "/data/-/id,/has_more takes it from the last item, while has_more is true), or "
       "number:PARAMETER=/POINTER (the pages are counted, until the array is empty)",
       [&](Text v) {
         const auto max_pages = to.how.max_pages;  // of a --max-pages before this flag
         to.how = parse_paging(v);
         to.how.max_pages = max_pages;
         to.on = true;
       }},
      {'\0', "max-pages", "N", "with --paginate: fail if there are more pages (10000)",
       [&](Text v) {
         const auto most = parse_count(v, "--max-pages");
         if (most == 0) throw UsageError("option --max-pages must be at least 1");
         to.how.max_pages = static_cast<std::size_t>(most);
         to.on = true;
       }},
      {'\0', "join-pages", "[=POINTER]",
       "with --paginate: write one JSON array with the items of all pages; POINTER is the JSON "
       "pointer of the array in each page, such as /items; without it, each page is an array",
       [&](Text v) {
         if (!detail::is_json_pointer(v)) {
           throw UsageError("option --join-pages: \"" + printable(v) +
                            "\" is not a JSON pointer, such as /items");
         }
         to.join = v;
         to.on = true;
       }},
  };
}

MiddlewarePtr paginate(const Pagination& options) {
  return middleware("paginate", [options](Request request, Call& call, Next next) {
    return request_pages(options, std::move(request), call, next);
  });
}

}  // namespace httpretry::cli
