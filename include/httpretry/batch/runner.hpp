#pragma once

#include <httpretry/export.hpp>

#include <httpretry/batch/down_hosts.hpp>
#include <httpretry/batch/store.hpp>
#include <httpretry/client/client.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace httpretry::batch {

// The request of a job, as the client sends it.
struct HTTPRETRY_API Prepared {
  explicit Prepared(Request its) : request(std::move(its)) {}

  Request request;
  CallOptions options;
  // Sending the request a second time may do harm, even after a crash.
  bool unsafe = false;
};

// The decision about a job after its call.
struct HTTPRETRY_API Verdict {
  Verdict() = default;
  // The next step for the job.
  enum class What : std::uint8_t {
    End,       // the job has ended as `end` says
    Wait,      // the job is taken again after `wait`
    GiveBack,  // the call came to nothing, and sending the job again does no harm
  };
  What what = What::End;
  JobEnd end;
  Duration wait{};   // only with Wait
  int attempts = 0;  // in all calls so far
  std::string why;   // the reason for a wait, as a sentence
};

// Turns jobs into requests, and judges the outcomes of their calls. A Runner calls it on the thread
// of `run`.
class HTTPRETRY_API Jobs {
 public:
  virtual ~Jobs();
  // Returns the request of a job, or how the job ends without being sent, for example because its
  // deadline has passed. An exception ends the run in the same way as one that the store throws,
  // and the job is given back.
  [[nodiscard]] virtual std::variant<Prepared, JobEnd> prepare(const Job& job) = 0;
  // Returns the decision about a job after its call. `sent` is the result of `prepare`.
  [[nodiscard]] virtual Verdict judge(const Job& job, const Prepared& sent, Outcome outcome) = 0;
};

// A snapshot of a run.
struct HTTPRETRY_API RunProgress {
  RunProgress() = default;
  // A host that guards() pauses now.
  struct Host {
    std::string name;
    Duration paused{};  // the remaining time
  };

  Counts counts;
  std::uint64_t ended = 0;         // jobs that ended in this run
  std::size_t in_flight = 0;       // calls
  std::size_t in_wait = 0;         // the number of these calls that are between two attempts
  double per_second = 0;           // jobs that ended, over the last ten seconds
  std::optional<Duration> median;  // the duration of the last calls
  // At this rate. Empty while it is unknown: no job has ended yet, jobs wait, or hosts are paused.
  std::optional<Duration> time_left;
  std::vector<Host> paused;  // the longest pause first
};

// The options of a Runner: how many jobs it sends at once and how fast, and when its run ends.
struct HTTPRETRY_API RunnerOptions {
  RunnerOptions() = default;

  // The maximum number of requests in flight.
  std::size_t parallel = 64;
  // How many more jobs are prepared. One of them is sent as soon as a call succeeds, before the
  // thread of `run` has judged that call. With a `rate`, no job is prepared ahead.
  std::size_t ahead = 0;
  // Limits the sends of the whole run, retries included. Empty: no limit. Must count requests, and
  // have no further rates; otherwise Runner throws std::invalid_argument.
  std::optional<RatePolicy> rate;
  // How long calls may continue after `finish_up`.
  Duration grace = std::chrono::seconds(10);
  // The run ends if only jobs are left that have to wait longer than this.
  Duration max_idle = std::chrono::minutes(1);
  // If this process lacks a resource for a call (Errc::LocalShortage), the job is given back, and
  // fewer calls are made at once. The run ends if not even one call was possible for this time.
  Duration max_shortage = std::chrono::minutes(1);
  // Called on the thread of `run` at the first shortage. `what` is the message of the error.
  std::function<void(const std::string& what)> on_shortage;
  // The run ends after this many jobs have died in it. 0: no limit.
  std::uint64_t max_failures = 0;
  // If set, only a few calls retry during an outage, and no others begin. down_hosts.hpp states the
  // rule.
  std::shared_ptr<DownHosts> down_hosts;
  // The run does not end when no job is left, because other programs may add some.
  bool until_stopped = false;
  // Called on the thread of `run`, every `progress_every`.
  std::function<void(const RunProgress&)> on_progress;
  Duration progress_every = std::chrono::seconds(10);
};

// Why a run ended.
enum class RunEnd : std::uint8_t {
  Finished,  // every job has ended or is unknown
  Idle,      // the remaining jobs have to wait longer than max_idle
  Failures,  // max_failures was reached
  Shortage,  // a shortage lasted for max_shortage
  Stopped,   // finish_up or stop was called
};

// Runner sends the jobs of a Store with one client, a limited number of them at once. Each host has
// a queue, and the queues take turns. While guards() pauses a host, only the jobs of that host are
// held back.
//
//   Runner runner(ClientOptions(), store, jobs, RunnerOptions());
//   const RunEnd end = runner.run();
//
// The store records a job that must not be sent twice before the job may reach the wire. If a
// server asks for a longer wait than the policy allows, the job waits in the store.
// `run` uses the thread that calls it. `store` and `jobs` must outlive the Runner.
class HTTPRETRY_API Runner {
 public:
  // `options` are those of the client that sends the jobs; its middlewares must contain retry().
  Runner(ClientOptions options, Store& store, Jobs& jobs, RunnerOptions its);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // Blocks until the run ends, and returns why it did. If the store throws, lets the calls in
  // flight end as `finish_up` does, and then throws the same exception.
  RunEnd run();

  // The following may be called from any thread.

  // Starts no more jobs. Calls in flight may end within the grace period.
  void finish_up();
  // Starts no more jobs, and stops the calls in flight.
  void stop();
  // Requests a call of `on_progress` as soon as possible.
  void ask_progress();
  // Notifies the Runner that the store has jobs again.
  void look_again();

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

}  // namespace httpretry::batch
