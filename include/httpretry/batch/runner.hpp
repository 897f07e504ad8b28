// Runner: sends the jobs of a Store with one client, so many at once, each host from a queue of its
// own, round robin. A host that guards() pauses is left alone for that time; the others go on.
//
//   Runner runner(ClientOptions(), store, jobs, RunnerOptions());
//   const RunEnd end = runner.run();
//
// A job is sent once it is safe to send: one that must not be sent twice is in the store before it
// may reach the wire. What the server asks for that is longer than the policy waits is a wait in
// the store, not in memory.
#pragma once

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

// A job as the client sends it.
struct HTTPRETRY_API Prepared {
  explicit Prepared(Request its) : request(std::move(its)) {}

  Request request;
  CallOptions options;
  // Sending it a second time may do harm, also after a crash.
  bool unsafe = false;
};

// What becomes of a job after its call.
struct HTTPRETRY_API Verdict {
  Verdict() = default;
  enum class What : std::uint8_t {
    End,       // as `end` says
    Wait,      // it is taken again after `wait`
    GiveBack,  // nothing came of the call, and sending it again does no harm
  };
  What what = What::End;
  JobEnd end;
  Duration wait{};
  int attempts = 0;  // so far, of all calls
  std::string why;
};

// What a job means: how it becomes a request, and what its outcome says of it. Used by the thread
// that runs the Runner.
class HTTPRETRY_API Jobs {
 public:
  virtual ~Jobs();
  // Or how the job ends without being sent: its deadline has passed, its key is too old. What it
  // throws ends the run as what the store throws does, and the job is given back.
  [[nodiscard]] virtual std::variant<Prepared, JobEnd> prepare(const Job& job) = 0;
  [[nodiscard]] virtual Verdict judge(const Job& job, const Prepared& sent, Outcome outcome) = 0;
};

// How far a run is.
struct HTTPRETRY_API RunProgress {
  RunProgress() = default;
  struct Host {
    std::string name;
    Duration paused{};  // how much longer
  };

  Counts counts;
  std::uint64_t ended = 0;            // in this run
  std::size_t in_flight = 0;          // calls
  std::size_t in_wait = 0;            // of them, between two attempts
  double per_second = 0;              // ended, lately
  std::optional<Duration> median;     // of the last calls
  std::optional<Duration> time_left;  // at this pace
  std::vector<Host> paused;           // the longest pause first
};

struct HTTPRETRY_API RunnerOptions {
  RunnerOptions() = default;

  // How many requests may be on their way at once.
  std::size_t parallel = 64;
  // How many jobs are prepared beyond these. One of them is sent as soon as a call ends well,
  // before the thread of `run` has judged that call. With a `rate` none is.
  std::size_t ahead = 0;
  // How many requests are sent in which time, retries included. Empty: no limit.
  std::optional<RatePolicy> rate;
  // How long calls may go on after `finish_up`.
  Duration grace = std::chrono::seconds(10);
  // Where only jobs are left that have to wait longer, the run ends.
  Duration max_idle = std::chrono::minutes(1);
  // If this process lacks something for a call (Errc::LocalShortage), its job is given back, and
  // fewer calls are made at once. The run ends if not even one could be made for this time.
  Duration max_shortage = std::chrono::minutes(1);
  // Called on the thread of `run` at the first shortage, with what is lacking.
  std::function<void(const std::string& what)> on_shortage;
  // The run ends when that many jobs died in it. 0: never.
  std::uint64_t max_failures = 0;
  // Not null: in an outage few calls retry, and no others begin. down_hosts.hpp has the rule.
  std::shared_ptr<DownHosts> down_hosts;
  // The run does not end where no job is left: others may add some.
  bool until_stopped = false;
  // Called on the thread of `run`, as often as that.
  std::function<void(const RunProgress&)> on_progress;
  Duration progress_every = std::chrono::seconds(10);
};

// Why a run ended.
enum class RunEnd : std::uint8_t {
  Finished,  // every job has ended, or is unknown
  Idle,      // what is left has to wait too long
  Failures,  // max_failures
  Shortage,  // max_shortage
  Stopped,   // finish_up, stop
};

class HTTPRETRY_API Runner {
 public:
  // `options` are those of the client that is made; its middlewares must contain retry().
  Runner(ClientOptions options, Store& store, Jobs& jobs, RunnerOptions its);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // Throws what the store throws, after the calls under way were stopped.
  RunEnd run();

  // From any thread. No more jobs are started; those under way may end, within the grace.
  void finish_up();
  // From any thread. Those under way are stopped, too.
  void stop();
  // From any thread: `on_progress` is called soon.
  void ask_progress();
  // From any thread: the store has jobs, where it had none before.
  void look_again();

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

}  // namespace httpretry::batch
