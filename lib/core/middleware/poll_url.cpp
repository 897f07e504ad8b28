#include "poll_url.hpp"

#include "named_url.hpp"

#include "lib/core/base/text.hpp"
#include "lib/core/chain/detail/call_state.hpp"
#include "lib/core/retry/origins.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace httpretry {
namespace {

// Returns whether a header describes the body or the resource of the first request.
bool belongs_to_first(std::string_view name, const RetryPolicy& policy) {
  constexpr std::string_view kKnown[] = {"expect", "idempotency-key", "range", "trailer",
                                         "transfer-encoding"};
  const auto lower = to_lower(name);
  return lower.starts_with("content-") || lower.starts_with("if-") ||
         std::ranges::find(kKnown, lower) != std::end(kKnown) ||
         equal_ignoring_case(name, policy.idempotency_key);
}

// Changes the request that began the operation to a GET without its body.
void make_get(Request& request, const RetryPolicy& policy) {
  request.set_method("GET").set_body(Body());
  const Headers all = request.headers();
  for (const auto field : all) {
    if (belongs_to_first(field.name, policy)) request.remove_header(field.name);
  }
  // The user set `repeatable` for the first request, not for a GET.
  if (request.options().repeatable) request.edit_options().repeatable.reset();
}

bool is_listed(const PendingRule& rule, const Url& url) {
  return std::ranges::any_of(rule.origins,
                             [&](auto& each) { return policy::fits_origin(each, url); });
}

// Stored in the context of a call. Empty after forget_last_poll().
struct LastPoll {
  std::optional<Request> request;
};

}  // namespace

Request* last_poll(const Call& call) {
  auto* const last = call.get<LastPoll>();
  return last != nullptr && last->request ? &*last->request : nullptr;
}

void forget_last_poll(const Call& call) {
  if (auto* const last = call.get<LastPoll>()) last->request.reset();
}

PollUrl::PollUrl(const RetryPolicy& policy, const Request& request, Call& call, bool is_polling)
    : policy_(policy), first_(request), call_(call), request_(request), is_polling_(is_polling) {}

std::unique_ptr<PollUrl> PollUrl::make(const RetryPolicy& policy, const Request& request,
                                       Call& call) {
  const bool is_polling = is_poll(request, call);
  forget_last_poll(call);
  const auto& rule = policy.retry_on.pending;
  if (!is_polling && !(rule && !rule->url_from.empty())) return nullptr;
  return std::unique_ptr<PollUrl>(new PollUrl(policy, request, call, is_polling));
}

bool PollUrl::is_poll(const Request& request, const Call& call) {
  const auto* const poll = last_poll(call);
  return poll != nullptr && poll->method() == request.method() && poll->url() == request.url();
}

// Returns the GET that asks for the result of an operation that is still pending. Its URL is in
// `response`, in the first header that the policy's `url_from` lists, for example "Location:
// /jobs/7". Returns an error if that URL must not be polled: if it is not valid, goes from https to
// http, or is at an origin that the policy does not allow. Returns nullopt if no header names a
// URL; then the next attempt sends the same request again. `first_` is the request of the call, and
// `request_` the one that was sent last.
std::optional<Result<Request>> PollUrl::poll_after(const Response& response) const {
  const auto& rule = policy_.retry_on.pending;
  const auto& first_url = first_.parsed_url();
  if (!rule || !first_url) return std::nullopt;
  for (const auto& header : rule->url_from) {
    const auto reference = response.headers.get(header);
    if (!reference || reference->empty()) continue;
    const auto refused = [&](CurlCode curl_code, const std::string& why) {
      return not_followed(response, curl_code, "the " + header + " to poll is " + why);
    };
    // A relative URL refers to that of the response. It may differ from that of `request_`, if a
    // middleware between `retry` and the transport has changed it.
    const auto response_url = Url::parse(response.url);
    const Url base = response_url ? *response_url : *request_.parsed_url();
    const auto target = base.resolve(*reference);
    if (!target) return refused(CurlCode::MalformedUrl, target.error().message);
    // After an encrypted exchange, the poll must not be sent unencrypted.
    if (base.scheme() == "https" && target->scheme() == "http") {
      return refused(CurlCode::UnsupportedProtocol,
                     target->without_secrets() + ": a poll must not change from https to http");
    }
    // The poll has headers of the user's request. So an origin other than that of the user's URL
    // gets the poll only if the policy lists this origin.
    if (target->origin() != first_url->origin() && !is_listed(*rule, *target)) {
      const auto why = "at " + std::string(target->origin()) + ", but the request was to " +
                       std::string(first_url->origin()) +
                       "; to allow it, list it in retry_on.pending.origins";
      return refused(CurlCode::None, why);
    }
    Request poll = request_;  // keeps its options and most of its headers
    make_get(poll, policy_);
    move_to(poll, *target);  // at another origin, also removes what may be secret
    return poll;
  }
  return std::nullopt;
}

// Returns whether `outcome`, a pending response, names a URL. The outcome becomes an error if that
// URL must not be polled.
bool PollUrl::take_url_of(Outcome& outcome) {
  auto poll = poll_after(*outcome);
  if (!poll) return false;
  if (*poll) {
    next_poll_ = **std::move(poll);
  } else {
    outcome = std::move(*poll).error();
  }
  return true;
}

// Called when an attempt has ended, with the numbers of its first and last send, which differ if it
// was hedged. Records it if it was a poll. If another attempt follows and the response named a URL
// to poll (`next_poll_`), makes that poll the next request. A server can answer "not yet" and name
// a URL ("Location: /jobs/7") where the result will be. An attempt that sends a GET there is a
// poll. The history has one entry for consecutive polls of the same URL: "attempts 2 to 5 polled
// /jobs/7".
void PollUrl::end_attempt(int first_number, int last_number, bool attempt_follows) {
  if (is_polling_) {
    auto& polled = call_.history().polled;
    auto url = request_.parsed_url()->without_secrets();
    // The response to a poll may name another URL, which the next attempts poll.
    const bool continues_last_entry = !polled.empty() && polled.back().url == url &&
                                      polled.back().last_attempt + 1 == first_number;
    if (!continues_last_entry) {
      auto& entry = polled.emplace_back();
      entry.first_attempt = first_number;
      entry.url = std::move(url);
    }
    polled.back().last_attempt = last_number;
    // Middlewares outside `retry` know only the user's request. If they send again, for example to
    // follow a redirect of this poll, they take the poll from LastPoll.
    if (!attempt_follows) call_.set(LastPoll{request_});
  }
  // If the response named no URL, the next attempt sends the same request again.
  if (!attempt_follows || !next_poll_) return;
  request_ = *std::move(next_poll_);
  next_poll_.reset();
  is_polling_ = true;
}

}  // namespace httpretry
