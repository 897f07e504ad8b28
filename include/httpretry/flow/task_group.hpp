// run_group: tasks that run at the same time and end together.
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
// the thread that the last of them ended on. If one of them throws, the stop of the group is
// requested; when all have ended, run_group rethrows that exception. What others throw after it is
// logged.
//
// httpretry.hpp does not include this header.
#pragma once

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

// Made by run_group. Its functions may be called from any of its tasks, on any thread.
class HTTPRETRY_API TaskGroup {
 public:
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  // Starts the task at once, on this thread. Once the stop was requested it does nothing: the task
  // is destroyed.
  void start(Task<> task);
  // For the tasks to watch. Requested by `cancel`, when a task throws, and when the stop that
  // run_group was given is.
  [[nodiscard]] std::stop_token stop() const;
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

// A group and what runs it.
class HTTPRETRY_API JoinedGroup final : public TaskGroup {
 public:
  explicit JoinedGroup(std::stop_source stop) : TaskGroup(std::move(stop)) {}
  // As `start`, also after the stop was requested.
  void begin(Task<> task);
  [[nodiscard]] bool threw() const;
  // Once, when nobody outside of the group begins tasks any more.
  [[nodiscard]] Task<> join();
};

}  // namespace detail

// `body(TaskGroup&)` is a coroutine, a Task<T>; run_group gives its value. It is kept until all
// have ended, so a lambda's captures are safe to use in it. Destroying the task of run_group
// destroys the tasks of the group; as with any task, only while none of them runs.
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
