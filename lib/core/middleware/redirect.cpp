#include "idempotency_key.hpp"
#include "named_url.hpp"
#include "poll_url.hpp"

#include "lib/core/chain/detail/call_state.hpp"

#include <httpretry/middleware/builtin.hpp>

#include <algorithm>
#include <stdexcept>

namespace httpretry {
namespace {

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

bool becomes_get(int status, const std::string& method, const std::vector<int>& keep_post_after) {
  if (method == "POST" && std::ranges::find(keep_post_after, status) != keep_post_after.end()) {
    return false;
  }
  if (status == 303) return method != "GET" && method != "HEAD";
  return (status == 301 || status == 302) && method == "POST";
}

class Redirect final : public Middleware {
 public:
  explicit Redirect(RedirectOptions options) : options_(std::move(options)) {
    if (options_.limit < 0)
      throw std::invalid_argument("RedirectOptions::limit must not be negative");
  }
  [[nodiscard]] std::string_view name() const override { return "redirect"; }

  Task<Outcome> handle(Request request, Call& call, Next next) override {
    for (int redirects_followed = 0;; ++redirects_followed) {
      Outcome outcome = co_await next(request, call);
      if (!follow(outcome, redirects_followed, request, call)) co_return outcome;
    }
  }

 private:
  // If `outcome` is a redirect, sets `request` to the one to send next and returns true. Returns
  // false if the call ends with `outcome`, which becomes an error if the redirect must not be
  // followed.
  bool follow(Outcome& outcome, int redirects_followed, Request& request, const Call& call) const {
    if (!outcome || !is_redirect(outcome->status)) return false;
    const auto location = outcome->headers.get("Location");
    if (!location || location->empty()) return false;
    if (redirects_followed == options_.limit) {
      outcome = not_followed(*outcome, CurlCode::TooManyRedirects,
                             "more than " + std::to_string(redirects_followed) + " redirects");
      return false;
    }
    // If `retry` was polling a URL, that poll is redirected, not the request that began the
    // operation.
    if (const auto* poll = last_poll(call)) {
      request = *poll;
      forget_last_poll(call);
    }
    // If the URL is relative, a middleware below has completed it, or has made the response.
    if (!request.parsed_url()) request.set_url(outcome->url);
    if (!request.parsed_url()) return false;
    auto next = next_request(request, *outcome, *location);
    if (!next) {
      outcome = std::move(next).error();
      return false;
    }
    keep_idempotency_key(request, *next, call);
    request = *std::move(next);
    call.emit(&Observer::redirected, request);
    return true;
  }

  // Returns the redirected request, or an error if it must not be sent. `location` is the target,
  // and may be relative.
  [[nodiscard]] Result<Request> next_request(const Request& request, const Response& response,
                                             std::string_view location) const {
    const auto& from = request.parsed_url();
    const auto target = from->resolve(location);
    if (!target) {
      return not_followed(response, CurlCode::MalformedUrl,
                          "the Location of the redirect is " + target.error().message);
    }
    if (from->scheme() == "https" && target->scheme() == "http" && !options_.allow_downgrade) {
      const auto why = "a redirect from https to " + target->without_secrets() + " is not followed";
      return not_followed(response, CurlCode::UnsupportedProtocol, why);
    }
    Request next = request;
    const bool trusted = options_.trust_other_origins;
    trusted ? move_to_trusted(next, *target)
            : move_to(next, *target, options_.headers_to_other_origins);
    if (becomes_get(response.status, request.method(), options_.keep_post_after)) drop_body(next);
    const bool same_origin = target->origin() == from->origin();
    const bool may_have_body = same_origin || trusted || options_.allow_body_to_other_origin;
    if (next.body().present() && !may_have_body) {
      return not_followed(response, CurlCode::None,
                          "a redirect with the body to another origin, " +
                              std::string(target->origin()) + ", is not followed");
    }
    return next;
  }

  // `retry` may have sent `from` with an idempotency key. Lets it send `to` with the same key,
  // unless the redirect made it a GET. Like other headers, a key that the user set stays within the
  // origin.
  static void keep_idempotency_key(const Request& from, Request& to, const Call& call) {
    auto* const key = call.get<SentKey>();
    if (key == nullptr || !is_for(*key, from)) return;
    const bool same_origin = to.parsed_url()->origin() == from.parsed_url()->origin();
    const bool same_method = to.method() == from.method();
    key->redirected = same_method && (same_origin || key->header.empty());
    if (!same_method && !key->header.empty()) to.remove_header(key->header);
  }

  // Returns whether the call has sent this request with the key. A middleware below may have
  // changed the URL or the body, but not both.
  static bool is_for(const SentKey& key, const Request& request) {
    const auto& sent = key.request;
    const auto& body = request.body();
    return sent.method() == request.method() &&
           (sent.url() == request.url() || (body.present() && sent.body().is_same_as(body)));
  }

  static void drop_body(Request& request) {
    request.set_method("GET").set_body(Body());
    for (const auto* name : {"Content-Type", "Content-Encoding", "Content-Language",
                             "Content-Location", "Idempotency-Key"}) {
      request.remove_header(name);
    }
  }

  RedirectOptions options_;
};

}  // namespace

MiddlewarePtr redirect(RedirectOptions options) {
  return std::make_shared<Redirect>(std::move(options));
}

}  // namespace httpretry
