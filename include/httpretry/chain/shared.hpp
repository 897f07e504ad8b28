#pragma once

#include <httpretry/export.hpp>

#include <httpretry/chain/call.hpp>
#include <httpretry/flow/detail/shared_work.hpp>

#include <memory>
#include <stop_token>
#include <utility>

namespace httpretry {

// Shared<T> is a value that is produced once and that many calls can wait for, each on its own
// scheduler.
//
// Such work must not run on the loop of the call that needs it first: that call may be canceled,
// and the loop of a blocking call stops when the call ends. `Client::spawn` runs the work
// independently of all calls:
//
//   Shared<std::string> token = client.spawn([&auth](Scheduler&) { return fetch_token(auth); });
//   ...
//   Result<std::string> text = co_await token.wait(call);    // in a middleware
//
// A Shared is a small value. All copies share one result.
template <class T>
class Shared {
 public:
  explicit Shared(std::shared_ptr<const detail::SharedWork<T>> work) : work_(std::move(work)) {}

  // Returns whether the work has ended.
  [[nodiscard]] bool ready() const { return work_->happened(); }
  // Returns the value, or the Error that the work ended with. Returns Errc::Canceled or
  // Errc::Timeout if the call ends first; the work continues, because others may wait for it.
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
