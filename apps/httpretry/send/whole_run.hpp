// WholeRun collects the results of all URLs of a command line. It numbers them, and writes the
// report and the summary.
#pragma once

#include "cli/wait_limit.hpp"
#include "send/options.hpp"

#include <httpretry/http/response.hpp>
#include <httpretry/policy/policy_set.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace httpretry::cli {

struct LastSend;

// Data in the Context of a request, which the middlewares for -v, -D and -w use.
struct UrlOfRun {
  std::string label;                     // "[2] http://host/path?…: "; empty for the only URL
  std::shared_ptr<std::string> headers;  // of all responses, for -D; null: not wanted
  std::shared_ptr<LastSend> last_send;   // for -w; null: not wanted
};

// Used by one thread.
class WholeRun {
 public:
  // `options` are those of the last group; `urls` is the number of URLs of all groups.
  WholeRun(const SendOptions& options, std::size_t urls)
      : options_(options), urls_(urls), reports_(options.report.empty() ? 0 : urls) {}

  // Returns the start of each line about the URL with this number (from 1): the number, and the URL
  // without its query and secrets. Empty if there is only one URL.
  [[nodiscard]] std::string label(std::size_t number, const Request& request) const;

  // Adds the outcome and the exit status of a URL.
  void add(std::size_t number, const Request& request, const Outcome& outcome, int status);
  // Records that a request was not sent, because the run ended before its turn.
  void record_not_sent(std::size_t number, const Request& request);
  // Adds headers to the file of -D, which is written at the end.
  void add_headers(const std::string& file, const std::string& text) { headers_[file] += text; }

  // Counts the failure of a URL and returns whether to explain it. All URLs of a host that is down
  // fail in the same way, so only the first three are explained.
  bool count_failure(const Request& request, const Outcome& outcome);

  // Begins new totals, for a group of URLs with -Z.
  void begin_totals() { totals_ = {}; }
  // Prints the totals of a group of URLs with -Z.
  void print_totals(Duration time) const;
  // Prints the number of failures that were not explained, and of URLs that were not sent.
  void print_rest(int signal) const;
  void write_report(const WaitLimit& limit) const;
  void write_headers(const WaitLimit& limit) const;

  // Records that the rest was not sent, because this machine lacks the resources for even one
  // request.
  void record_shortage();
  // Records that cookies or another file at the end could not be written.
  void record_write_failure() { write_failed_ = true; }

  // Returns the status of the last URL that failed, or of the first with --fail-early.
  [[nodiscard]] int exit_status() const;
  // Returns whether --fail-early ends the run.
  [[nodiscard]] bool must_end() const;

 private:
  struct Failures {
    std::size_t count = 0;
    std::string description;  // "https://host: 503"
  };

  struct Totals {
    std::size_t succeeded = 0;
    std::size_t failed = 0;
    std::size_t attempts = 0;
    std::uint64_t bytes = 0;
  };

  const SendOptions& options_;
  std::size_t urls_;
  Totals totals_;
  bool any_failed_ = false;
  std::size_t never_started_ = 0;
  int exit_status_ = 0;
  bool write_failed_ = false;
  bool shortage_ = false;
  std::vector<std::string> reports_;            // of each URL
  std::map<std::string, std::string> headers_;  // of each file of -D
  std::map<std::string, Failures> failures_;    // by host and cause
};

}  // namespace httpretry::cli
