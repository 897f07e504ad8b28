// What the coroutine check must find: exactly the lines that end in "// found". Never compiled.
#include "task.hpp"

Task an_aggregate(std::string text) {
  co_return co_await send(Body{text});  // found
}

Task an_aggregate_without_its_name(std::string text) {
  int answer = co_await send({text});  // found
  co_return answer;
}

Task a_list() {
  co_return co_await send_all({"a", "b"});  // found
}

Task a_lambda(std::string text) {
  co_return co_await send_made([text] { return Body{text}; });  // found
}

Task a_choice(bool first, std::string text) {
  co_return co_await send_text(first ? text : std::string("second"));  // found
}

Task deeper(std::string text) {
  int answer = 1 + (co_await send(Body{text}) * 2);  // found
  co_return answer;
}

Task in_an_if() {
  if (co_await send_text("a")) co_return 2;  // found
  co_return 1;
}

Task in_an_if_with_a_variable() {
  if (int answer = co_await send_text("a")) co_return answer;  // found
  co_return 1;
}

Task in_a_while() {
  while (co_await send_text("a") > 1) {  // found
  }
  co_return 1;
}

Task in_a_switch() {
  switch (co_await send_text("a")) {  // found
    default: co_return 1;
  }
}

void in_a_lambda_that_is_a_coroutine() {
  run([]() -> Task {
    co_return co_await send(Body{"a"});  // found
  });
}

struct AwaiterThatIsInlined {
  bool await_ready() { return false; }
  void await_suspend(std::coroutine_handle<> awaiter) {  // found
    resume_elsewhere(awaiter);
  }
  void await_resume() {}
};
