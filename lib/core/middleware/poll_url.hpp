// PollUrl: what the attempts of a call send. First the request; then, if a pending response says
// so, a GET to the URL that it names.
#pragma once

#include <httpretry/chain/call.hpp>
#include <httpretry/http/response.hpp>
#include <httpretry/retry/retry_policy.hpp>

#include <memory>
#include <optional>

namespace httpretry {

// Returns the last request of `retry` if it polled a URL that a pending response had named,
// otherwise nullptr. Middlewares above `retry` know only the request that began the operation.
Request* last_poll(const Call& call);
// Makes last_poll() return nullptr.
void forget_last_poll(const Call& call);

class PollUrl {
 public:
  // All must outlive this. `request`: as it came to the policy. nullptr where the call polls no
  // URL, nor can begin to.
  static std::unique_ptr<PollUrl> make(const RetryPolicy& policy, const Request& request,
                                       Call& call);
  PollUrl(const PollUrl&) = delete;
  PollUrl& operator=(const PollUrl&) = delete;

  // A middleware above sends the last poll of the call again.
  [[nodiscard]] static bool is_poll(const Request& request, const Call& call);

  // What is sent now. A reference to it stays good, and is then to what is sent later.
  [[nodiscard]] const Request& request() const { return request_; }
  // That is a GET to a URL that a response has named.
  [[nodiscard]] bool polls() const { return polls_; }

  // `outcome` is a pending response to `request`. True if it names a URL. An error takes its place
  // if nothing is sent there.
  bool find(Outcome& outcome);
  // Attempt `number` is over; `more`: another one follows.
  void end_attempt(int number, bool more);

 private:
  PollUrl(const RetryPolicy& policy, const Request& request, Call& call, bool polls);
  [[nodiscard]] std::optional<Result<Request>> poll_after(const Response& response) const;

  const RetryPolicy& policy_;
  const Request& first_;
  Call& call_;
  Request request_;
  std::optional<Request> next_;  // where the pending response has named a URL
  bool polls_;
};

}  // namespace httpretry
