#include "idempotency_key.hpp"
#include "named_url.hpp"
#include "poll_url.hpp"

#include "lib/core/chain/detail/call_state.hpp"

#include <httpretry/middleware/builtin.hpp>

#include <stdexcept>

namespace httpretry {
namespace {

constexpr int kTooManyRedirects = 47;  // CURLE_TOO_MANY_REDIRECTS

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

bool becomes_get(int status, const std::string& method) {
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
    for (int followed = 0;; ++followed) {
      Outcome outcome = co_await next(request, call);
      if (!follow(outcome, followed, request, call)) co_return outcome;
    }
  }

 private:
  // Returns whether another request is to be sent, and sets `request` to it. If the redirect must
  // not be followed, sets `outcome` to the error.
  bool follow(Outcome& outcome, int followed, Request& request, const Call& call) const {
    if (!outcome || !is_redirect(outcome->status)) return false;
    const auto location = outcome->headers.get("Location");
    if (!location || location->empty()) return false;
    if (followed == options_.limit) {
      outcome = not_followed(*outcome, kTooManyRedirects,
                             "more than " + std::to_string(followed) + " redirects");
      return false;
    }
    // The poll is redirected, not the request that began the operation.
    if (const auto* poll = last_poll(call)) {
      request = *poll;
      forget_last_poll(call);
    }
    auto next = next_request(request, *outcome, *location);
    if (!next) {
      outcome = std::move(next).error();
      return false;
    }
    take_key_along(request, *next, call);
    request = *std::move(next);
    call.emit(&Observer::redirected, request);
    return true;
  }

  // Returns the redirected request, or an error if it must not be sent.
  [[nodiscard]] Result<Request> next_request(const Request& request, const Response& response,
                                             std::string_view location) const {
    const auto& from = request.parsed_url();
    auto to = from->resolve(location);
    if (!to) {
      return not_followed(response, 3, "the Location of the redirect is " + to.error().message);
    }
    if (from->scheme() == "https" && to->scheme() == "http" && !options_.allow_downgrade) {
      return not_followed(response, 1,
                          "a redirect from https to " + to->without_secrets() + " is not followed");
    }
    Request next = request;
    move_to(next, *to, options_.headers_to_other_origins);
    if (becomes_get(response.status, request.method())) drop_body(next);
    const bool same_origin = to->origin() == from->origin();
    if (!same_origin && next.body().present() && !options_.allow_body_to_other_origin) {
      return not_followed(response, 0,
                          "a redirect with the body to another origin, " +
                              std::string(to->origin()) + ", is not followed");
    }
    return next;
  }

  // `retry` may have sent `from` with an idempotency key. Gives `to` the same key, unless the
  // redirect made it a GET. Like other headers, a key that the user set stays within the origin.
  static void take_key_along(const Request& from, Request& to, const Call& call) {
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
