// Batch: sends the requests of a list, each as far as HTTP allows once, through crashes, outages
// and limits of rates, and says of each what became of it. What `httpretry batch` does.
//
//   BatchOptions options;
//   options.input = "orders.jsonl";
//   options.on_problem = [](const Problem& problem) { std::puts(to_string(problem).c_str()); };
//   if (const auto batch = Batch::open(std::move(options))) batch->run();
//
// Each line of the input is a request, as JSON or as a URL. A journal beside it has the state of
// each. To start again is to resume. lib/extras/batch/README.md says what is promised.
#pragma once

#include <httpretry/batch/runner.hpp>
#include <httpretry/client/client_options.hpp>
#include <httpretry/json/problem.hpp>
#include <httpretry/policy/policy_set.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace httpretry::batch {

enum class InputFormat : std::uint8_t {
  Auto,  // a line that begins with "{" is JSON, any other a URL
  Jsonl,
  Urls,
};

// Where the bodies of responses go.
enum class Bodies : std::uint8_t {
  Inline,  // into the results, if they have at most 64 KiB
  Files,   // into files of BatchOptions::directory, named by the id
  None,    // nowhere. A line with `output` goes into its file whatever stands here
};

enum class Durability : std::uint8_t {
  Power,    // what was committed survives the end of the power
  Process,  // it survives the end of the process; faster, with few syncs
};

struct HTTPRETRY_API BatchOptions {
  BatchOptions() = default;

  std::string input;  // "-": standard input, which is copied into the journal
  InputFormat format = InputFormat::Auto;
  std::string journal;  // needed for standard input. Empty: INPUT.httpretry.db
  std::string results;  // JSON lines. Empty: none are written
  std::string dead;     // what failed, as an input for another run. Empty: none is written
  Bodies bodies = Bodies::Inline;
  std::string directory;
  // Other files that the program writes, each with a word for what it is: "metrics". None of them
  // may be one of the files above.
  std::vector<std::pair<std::string, std::string>> other_files;
  bool headers = false;     // of the responses, in the results
  bool compressed = false;  // ask for gzip
  Headers default_headers;  // for requests that do not have them
  // Begins anew: what is there of an earlier run is kept under its names and ".old".
  bool fresh = false;
  // Sends what is unknown again.
  bool retry_unknown = false;
  Durability durability = Durability::Power;
  // How long a server is trusted to remember an idempotency key.
  Duration key_lifetime = std::chrono::hours(24);

  PolicySet policies;
  ClientOptions client;  // its `policies` are replaced
  RunnerOptions runner;

  // Told of everything that is wrong with the input.
  std::function<void(const Problem&)> on_problem;
  // Told how many lines were read, now and then.
  std::function<void(std::uint64_t lines)> on_import;
};

// How many jobs of a host ended how.
struct HTTPRETRY_API SummaryRow {
  SummaryRow() = default;
  std::string host;
  State state = State::Done;
  int status = 0;
  std::string reason;
  std::uint64_t count = 0;
};

// Errors are thrown as StoreError.
class HTTPRETRY_API Batch {
 public:
  // Reads the input, or compares it with what was read before. nullptr if there were problems; then
  // nothing has changed.
  static std::unique_ptr<Batch> open(BatchOptions options);
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  RunEnd run();
  [[nodiscard]] Runner& runner();  // to end it from another thread
  [[nodiscard]] Counts counts() const;
  // How long it is until a job that waits may be sent.
  [[nodiscard]] std::optional<Duration> next_due();
  [[nodiscard]] std::vector<SummaryRow> summary() const;

 private:
  struct Parts;
  explicit Batch(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

// What is in an input.
struct HTTPRETRY_API InputReport {
  InputReport() = default;
  bool good = false;
  std::uint64_t jobs = 0;
  std::vector<std::pair<std::string, std::uint64_t>> hosts;  // the one with the most jobs first
  std::vector<std::pair<std::string, std::uint64_t>> policies;
  std::uint64_t unsafe = 0;  // must not be sent twice, and have no key
  std::uint64_t later = 0;   // have a `not_before`
};
// Reads an input and sends nothing; keeps nothing either.
[[nodiscard]] HTTPRETRY_API InputReport check_input(const BatchOptions& options);

// What a journal tells; also while a run goes on.
struct HTTPRETRY_API JournalStatus {
  JournalStatus() = default;
  std::string input;
  std::string results;
  std::string dead;
  Counts counts;
  std::uint64_t runs = 0;
  std::optional<WallTime> last_run;     // when it began
  std::optional<std::int64_t> process;  // that runs it now
  std::optional<WallTime> next_due;
};
[[nodiscard]] HTTPRETRY_API JournalStatus read_status(const std::string& journal);

// What is known of a job.
struct HTTPRETRY_API JobStory {
  JobStory() = default;
  std::string id;
  std::uint64_t line = 0;
  std::string input;
  std::string key;
  State state = State::Queued;
  int status = 0;
  int attempts = 0;
  std::string reason;
  std::string about;
  std::optional<WallTime> until;
  std::optional<WallTime> started;
  std::string result;  // its line of the results
};
// Empty if there is no job with that id.
[[nodiscard]] HTTPRETRY_API std::optional<JobStory> read_job(const std::string& journal,
                                                             std::string_view id);

// Calls `print` with the input line of each job in that state, as an input for another run.
HTTPRETRY_API void export_jobs(const std::string& journal, State state,
                               const std::function<void(std::string_view line)>& print);

}  // namespace httpretry::batch
