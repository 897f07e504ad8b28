#include <httpretry/middleware/builtin.hpp>

#include <algorithm>
#include <stdexcept>

namespace httpretry {
namespace {

constexpr int kTooManyRedirects = 47;  // libcurl's number

// Headers without secrets.
constexpr std::string_view kHarmless[] = {
    "Accept",     "Accept-Encoding",   "Accept-Language",    "Cache-Control", "Content-Type",
    "Range",      "Content-Language",  "If-Range",           "If-Match",      "If-None-Match",
    "User-Agent", "If-Modified-Since", "If-Unmodified-Since"};

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

bool names(const auto& list, std::string_view name) {
  return std::any_of(std::begin(list), std::end(list),
                     [&](std::string_view known) { return equal_ignoring_case(known, name); });
}

bool becomes_get(int status, const std::string& method) {
  if (status == 303) return method != "GET" && method != "HEAD";
  return (status == 301 || status == 302) && method == "POST";
}

// Both are absolute.
std::string with_userinfo_of(std::string_view from, std::string to) {
  const auto begin = from.find("://") + 3;
  const auto authority = from.substr(begin, from.find_first_of("/?#", begin) - begin);
  return to.insert(to.find("://") + 3, authority.substr(0, authority.rfind('@') + 1));
}

class Redirect final : public Middleware {
 public:
  explicit Redirect(RedirectOptions options) : options_(std::move(options)) {
    if (options_.limit < 0)
      throw std::invalid_argument("RedirectOptions::limit must not be negative");
  }
  [[nodiscard]] std::string_view name() const override { return "redirect"; }

  Task<Outcome> handle(Request request, Call& call, Next next) override {
    for (int hops = 0;; ++hops) {
      Outcome outcome = co_await next(request, call);
      if (!outcome || !is_redirect(outcome->status)) co_return outcome;
      const auto location = outcome->headers.get("Location");
      if (!location || location->empty()) co_return outcome;
      if (hops == options_.limit)
        co_return refused(*outcome, kTooManyRedirects,
                          "more than " + std::to_string(hops) + " redirects");

      auto following = follow(request, *outcome, *location);
      if (!following) co_return std::move(following).error();
      request = *std::move(following);
      call.emit(&Observer::redirected, request);
    }
  }

 private:
  // The next request, or the error why it is not sent.
  [[nodiscard]] Result<Request> follow(const Request& request, const Response& response,
                                       std::string_view location) const {
    const auto& from = request.parsed_url();
    auto to = from->resolve(location);
    if (!to) return refused(response, 3, "the Location of the redirect is " + to.error().message);
    if (from->scheme() == "https" && to->scheme() == "http" && !options_.allow_downgrade) {
      return refused(response, 1,
                     "a redirect from https to " + to->without_secrets() + " is not followed");
    }
    Request next = request;
    const bool same_origin = to->origin() == from->origin();
    const bool with_user = same_origin && from->has_userinfo();
    next.set_url(with_user ? with_userinfo_of(request.url(), to->to_string()) : to->to_string());
    if (becomes_get(response.status, request.method())) drop_body(next);
    if (same_origin) return next;

    keep_secrets(next);
    if (next.body().present() && !options_.allow_body_to_other_origin) {
      return refused(
          response, 0,
          "a redirect with the body to another origin, " + to->origin() + ", is not followed");
    }
    return next;
  }

  static void drop_body(Request& request) {
    request.set_method("GET").set_body(Body());
    for (const auto* name :
         {"Content-Type", "Content-Encoding", "Content-Language", "Content-Location"}) {
      request.remove_header(name);
    }
  }

  void keep_secrets(Request& request) const {
    if (request.options().credentials) request.edit_options().credentials.reset();
    const Headers all = request.headers();
    for (const auto field : all) {
      if (names(kHarmless, field.name) || names(options_.headers_to_other_origins, field.name))
        continue;
      request.remove_header(field.name);
    }
  }

  static Error refused(const Response& response, int curl_code, std::string why) {
    Error error(Errc::Protocol, std::move(why));
    error.permanent = true;
    error.curl_code = curl_code;
    error.status = response.status;
    error.headers = response.headers;
    error.exchange = response.exchange;
    return error;
  }

  RedirectOptions options_;
};

}  // namespace

MiddlewarePtr redirect(RedirectOptions options) {
  return std::make_shared<Redirect>(std::move(options));
}

}  // namespace httpretry
