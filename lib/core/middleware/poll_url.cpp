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

void make_get(Request& request, const RetryPolicy& policy) {
  request.set_method("GET").set_body(Body());
  const Headers all = request.headers();
  for (const auto field : all) {
    if (belongs_to_first(field.name, policy)) request.remove_header(field.name);
  }
  // The user said this about the first request, not about a GET.
  if (request.options().repeatable) request.edit_options().repeatable.reset();
}

bool is_listed(const PendingRule& rule, const Url& url) {
  return std::ranges::any_of(rule.origins,
                             [&](auto& each) { return policy::fits_origin(each, url); });
}

// Stored in the context of a call.
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

std::optional<Result<Request>> PollUrl::poll_after(const Response& response) const {
  const auto& rule = policy_.retry_on.pending;
  const auto& first = first_.parsed_url();
  if (!rule || !first) return std::nullopt;
  for (const auto& header : rule->url_from) {
    const auto reference = response.headers.get(header);
    if (!reference || reference->empty()) continue;
    const auto refused = [&](int curl_code, const std::string& why) {
      return not_followed(response, curl_code, "the " + header + " to poll is " + why);
    };
    // A middleware below may have sent the request to another URL.
    const auto answered = Url::parse(response.url);
    const Url from = answered ? *answered : *request_.parsed_url();
    const auto to = from.resolve(*reference);
    if (!to) return refused(3, to.error().message);
    if (from.scheme() == "https" && to->scheme() == "http") {
      return refused(1, to->without_secrets() + ": https is not left for http");
    }
    if (to->origin() != first->origin() && !is_listed(*rule, *to)) {
      return refused(0, "at " + std::string(to->origin()) + ", and the request was to " +
                            std::string(first->origin()) +
                            "; if it may be polled, list it in retry_on.pending.origins");
    }
    Request poll = request_;
    make_get(poll, policy_);
    move_to(poll, *to);
    return poll;
  }
  return std::nullopt;
}

bool PollUrl::read_url(Outcome& outcome) {
  auto poll = poll_after(*outcome);
  if (!poll) return false;
  if (*poll) {
    next_ = **std::move(poll);
  } else {
    outcome = std::move(*poll).error();
  }
  return true;
}

void PollUrl::end_attempt(int number, bool more) {
  if (is_polling_) {
    auto& polled = call_.history().polled;
    auto url = request_.parsed_url()->without_secrets();
    const bool again =
        !polled.empty() && polled.back().url == url && polled.back().last_attempt + 1 == number;
    if (!again) {
      auto& added = polled.emplace_back();
      added.first_attempt = number;
      added.url = std::move(url);
    }
    polled.back().last_attempt = number;
    if (!more) call_.set(LastPoll{request_});
  }
  if (!more || !next_) return;
  request_ = *std::move(next_);
  next_.reset();
  is_polling_ = true;
}

}  // namespace httpretry
