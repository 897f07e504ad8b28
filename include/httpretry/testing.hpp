// The kit that the library's own tests are written with, for yours: a network that says what you
// tell it, and a clock that stands still until you move it. Nothing sleeps and nothing is random.
//
//   auto clock = std::make_shared<ManualScheduler>();
//   auto network = std::make_shared<ScriptedTransport>();
//   network->say(Response(503)).say(Response(200, "ok"));
//
//   ClientOptions options;
//   options.middlewares = {my_middleware(), retry()};
//   options.scheduler = clock;
//   options.transport = network;
//   options.random = fixed_random(0.5);
//   Client client(options);
//
//   CHECK(client.get("http://x/")->body == "ok");        // the wait took no time
//   CHECK(network->requests().size() == 2);
//
// A blocking `send` moves the clock itself. For coroutines and the other doors somebody must move
// it, or they wait for ever: `clock->run(task)` gives what the task gives; `clock->advance(1s)`, or
// `run_until`, is for what began with send_async or send_then.
//
// Link httpretry::testing. A server that misbehaves on real sockets is in fault_server.hpp.
#pragma once

#include <httpretry/event.hpp>
#include <httpretry/scheduler.hpp>
#include <httpretry/task.hpp>
#include <httpretry/transport.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace httpretry {

// A Scheduler in virtual time, on the thread that moves it. Thousands of calls may wait on it.
// Destroying it ends what is left on it as canceled.
class HTTPRETRY_API ManualScheduler final : public Scheduler {
 public:
  // The calendar stands at `wall` when the clock stands at its beginning.
  explicit ManualScheduler(WallTime wall = WallTime(std::chrono::seconds(1'700'000'000)));
  ~ManualScheduler() override;
  ManualScheduler(const ManualScheduler&) = delete;
  ManualScheduler& operator=(const ManualScheduler&) = delete;

  [[nodiscard]] Time now() const override;
  [[nodiscard]] WallTime wall_now() const override;
  void post(std::coroutine_handle<> handle) override;
  Task<bool> sleep_until(Time when, std::stop_token stop) override;

  // Moves the clock to whatever is due next, again and again, until `done`. This is what a blocking
  // `send` does. Throws std::logic_error where nothing is left that could ever happen.
  void run_until(const std::atomic<bool>& done) override;

  // The same for a task: gives what it gives.
  template <class T>
  T run(Task<T> task) {
    const auto running = std::make_shared<detail::Running<T>>();
    detail::run_into(running, std::move(task));
    run_until(running->done());
    return running->take();
  }

  // Runs what can run now. The clock stands.
  void run();
  // Moves the clock by that much; everything that falls due on the way runs at its own time.
  void advance(Duration by);
  // How many sleeps are under way, and when the first ends (kNever where there is none).
  [[nodiscard]] std::size_t sleeping() const;
  [[nodiscard]] Time next() const;

 private:
  class Queue;
  std::unique_ptr<Queue> queue_;
};

// A Transport that answers from a script and remembers what it was sent. What no transport could
// send (a bad URL) is refused as by the real one.
class HTTPRETRY_API ScriptedTransport final : public Transport {
 public:
  ScriptedTransport();
  ~ScriptedTransport() override;

  // Appends an answer, given `after` that much virtual time. The last one repeats for ever. An
  // outcome whose `exchange` says nothing is taken as sent once: answered where it is a Response,
  // and for an Error by its code (nothing was sent where there was no connection).
  ScriptedTransport& say(Outcome outcome, Duration after = {});
  // An answer made when the request comes; `number` counts from 1.
  using Answer = std::function<Outcome(const Request& request, int number)>;
  ScriptedTransport& say(Answer answer, Duration after = {});

  // What was sent, in order, and when.
  struct Seen {
    Request request;
    Time when;
  };
  [[nodiscard]] const std::vector<Seen>& requests() const { return seen_; }

  Task<Outcome> send(Request request, Call& call) override;

 private:
  struct Step {
    Answer answer;
    Duration after;
  };
  std::vector<Step> steps_;
  std::vector<Seen> seen_;
};

// Writes down what an Observer hears. Safe with calls on several threads.
class HTTPRETRY_API RecordingObserver final : public Observer {
 public:
  RecordingObserver();
  ~RecordingObserver() override;

  // A line each: "call GET http://x/", "attempt 1", "attempt 1: 503 transient, again after 100ms",
  // "redirect to http://y/", "policies accepted", "end 200 success".
  [[nodiscard]] std::vector<std::string> lines() const;
  // The attempts of all calls, as they ended.
  [[nodiscard]] std::vector<Attempt> attempts() const;

  void call_started(const Call& call, const Request& request) noexcept override;
  void attempt_started(const Call& call, const Request& request, int number) noexcept override;
  void attempt_ended(const Call& call, const Request& request,
                     const Attempt& attempt) noexcept override;
  void redirected(const Call& call, const Request& next) noexcept override;
  void policies_reloaded(const Call& call, const PolicyReload& reload) noexcept override;
  void call_ended(const Call& call, const Outcome& outcome) noexcept override;

 private:
  struct Record;
  std::unique_ptr<Record> record_;
};

// For ClientOptions::random: always the same number, or a sequence that the seed gives.
[[nodiscard]] HTTPRETRY_API std::function<double()> fixed_random(double value);
[[nodiscard]] HTTPRETRY_API std::function<double()> seeded_random(std::uint64_t seed);

}  // namespace httpretry
