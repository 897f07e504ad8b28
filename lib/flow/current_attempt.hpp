// What the middleware `retry` and the stages below it tell each other about one attempt.
#pragma once

#include <httpretry/http/guard_facts.hpp>
#include <httpretry/http/result.hpp>
#include <httpretry/retry/classify.hpp>
#include <httpretry/retry/retry_policy.hpp>

#include <memory>

namespace httpretry {

class Call;
class Request;
struct ResolvedPolicy;

// Of the middleware `retry`.
class CurrentAttempt {
 public:
  [[nodiscard]] virtual const std::shared_ptr<const RetryPolicy>& policy() const = 0;
  // nullptr where the request has brought its own policy.
  [[nodiscard]] virtual const std::shared_ptr<const ResolvedPolicy>& resolved() const = 0;
  // It is not the first of its request.
  [[nodiscard]] virtual bool is_retry() const = 0;
  [[nodiscard]] virtual Classified judge(const Outcome& outcome) const = 0;
  // Whether `judge` would look into the body of such a response.
  [[nodiscard]] virtual bool reads_body(int status, const Headers& headers) const = 0;

 protected:
  ~CurrentAttempt() = default;
};

// Of the middleware `guards`.
class SendGate {
 public:
  // What would hold back one more send of that call now. Takes nothing. Nothing: a second send may
  // go out beside the first, which waits for neither slot nor token.
  [[nodiscard]] virtual QueuedBy would_hold(const Request& request, const Call& call) = 0;
  // A send that it let pass without being asked has ended like that: the server may ask for a
  // pause.
  virtual void hear(const Request& request, const Call& call, const CurrentAttempt& attempt,
                    const Outcome& outcome, const Classified& found) = 0;

 protected:
  ~SendGate() = default;
};

// Is told how far a send is, on the loop of its call.
class SendWatch {
 public:
  // The final ones of the response.
  virtual void headers_came(const Response& head) noexcept = 0;

 protected:
  ~SendWatch() = default;
};

}  // namespace httpretry
