// The least coroutine type that the fixtures of the coroutine check need.
#pragma once

#include <coroutine>
#include <functional>
#include <string>
#include <vector>

struct Task {
  struct promise_type {
    Task get_return_object() { return {}; }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_value(int) {}
    void unhandled_exception() {}
  };
  ~Task() {}
  bool await_ready() { return true; }
  void await_suspend(std::coroutine_handle<>) {}
  int await_resume() { return 1; }
};

struct Body {
  std::string text;
};

Task send(Body body);
Task send_text(std::string text);
Task send_all(std::vector<std::string> texts);
Task send_made(std::function<Body()> make);
void run(std::function<Task()> body);
void resume_elsewhere(std::coroutine_handle<> handle);
