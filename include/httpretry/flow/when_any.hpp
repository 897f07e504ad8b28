// when_any: the first of several tasks. The others are canceled, and awaited.
//
//   std::stop_source losers;
//   CallOptions options;
//   options.stop = losers.get_token();
//   std::vector<Task<Outcome>> calls;
//   for (const auto& url : mirrors) calls.push_back(client.co_send(Request::get(url), options));
//   auto first = co_await when_any(losers, std::move(calls), succeeded);
//
// `first.index` says which it is, and `first.value` is what it gave: the first outcome that is a
// success, for `succeeded` is what makes a value good. Where none is good it is the last. Without a
// function every value is good: a refused connection, too. The function may be called on several
// threads at once, where the tasks end.
//
// The tasks must watch the token of `losers`: when the first of them has ended, its stop is
// requested. when_any continues when all have ended, on the thread that the last of them ended on.
// If one throws, that ends the race, too: when all have ended, when_any rethrows the exception.
// What others throw after it is logged. Tasks after one that ends at once are not started.
//
// To cancel the whole race, request the stop of `losers`.
//
// httpretry.hpp does not include this header.
#pragma once

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

// Which of the tasks ended first, and its value.
template <class T>
struct FirstOf {
  FirstOf(std::size_t which, T made) : index(which), value(std::move(made)) {}

  std::size_t index;
  T value;
};

namespace detail {

// Whether a value ends the race.
template <class T>
using Good = std::function<bool(const ValueOrNothing<T>&)>;

// The tasks of one when_any.
class Race {
 public:
  explicit Race(std::stop_source losers) : group_(std::move(losers)) {}

  // Begins the task, unless the race has ended.
  // `good` must outlive the race; nullptr: every value ends it.
  template <class T>
  void enter(Task<T> task, std::size_t index, std::optional<ValueOrNothing<T>>& value,
             const Good<T>* good = nullptr) {
    if (winner_.load() == kNone && !group_.threw()) {
      group_.begin(run(*this, std::move(task), index, value, good));
    }
  }
  [[nodiscard]] Task<> join() { return group_.join(); }
  // After `join`.
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
  std::atomic<std::size_t> last_ = kNone;  // that has ended
  JoinedGroup group_;
};

template <class T>
Task<FirstOf<ValueOrNothing<T>>> first_of(std::stop_source losers, std::vector<Task<T>> tasks,
                                          Good<T> good) {
  if (tasks.empty()) {
    throw std::invalid_argument("when_any needs at least one task: of none, none ends first");
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

// The value of the winner, as the alternative of that index.
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

template <class T>
requires(!std::is_void_v<T>) Task<FirstOf<T>> when_any(
    std::stop_source losers, std::vector<Task<T>> tasks,
    std::function<bool(const std::type_identity_t<T>&)> good = nullptr) {
  return detail::first_of<T>(std::move(losers), std::move(tasks), std::move(good));
}

// The index of the task that ended first.
inline Task<std::size_t> when_any(std::stop_source losers, std::vector<Task<>> tasks) {
  const auto race = detail::first_of<void>(std::move(losers), std::move(tasks), nullptr);
  const auto first = co_await race;
  co_return first.index;
}

// The same for a few tasks of different types. The index of the variant says which was first; what
// a Task<> gives is a std::monostate.
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
