// Store: where the jobs of a run are, and what is known of each. The Runner takes jobs from it,
// tells it before a send that must not be repeated, and tells it how each job ended.
//
// A store may keep all of this in memory, in a file (Journal, journal.hpp), or on another machine.
//
//   queued -> sending -> done | dead | waiting (until) | unknown
#pragma once

#include <httpretry/http/time.hpp>
#include <httpretry/retry/guard_policy.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry::batch {

// What is known of a job.
enum class State : std::uint8_t {
  Queued,   // it has not been sent, or sending it again does no harm
  Sending,  // it must not be sent twice, and may be on its way
  Done,     // the final response is a success, as the policy judges it
  Dead,     // it failed, and is not tried again
  Waiting,  // until a time: the server asked for it, or `not_before` does
  Unknown,  // it may have been executed, nobody knows, and sending it again may do harm
};
// "queued", "sending", …
[[nodiscard]] HTTPRETRY_API std::string_view to_string(State state);

// A job that may be sent now.
struct HTTPRETRY_API Job {
  Job() = default;

  std::uint64_t number = 0;  // the line of the input, from 1
  std::string id;
  std::string text;  // the request, as the input has it
  std::string host;  // jobs with the same one share a queue: "https://api.example.com"
  std::string key;   // the value of its idempotency key; empty: none
  Priority priority = Priority::Normal;
  int attempts = 0;  // in earlier calls
  // The earliest time at which it may have been sent before. Empty: it was not.
  std::optional<WallTime> maybe_sent_since;
};

// How a job ended.
struct HTTPRETRY_API JobEnd {
  JobEnd() = default;

  State state = State::Done;  // Done, Dead or Unknown
  int status = 0;             // of the final response; 0: there was none
  int attempts = 0;           // of all calls
  std::string reason;         // a word: "success", "attempts_exhausted", …
  std::string about;          // a sentence
  // A line of the results with its line end; empty for Unknown, which may yet be resolved.
  std::string result;
  // The line of the input with its line end, to be sent again by another run. Only for Dead.
  std::string dead_letter;
  // The file that has the body of the response; empty: none.
  std::string body_file;
};

// A host that asked for a wait.
struct HTTPRETRY_API HeldHost {
  HeldHost() = default;
  std::string host;
  Duration time{};  // how much longer
};

// How many jobs there are in each state.
struct HTTPRETRY_API Counts {
  Counts() = default;
  std::uint64_t queued = 0;
  std::uint64_t sending = 0;
  std::uint64_t done = 0;
  std::uint64_t dead = 0;
  std::uint64_t waiting = 0;
  std::uint64_t unknown = 0;

  [[nodiscard]] std::uint64_t& of(State state);
  [[nodiscard]] std::uint64_t total() const {
    return queued + sending + done + dead + waiting + unknown;
  }
  friend bool operator==(const Counts&, const Counts&) = default;
};

// What a store could not do, and why: the disk is full, the file is damaged.
struct HTTPRETRY_API StoreError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Used by one thread. `take`, `intend`, `commit` and `next_due` throw StoreError; the others only
// note what the next `commit` makes durable.
class HTTPRETRY_API Store {
 public:
  using WantsHost = std::function<bool(std::string_view host)>;

  virtual ~Store();

  // Appends to `jobs` up to `most` that may be sent now, of hosts for which `wants` is true, those
  // of high priority first. A job is given once, until it is given back.
  virtual void take(std::size_t most, const WantsHost& wants, std::vector<Job>& jobs) = 0;
  // Before jobs that must not be sent twice may reach the wire. Durable when it returns. Returns
  // those that must not be sent: they are as after `give_back`.
  virtual std::vector<const Job*> intend(std::span<const Job* const> jobs) = 0;
  // The job has to wait that long. It is kept elsewhere than in memory, and taken again then.
  // `attempts`: so far, of all calls.
  virtual void wait(const Job& job, Duration time, int attempts, std::string_view why) = 0;
  virtual void finish(const Job& job, JobEnd end) = 0;
  // The run ends: nothing more will be taken.
  virtual void stop_taking() {}
  // The job was taken, and nothing of it was sent: it is as before.
  virtual void give_back(const Job& job) = 0;
  // No job of that host is to be sent for that time; also in the next run.
  virtual void hold(std::string_view host, Duration time) = 0;
  // What a run before this one knew.
  [[nodiscard]] virtual std::vector<HeldHost> holds() = 0;
  // Makes durable what was said since the last time: nothing of it is lost, nothing is there twice.
  virtual void commit() = 0;
  [[nodiscard]] virtual Counts counts() const = 0;
  // How long it is until a job that waits may be sent. Empty: none waits.
  [[nodiscard]] virtual std::optional<Duration> next_due() = 0;
};

}  // namespace httpretry::batch
