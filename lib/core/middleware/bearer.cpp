#include "poll_url.hpp"

#include "lib/core/chain/detail/call_state.hpp"
#include "lib/core/chain/single_flight.hpp"

#include <httpretry/middleware/builtin.hpp>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

namespace httpretry {

BearerToken::BearerToken(std::string token, Duration lasts)
    : text(std::move(token)), valid_for(lasts) {}

namespace {

// A token is renewed at most this long before it expires, as BearerToken::valid_for says.
constexpr Duration kLongestLead = std::chrono::seconds(30);

// The origins that may receive a token.
class Recipients {
 public:
  // If `origins` is empty, each call's own origin may. Throws if an entry is not an origin.
  explicit Recipients(const std::vector<std::string>& origins) {
    for (const auto& origin : origins) {
      const auto url = Url::parse(origin);
      if (!url || !url->is_origin()) {
        throw std::invalid_argument("an origin of bearer() is not like https://api.example.com");
      }
      origins_.emplace_back(url->origin());
    }
  }

  // Returns whether the request gets a token: only within the origin of the call, and only if the
  // user has not set the header.
  [[nodiscard]] bool include(const Request& request, const Call& call) const {
    const auto& url = request.parsed_url();
    return url && url->origin() == call.origin() && !request.headers().contains("Authorization") &&
           (origins_.empty() || std::ranges::count(origins_, url->origin()) > 0);
  }

 private:
  std::vector<std::string> origins_;
};

// Adds a token to requests to the origin of the call. All calls share the token. It is renewed
// before it expires. If the server responds with 401, it is renewed and the request resent once.
class Bearer final : public Middleware {
 public:
  Bearer(TokenSource fetch, Recipients recipients)
      : fetch_([this, fetch = std::move(fetch)](Call& call) {
          auto renewal = renew(fetch, call);
          renewal.set_thrower("bearer");  // an exception becomes an error of all calls that wait
          return renewal;
        }),
        recipients_(std::move(recipients)) {}
  [[nodiscard]] std::string_view name() const override { return "bearer"; }

  Task<Outcome> handle(Request request, Call& call, Next next) override {
    if (!recipients_.include(request, call)) return next(std::move(request), call);
    return authorized(std::move(request), call, next);
  }

 private:
  // Sends the request with the shared token. If the server responds with 401, gets another token
  // and resends the request, once. Returns the last outcome, or the error of fetching the token.
  // Below `retry`, both sends belong to one attempt, so the outcome counts both.
  Task<Outcome> authorized(Request request, Call& call, Next next) {
    std::string refused_token;  // empty until a 401
    int earlier_sends = 0;
    for (;;) {
      Result<std::string> token = co_await token_other_than(refused_token, call);
      if (!token) co_return without_token(std::move(token).error());
      Request attempt = request;
      attempt.set_header("Authorization", "Bearer " + *token);
      Outcome outcome = co_await next(std::move(attempt), call);
      exchange_of(outcome).wire_sends += earlier_sends;
      const bool first_401 = outcome && outcome->status == 401 && refused_token.empty();
      if (!first_401 || !select_refused(request, call)) co_return outcome;
      refused_token = *std::move(token);
      if (!next.has("retry")) earlier_sends = outcome->exchange.wire_sends;
    }
  }

  // Sets `request` to the one that got the 401. Returns false if it must not be resent.
  static bool select_refused(Request& request, const Call& call) {
    // If that was a poll, the server has accepted the request that began the operation.
    if (const auto* poll = last_poll(call)) {
      if (poll->parsed_url()->origin() != call.origin()) return false;
      request = *poll;
    }
    // The server has also accepted it if a poll was redirected. Then only a middleware below knows
    // which request got the 401, so the first request is resent only if it is repeatable.
    const bool accepted = !call.history().polled.empty();
    return request.body().replayable() && (request.repeatable() || !accepted);
  }

  // Returns the current token, or fetches one if that token is `refused` or has expired.
  Task<Result<std::string>> token_other_than(std::string refused, Call& call) {
    auto stored = usable_token(refused, call.scheduler().now());
    if (stored) co_return *std::move(stored);
    Result<std::string> token = co_await flight_.join(fetch_, call);
    co_return token;
  }

  // Returns nullopt if no token is stored, or if it is `refused` or is due for renewal.
  std::optional<std::string> usable_token(const std::string& refused, Time now) {
    const std::lock_guard lock(mutex_);
    if (text_.empty() || text_ == refused || now >= renew_at_) return std::nullopt;
    return text_;
  }

  // Fetches a token, stores it for all calls, and returns it. Returns the error if that fails.
  Task<Result<std::string>> renew(const TokenSource& fetch, Call& call) {
    const auto fetch_began = call.scheduler().now();
    Result<BearerToken> fetched = co_await fetch(call);
    if (!fetched) co_return std::move(fetched).error();
    const bool usable = !fetched->text.empty() && valid_header_value(fetched->text);
    if (!usable) co_return unusable_token_error();
    const auto valid_for = fetched->valid_for;
    const auto lead =
        valid_for == kForever ? Duration() : std::min<Duration>(kLongestLead, valid_for / 10);
    const std::lock_guard lock(mutex_);
    text_ = fetched->text;
    renew_at_ = later(fetch_began, valid_for - lead);
    co_return text_;
  }

  static Error unusable_token_error() {
    Error error(Errc::Internal, "the token is empty or contains a control byte");
    error.permanent = true;
    return error;
  }

  static Error without_token(Error error) {
    error.message = "no bearer token: " + error.message;
    return error;
  }

  // Calls share one token, and one fetch of it.
  SingleFlight<std::string>::Fetch fetch_;
  SingleFlight<std::string> flight_;
  const Recipients recipients_;
  std::mutex mutex_;
  std::string text_;
  Time renew_at_{};
};

}  // namespace

MiddlewarePtr bearer(std::string token, std::vector<std::string> origins) {
  if (token.empty() || !valid_header_value(token)) {
    throw std::invalid_argument("a bearer token must not be empty or contain a control byte");
  }
  return on_request("bearer", [value = "Bearer " + token, recipients = Recipients(origins)](
                                  Request& request, Call& call) {
    if (recipients.include(request, call)) request.set_header("Authorization", value);
  });
}

MiddlewarePtr bearer(TokenSource fetch, std::vector<std::string> origins) {
  if (!fetch) throw std::invalid_argument("bearer() needs a function that fetches tokens");
  return std::make_shared<Bearer>(std::move(fetch), Recipients(origins));
}

}  // namespace httpretry
