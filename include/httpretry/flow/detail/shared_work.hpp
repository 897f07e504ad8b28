// The work behind Shared and Client::spawn.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/flow/scheduler.hpp>
#include <httpretry/http/result.hpp>

#include <exception>
#include <functional>
#include <optional>
#include <stop_token>
#include <string_view>
#include <utility>

namespace httpretry::detail {

// Event happens once, on any thread.
class HTTPRETRY_API Event {
 public:
  virtual ~Event();
  [[nodiscard]] bool happened() const { return happened_.stop_requested(); }
  // Continues on `scheduler` as soon as one of these is true: the event has happened, `limit` has
  // been reached, `stop` is requested, or the scheduler is closed. Returns false only if the wait
  // was canceled.
  Task<bool> wait(Scheduler& scheduler, Time limit, std::stop_token stop) const;
  // Writes before this call are visible to every thread that finds the event happened.
  void happen() { happened_.request_stop(); }

 private:
  std::stop_source happened_;
};

// Returns the Error of a wait that ended before the event it waited for.
[[nodiscard]] HTTPRETRY_API Error wait_ended(bool canceled, std::string_view waited_for);

// Work is what a client runs for `spawn`.
class HTTPRETRY_API Work : public Event {
 public:
  virtual Task<void> run(Scheduler& scheduler) = 0;
  // Called if the work cannot run or has thrown.
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

}  // namespace httpretry::detail
