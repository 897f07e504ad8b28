#include "resume_on.hpp"

#include <httpretry/flow/detail/shared_work.hpp>
#include <httpretry/flow/semaphore.hpp>

#include <list>
#include <mutex>

namespace httpretry {

struct Semaphore::State {
  explicit State(std::size_t permits) : free(permits) {}

  std::mutex mutex;  // guards the next two members
  std::size_t free;
  std::list<Turn*> queue;  // those that wait for a permit
};

// A permit, or a place in the queue for one. The event happens when the permit is granted.
class Semaphore::Turn final : public detail::Event {
 public:
  // Gets a permit, or joins the queue if none is free.
  explicit Turn(std::shared_ptr<State> state) : state_(std::move(state)) {
    std::list<Turn*> node{this};  // allocated without the mutex
    const std::lock_guard lock(state_->mutex);
    if (state_->free > 0) {
      --state_->free;
      happen();
    } else {
      place_ = node.begin();
      state_->queue.splice(state_->queue.end(), node);
    }
  }
  // Leaves the queue, or passes the permit on to the next in the queue.
  ~Turn() override {
    std::list<Turn*> node;  // freed without the mutex
    const std::lock_guard lock(state_->mutex);
    auto& queue = state_->queue;
    if (!happened()) {
      node.splice(node.end(), queue, place_);
    } else if (queue.empty()) {
      ++state_->free;
    } else {
      // The mutex is held, so that `next` still exists. `happen` only posts the end of its wait.
      auto& next = *queue.front();
      node.splice(node.end(), queue, queue.begin());
      next.happen();
    }
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  std::shared_ptr<State> state_;
  std::list<Turn*>::iterator place_;
};

Semaphore::Semaphore(std::size_t permits) : state_(std::make_shared<State>(permits)) {}

Task<Semaphore::Permit> Semaphore::acquire(Scheduler& loop, std::stop_token stop) {
  return wait(state_, loop, std::move(stop));
}

Semaphore::Permit Semaphore::try_acquire() {
  auto turn = std::make_shared<Turn>(state_);
  return turn->happened() ? Permit(std::move(turn)) : Permit();
}

// Returns an empty permit if the wait is stopped.
Task<Semaphore::Permit> Semaphore::wait(std::shared_ptr<State> state, Scheduler& loop,
                                        std::stop_token stop) {
  if (stop.stop_requested()) co_return Permit();
  auto turn = std::make_shared<Turn>(state);
  if (!turn->happened()) {
    const ReturnTo return_to_loop(loop);
    co_await return_to_loop;
    static_cast<void>(co_await turn->wait(loop, kNever, stop));
  }
  // The stop may have come after the permit was granted, but before this coroutine continued.
  if (!turn->happened() || stop.stop_requested()) co_return Permit();
  co_return Permit(std::move(turn));
}

}  // namespace httpretry
