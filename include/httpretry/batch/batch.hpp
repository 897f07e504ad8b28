// Batch sends each request of a list once, as far as HTTP allows that. It works through crashes,
// outages and rate limits, and records the result of each request. `httpretry batch` runs it.
//
//   BatchOptions options;
//   options.input = "orders.jsonl";
//   options.on_problem = [](const Problem& problem) { std::puts(to_string(problem).c_str()); };
//   if (const auto batch = Batch::open(std::move(options))) batch->run();
//
// Each line of the input is a request, as JSON or as a URL. A journal beside the input holds the
// state of each request. Opening the same batch again resumes it. lib/extras/batch/README.md lists
// the guarantees.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/batch/runner.hpp>
#include <httpretry/client/client_options.hpp>
#include <httpretry/json/problem.hpp>
#include <httpretry/policy/policy_set.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace httpretry::batch {

// The format of the lines of an input.
enum class InputFormat : std::uint8_t {
  Auto,  // a line that begins with "{" is JSON, any other line is a URL
  Jsonl,
  Urls,
};

// The place for response bodies. A line with `output` always gets its file.
enum class Bodies : std::uint8_t {
  Inline,  // in the results, if a body has at most 64 KiB
  Files,   // in files of BatchOptions::directory, named after the ids
  None,    // nowhere
};

// The failures that committed data survives.
enum class Durability : std::uint8_t {
  Power,    // committed data survives a power failure
  Process,  // committed data survives the end of the process; faster, with fewer syncs
};

// The options of Batch::open: the input and its journal, how the jobs are sent, and what is
// reported.
struct HTTPRETRY_API BatchOptions {
  BatchOptions() = default;

  std::string input;  // a file; "-" is standard input, which is copied into the journal
  InputFormat format = InputFormat::Auto;  // of `input`
  std::string journal;                     // required for standard input. Empty: INPUT.httpretry.db
  std::string results;                     // a file for JSON lines. Empty: no results are written
  std::string dead;  // a file for failed jobs, as an input for another run. Empty: none
  Bodies bodies = Bodies::Inline;
  std::string directory;  // for Bodies::Files and `output`. Empty: the current directory
  // Other files that the program writes, each with a word for its purpose, such as "metrics". They
  // must differ from the files above.
  std::vector<std::pair<std::string, std::string>> other_files;
  bool headers = false;     // adds the response headers to the results
  bool compressed = false;  // requests gzip
  Headers default_headers;  // for requests that do not have them
  // For requests without an Authorization header and without a name in their URL.
  std::optional<Credentials> credentials;
  // Limits the speed of each request body and response body.
  std::optional<std::uint64_t> bytes_per_second;
  // Starts over. The files of an earlier run are renamed: ".old" is appended to their names.
  bool fresh = false;
  // Sends unknown jobs again.
  bool retry_unknown = false;
  Durability durability = Durability::Power;
  // How long servers are expected to remember an idempotency key.
  Duration key_lifetime = std::chrono::hours(24);

  PolicySet policies;    // for all jobs; a line may have its own policy
  ClientOptions client;  // `policies` above replaces its own
  RunnerOptions runner;  // how many calls run at once, and when a run ends

  // Called for each problem in the input.
  std::function<void(const Problem&)> on_problem;
  // Called from time to time during the import, with the number of lines read so far.
  std::function<void(std::uint64_t lines)> on_import;
};

// The number of jobs that have the same host, state, status and reason.
struct HTTPRETRY_API SummaryRow {
  SummaryRow() = default;
  std::string host;  // "https://api.example.com"
  State state = State::Done;
  int status = 0;      // of the final responses; 0: no response
  std::string reason;  // a word, as in JobEnd
  std::uint64_t count = 0;
};

// A batch whose journal is open and locked, so no other process can run it. Functions throw
// StoreError if a file or the journal fails.
class HTTPRETRY_API Batch {
 public:
  // Reads the input. If an earlier run has read it, compares the two and adds only new lines.
  // Returns nullptr after problems in the input; nothing has changed in that case. Throws
  // std::invalid_argument if the options contradict each other.
  static std::unique_ptr<Batch> open(BatchOptions options);
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  // Sends the jobs. Blocks until the run ends, and returns why it did.
  RunEnd run();
  // Returns the runner, with which another thread can end `run`.
  [[nodiscard]] Runner& runner();
  // Returns how many jobs are in each state now.
  [[nodiscard]] Counts counts() const;
  // Returns the time until the next waiting job may be sent. Empty: no job waits.
  [[nodiscard]] std::optional<Duration> next_due();
  // Returns the jobs of the whole journal, grouped by host, state, status and reason.
  [[nodiscard]] std::vector<SummaryRow> summary() const;

 private:
  struct Parts;
  explicit Batch(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

// The numbers of jobs in an input.
struct HTTPRETRY_API InputReport {
  InputReport() = default;
  bool good = false;  // the input has no problems; otherwise the other members are empty
  std::uint64_t jobs = 0;
  std::vector<std::pair<std::string, std::uint64_t>> hosts;     // by name, the largest number first
  std::vector<std::pair<std::string, std::uint64_t>> policies;  // likewise
  std::uint64_t unsafe = 0;  // must not be sent twice, and have no key
  std::uint64_t later = 0;   // have a `not_before`
};
// Reads an input. Sends nothing and leaves no file behind.
[[nodiscard]] HTTPRETRY_API InputReport check_input(const BatchOptions& options);

// The state of a journal.
struct HTTPRETRY_API JournalStatus {
  JournalStatus() = default;
  std::string input;  // the files, as in BatchOptions
  std::string results;
  std::string dead;
  Counts counts;
  std::uint64_t runs = 0;               // how many runs there were
  std::optional<WallTime> last_run;     // its beginning
  std::optional<std::int64_t> process;  // the process that runs it now
  std::optional<WallTime> next_due;     // the earliest time at which a waiting job is due
};
// Reads the state of a journal, even during a run.
[[nodiscard]] HTTPRETRY_API JournalStatus read_status(const std::string& journal);

// Everything that a journal records about a job.
struct HTTPRETRY_API JobStory {
  JobStory() = default;
  std::string id;
  std::uint64_t line = 0;  // of the input, counted from 1
  std::string input;       // the text of that line
  std::string key;         // the idempotency key; empty: none
  State state = State::Queued;
  int status = 0;                   // of the final response; 0: no response
  int attempts = 0;                 // in all calls
  std::string reason;               // a word, as in JobEnd
  std::string about;                // a sentence
  std::optional<WallTime> until;    // when a waiting job is due
  std::optional<WallTime> started;  // since when it may have been sent
  std::string result;               // its line in the results
};
// Returns nullopt if no job has that id.
[[nodiscard]] HTTPRETRY_API std::optional<JobStory> read_job(const std::string& journal,
                                                             std::string_view id);

// Calls `print` with the input line of each job in that state. The lines are an input for another
// run.
HTTPRETRY_API void export_jobs(const std::string& journal, State state,
                               const std::function<void(std::string_view line)>& print);

}  // namespace httpretry::batch
