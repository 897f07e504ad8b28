// WholeRun: what the URLs of one command line have in common: their numbers, the report, the
// summary.
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

// In the Context of a request: for what its attempts print and keep.
struct UrlOfRun {
  std::string label;                     // "[2] http://host/path?…: "; empty for the only URL
  std::shared_ptr<std::string> headers;  // of all responses, for -D; null: not wanted
};

// Used by one thread.
class WholeRun {
 public:
  // `options`: the last group; `urls`: of all groups.
  WholeRun(const SendOptions& options, std::size_t urls)
      : options_(options), urls_(urls), reports_(options.report.empty() ? 0 : urls) {}

  // What begins each line about the URL with this number (from 1): the URL without its query and
  // secrets. Empty if there is only one URL.
  [[nodiscard]] std::string label(std::size_t number, const Request& request) const;

  void ended(std::size_t number, const Request& request, const Outcome& outcome, int status);
  // The request was not sent, because a signal or --fail-early ended the run before.
  void never_started(std::size_t number, const Request& request);
  // For the file of -D, which is written at the end.
  void add_headers(const std::string& file, const std::string& text) { headers_[file] += text; }

  // Whether the failure of a URL is explained. A host that does not work fails all of its URLs in
  // the same way: after the first three, they are counted.
  bool explains(const Request& request, const Outcome& outcome);

  // With -Z: how many succeeded.
  void print_totals(Duration time) const;
  // What was counted, and what an interrupted run did not do.
  void print_rest(int signal) const;
  void write_report(const WaitLimit& limit) const;
  void write_headers(const WaitLimit& limit) const;

  // This machine lacks what one request needs, so the others were not sent.
  void ended_by_shortage();
  // The cookies, or the like, could not be written.
  void write_failed() { write_failed_ = true; }

  // Of the last URL that failed; with --fail-early, of the first.
  [[nodiscard]] int exit_status() const;
  // Whether --fail-early ends the run.
  [[nodiscard]] bool over() const;

 private:
  struct Failures {
    std::size_t count = 0;
    std::string what;
  };

  const SendOptions& options_;
  std::size_t urls_;
  std::size_t succeeded_ = 0;
  std::size_t failed_ = 0;
  std::size_t never_started_ = 0;
  std::size_t attempts_ = 0;
  std::uint64_t bytes_ = 0;
  int exit_status_ = 0;
  bool write_failed_ = false;
  bool shortage_ = false;
  std::vector<std::string> reports_;            // of each URL
  std::map<std::string, std::string> headers_;  // of each file of -D
  std::map<std::string, Failures> failures_;    // by host and cause
};

}  // namespace httpretry::cli
