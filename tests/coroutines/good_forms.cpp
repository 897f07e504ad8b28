// What the coroutine check must leave alone. Never compiled.
#include "task.hpp"

Task a_named_aggregate(std::string text) {
  Body body{text};
  co_return co_await send(body);
}

Task a_named_condition() {
  const int answer = co_await send_text("a");
  if (answer > 1) co_return answer;
  co_return 1;
}

Task a_choice_of_numbers(bool first) {
  co_return co_await send_text(std::string(first ? 1 : 2, 'a'));
}

Task a_coroutine_lambda() {
  auto body = []() -> Task { co_return co_await send_text("a"); };
  co_return co_await body();
}

void statements_of_their_own_in_one_expression() {
  run([]() -> Task {
    Body body{"a"};
    if (body.text.empty()) co_return 0;
    co_return co_await send(body);
  });
}

struct AwaiterOutOfLine {
  bool await_ready() { return false; }
  [[gnu::noinline]] void await_suspend(std::coroutine_handle<> awaiter) {
    resume_elsewhere(awaiter);
  }
  void await_resume() {}
};

struct AwaiterThatOnlyStores {
  bool await_ready() { return false; }
  void await_suspend(std::coroutine_handle<> awaiter) { waiting = awaiter; }
  void await_resume() {}
  std::coroutine_handle<> waiting;
};
