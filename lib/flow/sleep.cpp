#include "resume_on.hpp"

#include <httpretry/flow/sleep.hpp>

#include <algorithm>

namespace httpretry {

Task<bool> sleep_for(Scheduler& loop, Duration time, std::stop_token stop) {
  const ReturnTo there(loop);
  co_await there;
  // The turn may have begun long ago.
  if (auto* queue = RunQueue::current(); queue == &loop) queue->read_clock();
  const auto when = later(loop.now(), std::max(time, Duration::zero()));
  const bool slept = co_await loop.sleep_until(when, std::move(stop));
  co_return slept;
}

}  // namespace httpretry
