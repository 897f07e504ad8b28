#pragma once

#include <httpretry/export.hpp>

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

// The state of a job.
enum class State : std::uint8_t {
  Queued,   // it was not sent, or sending it again does no harm
  Sending,  // it must not be sent twice, and may be in flight
  Done,     // the final response is a success by the rules of its policy
  Dead,     // it failed for good
  Waiting,  // it must not be sent before a time that a server or `not_before` set
  Unknown,  // it may or may not have been executed, and sending it again may do harm
};
// Returns "queued", "sending", …
[[nodiscard]] HTTPRETRY_API std::string_view to_string(State state);

// A job that may be sent now.
struct HTTPRETRY_API Job {
  Job() = default;

  std::uint64_t number = 0;  // identifies it in a run; in a journal, its line of the input, from 1
  std::string id;            // from the input, or made from the line number
  std::string text;          // the request, as the input has it
  std::string host;          // "https://api.example.com"; the jobs of one host share a queue
  std::string key;           // the value of its idempotency key; empty: none
  Priority priority = Priority::Normal;
  int attempts = 0;  // in earlier calls
  // The earliest time at which an earlier call may have sent it. Empty: it was not sent.
  std::optional<WallTime> maybe_sent_since;
};

// The final state of a job, with its result.
struct HTTPRETRY_API JobEnd {
  JobEnd() = default;

  State state = State::Done;  // Done, Dead or Unknown
  int status = 0;             // of the final response; 0: no response
  int attempts = 0;           // in all calls
  std::string reason;         // a word: "success", "attempts_exhausted", …
  std::string about;          // the reason as a sentence
  // A line of the results with its line end. Empty for Unknown, because that may yet be resolved.
  std::string result;
  // Only for Dead: the line of the input with its line end, for another run.
  std::string dead_letter;
  // The file that has the response body; empty: none.
  std::string body_file;
};

// A host that asked for a pause.
struct HTTPRETRY_API HeldHost {
  HeldHost() = default;
  std::string host;
  Duration time{};  // the remaining time
};

// The number of jobs in each state.
struct HTTPRETRY_API Counts {
  Counts() = default;
  std::uint64_t queued = 0;
  std::uint64_t sending = 0;
  std::uint64_t done = 0;
  std::uint64_t dead = 0;
  std::uint64_t waiting = 0;
  std::uint64_t unknown = 0;

  // Returns the number of jobs in a state, for reading and for changes.
  [[nodiscard]] std::uint64_t& of(State state);
  // Returns the number of all jobs.
  [[nodiscard]] std::uint64_t total() const {
    return queued + sending + done + dead + waiting + unknown;
  }
  friend bool operator==(const Counts&, const Counts&) = default;
};

// Thrown if a store fails, for example because the disk is full or the file is damaged.
struct HTTPRETRY_API StoreError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Store holds the jobs of a run and the state of each. The Runner takes jobs from it, notifies it
// before a send that must not be repeated, and reports how each job ended. One thread uses a Store.
// `take`, `intend`, `commit` and `next_due` may throw StoreError. The other functions only note
// changes, which the next `commit` makes durable.
//
// A store may be in memory, in a file (Journal, journal.hpp), or on another machine.
//
//   queued -> sending -> done | dead | waiting (until) | unknown
class HTTPRETRY_API Store {
 public:
  // Returns whether jobs of a host may be taken now.
  using WantsHost = std::function<bool(std::string_view host)>;

  virtual ~Store();

  // Appends up to `most` jobs that may be sent now, high priority first. Takes only jobs of hosts
  // for which `wants` returns true. A job that was taken is not taken again until it is given back
  // or has waited.
  virtual void take(std::size_t most, const WantsHost& wants, std::vector<Job>& jobs) = 0;
  // Records jobs that must not be sent twice, before they may reach the wire. The record is durable
  // when the function returns. Returns the jobs that must not be sent, because the store has taken
  // them back.
  virtual std::vector<const Job*> intend(std::span<const Job* const> jobs) = 0;
  // Takes a job back that must wait for `time`. A long wait must not use memory. `attempts` counts
  // the attempts of all calls so far.
  virtual void wait(const Job& job, Duration time, int attempts, std::string_view why) = 0;
  // Records how a job ended.
  virtual void finish(const Job& job, JobEnd end) = 0;
  // Notifies the store that the run is ending and takes nothing more.
  virtual void stop_taking() {}
  // Takes a job back that was not sent. Its state is as it was before `take`.
  virtual void give_back(const Job& job) = 0;
  // Holds back the jobs of a host for `time`, even in the next run.
  virtual void hold(std::string_view host, Duration time) = 0;
  // Returns the holds that an earlier run has left.
  [[nodiscard]] virtual std::vector<HeldHost> holds() = 0;
  // Makes all changes since the last commit durable. Each change takes effect exactly once.
  virtual void commit() = 0;
  // Returns how many jobs are in each state.
  [[nodiscard]] virtual Counts counts() const = 0;
  // Returns the time until the next waiting job may be sent. Empty: no job waits.
  [[nodiscard]] virtual std::optional<Duration> next_due() = 0;
};

}  // namespace httpretry::batch
