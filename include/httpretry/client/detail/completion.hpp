// What Client's templates need.
#pragma once

#include <httpretry/flow/task.hpp>
#include <httpretry/http/response.hpp>

#include <memory>
#include <utility>

namespace httpretry::detail {

class ClientCore;
struct CoreOf;

// Told once how a call ended, on the thread that drove the call. It deletes itself then.
class HTTPRETRY_API Completion {
 public:
  virtual ~Completion();
  virtual void complete(Outcome outcome) noexcept = 0;
};

template <class Callback>
class CallbackCompletion final : public Completion {
 public:
  explicit CallbackCompletion(Callback callback) : callback_(std::move(callback)) {}
  void complete(Outcome outcome) noexcept override {
    const std::unique_ptr<CallbackCompletion> self(this);
    callback_(std::move(outcome));
  }

 private:
  Callback callback_;
};

// What awaiting an Awaitable gives.
template <class Awaitable>
using ResultOf = decltype(std::declval<Awaitable&>().operator co_await().await_resume());

}  // namespace httpretry::detail
