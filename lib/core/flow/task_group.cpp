
#include "lib/core/base/text.hpp"

#include <httpretry/flow/task_group.hpp>
#include <httpretry/log/log.hpp>

#include <atomic>
#include <mutex>

namespace httpretry {
namespace detail {

// The coroutine that runs one task. It is in the list of its group from beginning to end.
struct Member {
  struct promise_type;
};

struct GroupState {
  explicit GroupState(std::stop_source source) : stop(std::move(source)) {}
  void enter(Member::promise_type& member);
  void leave(Member::promise_type& member);
  // Called when a task has ended, and when the joining coroutine waits. Returns true for the last
  // call.
  bool arrive() { return left.fetch_sub(1, std::memory_order_acq_rel) == 1; }
  void fail(const std::exception_ptr& exception);
  [[nodiscard]] std::exception_ptr failure();
  void destroy_members();

  std::stop_source stop;
  std::atomic<std::size_t> left = 1;  // the tasks and the joining coroutine
  std::coroutine_handle<> joiner;     // the joining coroutine; set before it arrives
  std::mutex mutex;                   // guards the next two members
  Member::promise_type* first = nullptr;
  std::exception_ptr thrown;  // by the task that threw first
};

struct Member::promise_type {
  using Handle = std::coroutine_handle<promise_type>;
  // Destroys the task, and with the frame this object, before the end is reported.
  struct End {
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    [[gnu::noinline]] void await_suspend(Handle done) const noexcept {
      auto& owner = done.promise().group;
      owner.leave(done.promise());
      done.destroy();
      if (owner.arrive()) owner.joiner.resume();
    }
    void await_resume() const noexcept {}
  };

  promise_type(GroupState& owner, const Task<>& /*task*/) : group(owner) { group.enter(*this); }
  [[nodiscard]] Member get_return_object() const noexcept { return {}; }
  [[nodiscard]] std::suspend_never initial_suspend() const noexcept { return {}; }
  [[nodiscard]] End final_suspend() const noexcept { return {}; }
  void return_void() const noexcept {}
  void unhandled_exception() const noexcept { group.fail(std::current_exception()); }

  GroupState& group;
  promise_type* before = nullptr;
  promise_type* after = nullptr;
};

namespace {

// Awaited by the joining coroutine. Does not suspend it if all tasks have ended.
class WaitForAll {
 public:
  explicit WaitForAll(GroupState& group) : group_(group) {}
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  [[gnu::noinline]] bool await_suspend(std::coroutine_handle<> self) const noexcept {
    group_.joiner = self;
    return !group_.arrive();
  }
  void await_resume() const noexcept {}

 private:
  GroupState& group_;
};

// Waits until all tasks of the group have ended. Throws the exception that the first one threw.
Task<> wait_for_all(GroupState& group) {
  const WaitForAll all(group);
  co_await all;
  if (const auto thrown = group.failure()) std::rethrow_exception(thrown);
}

// Starts the task as a member of the group.
Member run_as_member(GroupState& /*group*/, Task<> task) { co_await task; }

}  // namespace

void GroupState::enter(Member::promise_type& member) {
  left.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard lock(mutex);
  member.after = std::exchange(first, &member);
  if (member.after != nullptr) member.after->before = &member;
}

void GroupState::leave(Member::promise_type& member) {
  const std::lock_guard lock(mutex);
  auto& link = member.before != nullptr ? member.before->after : first;
  link = member.after;
  if (member.after != nullptr) member.after->before = member.before;
}

// Keeps the exception and stops the other tasks if it is the first one, and logs it otherwise.
void GroupState::fail(const std::exception_ptr& exception) {
  std::unique_lock lock(mutex);
  const bool is_first = !thrown;
  if (is_first) thrown = exception;
  lock.unlock();  // stop callbacks may start or end tasks
  if (is_first) return static_cast<void>(stop.request_stop());
  write_log(LogLevel::Warning, "httpretry: a task of a group threw after another one had thrown: " +
                                   text_of(exception));
}

std::exception_ptr GroupState::failure() {
  const std::lock_guard lock(mutex);
  return thrown;
}

// Destroys the tasks that have not ended. No other thread uses the group at this point.
void GroupState::destroy_members() {
  if (first == nullptr) return;
  while (first != nullptr) {
    auto& member = *first;
    leave(member);
    Member::promise_type::Handle::from_promise(member).destroy();
  }
  stop.request_stop();
}

void JoinedGroup::begin(Task<> task) { run_as_member(*state_, std::move(task)); }

bool JoinedGroup::threw() const { return state_->failure() != nullptr; }

Task<> JoinedGroup::join() { return wait_for_all(*state_); }

}  // namespace detail

TaskGroup::TaskGroup(std::stop_source stop)
    : state_(std::make_unique<detail::GroupState>(std::move(stop))) {}
TaskGroup::~TaskGroup() { state_->destroy_members(); }

void TaskGroup::start(Task<> task) {
  if (!state_->stop.stop_requested()) detail::run_as_member(*state_, std::move(task));
}

std::stop_token TaskGroup::stop() const { return state_->stop.get_token(); }
void TaskGroup::cancel() { state_->stop.request_stop(); }

}  // namespace httpretry
