// PollUrl: chooses the request that each attempt sends. That is the request of the call until a
// pending response names a URL, and then a GET to this URL.
#pragma once

#include <httpretry/chain/call.hpp>
#include <httpretry/http/response.hpp>
#include <httpretry/retry/retry_policy.hpp>

#include <memory>
#include <optional>

namespace httpretry {

// Returns the last request that `retry` sent if it polled a URL that a pending response had named,
// otherwise nullptr. Middlewares above `retry` know only the request that began the operation.
Request* last_poll(const Call& call);
// Makes last_poll() return nullptr.
void forget_last_poll(const Call& call);

class PollUrl {
 public:
  // Returns nullptr if the call neither polls a URL nor can begin to. All arguments must
  // outlive the result. `request` is the request as `retry` got it.
  static std::unique_ptr<PollUrl> make(const RetryPolicy& policy, const Request& request,
                                       Call& call);
  PollUrl(const PollUrl&) = delete;
  PollUrl& operator=(const PollUrl&) = delete;

  // Returns whether `request` is the last poll of the call, which a middleware above resends.
  [[nodiscard]] static bool is_poll(const Request& request, const Call& call);

  // Returns the request to send now. The reference stays valid, and later refers to the next one.
  [[nodiscard]] const Request& request() const { return request_; }
  // Returns whether `request()` is a GET to a URL that a response has named.
  [[nodiscard]] bool is_polling() const { return is_polling_; }

  // Returns whether `outcome`, a pending response to `request()`, names a URL to poll. Replaces it
  // with an error if that URL must not be polled.
  bool take_url_of(Outcome& outcome);
  // Records that an attempt has ended, whose sends have these numbers, and if another attempt
  // follows, moves on to the URL that `take_url_of` found.
  void end_attempt(int first_number, int last_number, bool attempt_follows);

 private:
  PollUrl(const RetryPolicy& policy, const Request& request, Call& call, bool is_polling);
  [[nodiscard]] std::optional<Result<Request>> poll_after(const Response& response) const;

  const RetryPolicy& policy_;
  const Request& first_;
  Call& call_;
  Request request_;
  std::optional<Request> next_poll_;  // set by take_url_of
  bool is_polling_;
};

}  // namespace httpretry
