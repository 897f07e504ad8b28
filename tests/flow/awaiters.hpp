// Tasks of these tests, and what they wait for.
#pragma once

#include <httpretry/flow/task.hpp>

#include <coroutine>
#include <memory>
#include <stdexcept>
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

// Holds the number until it is destroyed.
inline Task<int> holding(std::shared_ptr<int> held) {
  co_await std::suspend_always();
  co_return *held;
}

inline Task<int> throwing(const char* what) {
  throw std::runtime_error(what);
  co_return 0;
}

}  // namespace httpretry
