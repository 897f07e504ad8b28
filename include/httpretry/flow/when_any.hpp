// when_any returns the result of the first of several tasks. It cancels the others and awaits their
// end.
//
//   std::stop_source losers;
//   CallOptions options;
//   options.stop = losers.get_token();
//   std::vector<Task<Outcome>> calls;
//   for (const auto& url : mirrors) calls.push_back(client.co_send(Request::get(url), options));
//   auto first = co_await when_any(losers, std::move(calls), succeeded);
//
// `first.index` is the index of the first task, and `first.value` is its value. The function, here
// `succeeded`, determines which values are good: the race ends with the first good value. If no
// value is good, the result is the last one. Without a function every value is good, even a refused
// connection. The function is called on the threads on which the tasks end, possibly on several at
// once.
//
// The tasks must observe the token of `losers`, whose stop is requested when the race ends.
// when_any continues when all tasks have ended, on the thread on which the last of them ended. An
// exception from a task also ends the race, and when_any rethrows it when all tasks have ended.
// Later exceptions are logged. If a task ends the race at once, the tasks after it are not started.
//
// To cancel the whole race, request the stop of `losers`.
//
// httpretry.hpp does not include this header.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/flow/task_group.hpp>

#include <atomic>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

namespace httpretry {

// The index of the task that ended first, and its value.
template <class T>
struct FirstOf {
  FirstOf(std::size_t which, T made) : index(which), value(std::move(made)) {}

  std::size_t index;  // in the list of tasks
  T value;
};

namespace detail {

// Returns whether a value ends the race.
template <class T>
using Good = std::function<bool(const ValueOrNothing<T>&)>;

// The tasks of one when_any.
class Race {
 public:
  explicit Race(std::stop_source losers) : group_(std::move(losers)) {}

  // Starts the task, unless the race has ended. `good` must outlive the race; if it is nullptr,
  // every value ends the race.
  template <class T>
  void enter(Task<T> task, std::size_t index, std::optional<ValueOrNothing<T>>& value,
             const Good<T>* good = nullptr) {
    if (winner_.load() == kNone && !group_.threw()) {
      group_.begin(run(*this, std::move(task), index, value, good));
    }
  }
  [[nodiscard]] Task<> join() { return group_.join(); }
  // Returns the winner. Only valid after `join`.
  [[nodiscard]] std::size_t winner() const {
    const auto winner = winner_.load();
    return winner == kNone ? last_.load() : winner;
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  template <class T>
  static Task<> run(Race& race, Task<T> task, std::size_t index,
                    std::optional<ValueOrNothing<T>>& value, const Good<T>* good) {
    const auto kept = keep(std::move(task), value);
    co_await kept;
    race.last_ = index;
    if (good != nullptr && !(*good)(*value)) co_return;
    auto none = kNone;
    if (race.winner_.compare_exchange_strong(none, index)) race.group_.cancel();
  }

  std::atomic<std::size_t> winner_ = kNone;
  std::atomic<std::size_t> last_ = kNone;  // the task that ended last
  JoinedGroup group_;
};

template <class T>
Task<FirstOf<ValueOrNothing<T>>> first_of(std::stop_source losers, std::vector<Task<T>> tasks,
                                          Good<T> good) {
  if (tasks.empty()) {
    throw std::invalid_argument("when_any needs at least one task");
  }
  std::vector<std::optional<ValueOrNothing<T>>> values(tasks.size());
  Race race(std::move(losers));
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    race.enter(std::move(tasks[i]), i, values[i], good ? &good : nullptr);
  }
  const auto all = race.join();
  co_await all;
  const auto winner = race.winner();
  co_return FirstOf<ValueOrNothing<T>>(winner, *std::move(values[winner]));
}

// Returns the winner's value, as the alternative with that index.
template <class Variant, class Values, std::size_t... index>
Variant pick(std::size_t winner, Values& values, std::index_sequence<index...> /*all*/) {
  std::optional<Variant> picked;
  const auto take = [&](auto at, auto& value) {
    if (at == winner) picked.emplace(std::in_place_index<at>, *std::move(value));
  };
  (take(std::integral_constant<std::size_t, index>(), std::get<index>(values)), ...);
  return *std::move(picked);
}

}  // namespace detail

// Returns the first good value, and the index of its task.
template <class T>
requires(!std::is_void_v<T>) Task<FirstOf<T>> when_any(
    std::stop_source losers, std::vector<Task<T>> tasks,
    std::function<bool(const std::type_identity_t<T>&)> good = nullptr) {
  return detail::first_of<T>(std::move(losers), std::move(tasks), std::move(good));
}

// Returns the index of the task that ended first.
inline Task<std::size_t> when_any(std::stop_source losers, std::vector<Task<>> tasks) {
  const auto race = detail::first_of<void>(std::move(losers), std::move(tasks), nullptr);
  const auto first = co_await race;
  co_return first.index;
}

// The same for a fixed number of tasks of different types. The index of the variant identifies the
// first task. The value of a Task<> is a std::monostate.
//
//   auto race = when_any(losers, client.co_send(request, options), sleep_for(loop, 2s, stop));
//   const auto first = co_await race;
//   if (first.index() == 0) use(std::get<0>(first));
template <class... T>
requires(sizeof...(T) >
         0) Task<std::variant<detail::ValueOrNothing<T>...>> when_any(std::stop_source losers,
                                                                      Task<T>... tasks) {
  using All = std::index_sequence_for<T...>;
  std::tuple<std::optional<detail::ValueOrNothing<T>>...> values;
  detail::Race race(std::move(losers));
  std::size_t index = 0;
  std::apply([&](auto&... value) { (race.enter(std::move(tasks), index++, value), ...); }, values);
  const auto all = race.join();
  co_await all;
  co_return detail::pick<std::variant<detail::ValueOrNothing<T>...>>(race.winner(), values, All());
}

}  // namespace httpretry
