// Shared<T>: a value that is made once and that many calls wait for, each on its own scheduler.
//
// Work of that kind must not run on the loop of the call that happens to need it first: that call
// may be canceled, and the loop of a blocking one stops when it ends. `Client::spawn` runs it apart
// from all of them:
//
//   Shared<std::string> token = client.spawn([&auth](Scheduler&) { return fetch_token(auth); });
//   ...
//   Result<std::string> text = co_await token.wait(call);    // in a middleware
//
// A small value, to be copied; all copies are of the one value.
#pragma once

#include <httpretry/flow/call.hpp>
#include <httpretry/flow/task.hpp>
#include <httpretry/http/result.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

namespace httpretry {

namespace detail {

// Something that will happen once, on any thread.
class HTTPRETRY_API Happening {
 public:
  virtual ~Happening();
  [[nodiscard]] bool happened() const { return happened_.stop_requested(); }
  // Goes on, on `scheduler`, when it has happened, when `limit` has come, when `stop` is requested
  // or the scheduler ends its waits: the first of these, whether it has happened or not. False only
  // where the wait was called off.
  Task<bool> wait(Scheduler& scheduler, Time limit, std::stop_token stop) const;

 protected:
  // What was written before this is seen by everyone who finds that it happened.
  void happen() { happened_.request_stop(); }

 private:
  std::stop_source happened_;
};

// What a client runs for `spawn`.
class HTTPRETRY_API Work : public Happening {
 public:
  virtual Task<void> run(Scheduler& scheduler) = 0;
  // It cannot be run, or it threw.
  virtual void give_up(Error why) = 0;

 protected:
  static Error thrown_by_work(const std::exception_ptr& thrown);
};

template <class T>
class SharedWork final : public Work {
 public:
  using Function = std::function<Task<Result<T>>(Scheduler&)>;
  explicit SharedWork(Function work) : work_(std::move(work)) {}

  Task<void> run(Scheduler& scheduler) override {
    try {
      Result<T> value = co_await work_(scheduler);
      value_.emplace(std::move(value));
    } catch (...) {
      value_.emplace(thrown_by_work(std::current_exception()));
    }
    work_ = nullptr;
    happen();
  }
  void give_up(Error why) override {
    value_.emplace(std::move(why));
    happen();
  }
  [[nodiscard]] const Result<T>& value() const { return *value_; }

 private:
  Function work_;
  std::optional<Result<T>> value_;
};

// Why a wait in a call ended without what it was for.
[[nodiscard]] HTTPRETRY_API Error wait_ended(bool called_off, std::string_view waited_for);

}  // namespace detail

template <class T>
class Shared {
 public:
  explicit Shared(std::shared_ptr<const detail::SharedWork<T>> work) : work_(std::move(work)) {}

  [[nodiscard]] bool ready() const { return work_->happened(); }
  // The value, or the Error that the work ended with; Errc::Canceled or Errc::Timeout where the
  // call ends first, which leaves the work alone: others may wait for it.
  [[nodiscard]] Task<Result<T>> wait(const Call& call) const {
    return wait_for(work_, call.scheduler(), call.deadline(), call.stop());
  }

 private:
  static Task<Result<T>> wait_for(std::shared_ptr<const detail::SharedWork<T>> work,
                                  Scheduler& scheduler, Time deadline, std::stop_token stop) {
    if (!work->happened()) {
      const bool whole = co_await work->wait(scheduler, deadline, std::move(stop));
      if (!work->happened()) co_return detail::wait_ended(!whole, "shared work");
    }
    co_return work->value();
  }

  std::shared_ptr<const detail::SharedWork<T>> work_;
};

}  // namespace httpretry
