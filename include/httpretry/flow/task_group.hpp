// run_group runs tasks concurrently and continues when all of them have ended.
//
//   Task<> fetch(Client& client, std::string url, std::stop_token stop);
//
//   auto begin = [&](TaskGroup& group) -> Task<> {
//     for (const auto& url : urls) group.start(fetch(client, url, group.stop()));
//     co_return;
//   };
//   auto all = run_group(begin);
//   co_await all;
//
// No task outlives its group: run_group continues when the function and all tasks have ended, on
// the thread on which the last of them ended. If one of them throws, the group's stop is requested,
// and run_group rethrows the exception when all have ended. Later exceptions are logged.
//
// httpretry.hpp does not include this header.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/flow/task.hpp>

#include <memory>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace httpretry {

namespace detail {
struct GroupState;
}

// TaskGroup holds the tasks of one run_group, which creates it, and starts them. Any of the group's
// tasks may call its functions, on any thread.
class HTTPRETRY_API TaskGroup {
 public:
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  // Starts the task at once, on this thread. If stop has been requested, destroys the task without
  // starting it.
  void start(Task<> task);
  // Returns the token that the tasks should observe. Its stop is requested by `cancel`, when a task
  // throws, and when the stop passed to run_group is requested.
  [[nodiscard]] std::stop_token stop() const;
  // Requests the stop of that token. It does not wait for the tasks.
  void cancel();

 protected:
  explicit TaskGroup(std::stop_source stop);
  ~TaskGroup();
  const std::unique_ptr<detail::GroupState> state_;
};

namespace detail {

template <class T>
struct ValueOfTask;
template <class T>
struct ValueOfTask<Task<T>> {
  using type = T;
};

// JoinedGroup is a TaskGroup whose end can be awaited.
class HTTPRETRY_API JoinedGroup final : public TaskGroup {
 public:
  explicit JoinedGroup(std::stop_source stop) : TaskGroup(std::move(stop)) {}
  // Starts the task like `start`, but even after stop was requested.
  void begin(Task<> task);
  [[nodiscard]] bool threw() const;
  // Waits for the end of all tasks. May be called once, when only tasks of the group can still
  // start tasks.
  [[nodiscard]] Task<> join();
};

}  // namespace detail

// Runs `body(TaskGroup&)`, a coroutine that returns a Task<T>, and returns its value. The function
// object is kept until all tasks have ended, so the captures of a lambda stay valid. Destroying the
// task of run_group destroys the tasks of the group. As with any task, do this only while none of
// them is running.
template <class Body>
std::invoke_result_t<Body&, TaskGroup&> run_group(Body body,
                                                  std::stop_token stop = std::stop_token()) {
  using T = typename detail::ValueOfTask<std::invoke_result_t<Body&, TaskGroup&>>::type;
  std::stop_source source;
  const auto cancel = [source]() mutable { source.request_stop(); };
  const std::stop_callback forward(std::move(stop), cancel);
  std::optional<detail::ValueOrNothing<T>> value;
  detail::JoinedGroup group(source);
  group.begin(detail::keep(body(group), value));
  const auto all = group.join();
  co_await all;
  if constexpr (!std::is_void_v<T>) co_return *std::move(value);
}

}  // namespace httpretry
