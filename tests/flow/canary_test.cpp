// The coroutine forms that the library relies on, held on every compiler. g++ 12 gets some others
// wrong; the rules against those are in task.hpp. `Counted` finds what a miscompilation does: an
// object that is destroyed twice, or never, or used after its end.
#include <httpretry/flow/task.hpp>

#include <doctest/doctest.h>

#include <set>
#include <stdexcept>
#include <string>

using namespace httpretry;

namespace {

class Counted {
 public:
  explicit Counted(std::string name) : text(std::move(name)) { enter(); }
  Counted(const Counted& other) : text(other.text) { enter(); }
  Counted(Counted&& other) noexcept : text(std::move(other.text)) { enter(); }
  Counted& operator=(const Counted&) = default;
  Counted& operator=(Counted&&) = default;
  ~Counted() {
    if (alive.erase(this) != 1) ++wrong;
  }
  std::string text;

  static inline std::set<const void*> alive;
  static inline int wrong = 0;

 private:
  void enter() {
    if (!alive.insert(this).second) ++wrong;
  }
};

// Nothing is left over and nothing went twice.
struct Balance {
  ~Balance() {
    CHECK(Counted::alive.empty());
    CHECK(Counted::wrong == 0);
  }
};

struct Later {  // suspends, and is resumed by hand
  static inline std::coroutine_handle<> waiting;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handle) const noexcept { waiting = handle; }
  void await_resume() const noexcept {}
};

Task<Counted> echo(Counted value) {
  const Later later;
  co_await later;
  co_return value;
}

Task<std::string> by_value_and_by_reference(Counted value, const Counted& reference) {
  Counted local(value.text + reference.text);
  Counted first = co_await echo(local);             // a copy as argument
  Counted second = co_await echo(Counted("temp"));  // a temporary as argument
  co_return local.text + first.text + second.text;
}

Task<int> in_loops(int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) {
    const Counted held("held");
    Counted got = co_await echo(held);
    if (i == 3) continue;
    sum += static_cast<int>(got.text.size());
    if (i == 5) co_return sum;
  }
  co_return -1;
}

Task<int> through_exceptions() {
  Counted outer("outer");
  try {
    Counted inner("inner");
    Counted got = co_await echo(inner);
    throw std::runtime_error(got.text);
  } catch (const std::runtime_error& thrown) {
    co_return static_cast<int>(std::string(thrown.what()).size() + outer.text.size());
  }
}

template <class T>
T drive(Task<T> task) {
  std::optional<T> result;
  const auto run = [](Task<T> inner, std::optional<T>& into) -> detail::Detached {
    T value = co_await inner;
    into.emplace(std::move(value));
  };
  run(std::move(task), result);
  while (!result) std::exchange(Later::waiting, nullptr).resume();
  return *std::move(result);
}

}  // namespace

TEST_CASE("arguments, locals and results of awaited coroutines live exactly once") {
  const Balance balance;
  const Counted reference("r");
  CHECK(drive(by_value_and_by_reference(Counted("v"), reference)) == "vrvrtemp");
}

TEST_CASE("loops with co_await, continue and co_return destroy what they hold") {
  const Balance balance;
  CHECK(drive(in_loops(10)) == 20);
}

TEST_CASE("exceptions thrown after a suspension unwind a coroutine's locals") {
  const Balance balance;
  CHECK(drive(through_exceptions()) == 10);
}

TEST_CASE("a coroutine destroyed in the middle destroys its locals") {
  const Balance balance;
  {
    auto task = in_loops(10);
    const auto awaiter = task.operator co_await();
    CHECK(awaiter.await_suspend(std::noop_coroutine()));
    CHECK_FALSE(Counted::alive.empty());
  }
}
