// Where the tasks of these tests wait.
#pragma once

#include <httpretry/flow/task.hpp>

#include <coroutine>
#include <thread>
#include <vector>

namespace httpretry {

// Continues on a new thread.
struct OnAnotherThread {
  std::vector<std::thread>* threads;
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  [[gnu::noinline]] void await_suspend(std::coroutine_handle<> handle) const {
    threads->emplace_back([handle] { handle.resume(); });
  }
  void await_resume() const noexcept {}
};

// Continues when the test resumes it.
struct ByHand {
  std::vector<std::coroutine_handle<>>* waiting;
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  [[gnu::noinline]] void await_suspend(std::coroutine_handle<> handle) const {
    waiting->push_back(handle);
  }
  void await_resume() const noexcept {}
};

}  // namespace httpretry
