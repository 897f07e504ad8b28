// LineJobs turns lines of the input into requests, judges the outcomes, and writes the lines of the
// results. It does not depend on where the jobs are stored.
#pragma once

#include "lib/core/json/detail/json.hpp"
#include "line_policies.hpp"
#include "own_files.hpp"

#include <functional>
#include <optional>
#include <string>

namespace httpretry::batch {

// The settings of LineJobs that depend on where the jobs are stored: in a journal or in a queue.
struct LineJobsStore {
  // Identifies the store. It is written to each line of the results.
  std::string token;
  // The clock for deadlines and the age of keys: the server's if several machines share the jobs.
  std::function<WallTime()> date_now = [] { return std::chrono::system_clock::now(); };
  // Called with the reason if the policy of a job does not exist, or if a setting of the job is
  // invalid. If it does not throw, the job is dead.
  std::function<void(const Job& job, const std::string& why)> on_missing_policy = {};
  // Returns the file for the path that a job names as its body, or throws. An error makes the job
  // dead. Empty: a job may name any file.
  std::function<Result<std::string>(const Job& job, const std::string& path)> body_file = {};
  // Returns the number of the job's line in the input.
  std::function<std::uint64_t(const Job& job)> line_of = [](const Job& job) { return job.number; };
};

// The largest body in the results, in bytes.
inline constexpr std::size_t kMostInline = 64 * 1024;

namespace detail {

class HTTPRETRY_API LineJobs final : public Jobs {
 public:
  // Uses only the options that concern requests, responses and results.
  LineJobs(BatchOptions options, LineJobsStore store);

  [[nodiscard]] std::variant<Prepared, JobEnd> prepare(const Job& job) override;
  // Returns the end of a job that the store does not want to be sent.
  [[nodiscard]] JobEnd give_up(const Job& job, std::string_view reason, std::string about) const;
  // Throws StoreError if a body could not be written to its file.
  [[nodiscard]] Verdict judge(const Job& job, const Prepared& sent, Outcome outcome) override;

 private:
  struct Line;
  [[nodiscard]] Line line_of(const Job& job) const;
  [[nodiscard]] Prepared prepared_call(const Job& job, Line line, Request request,
                                       const std::shared_ptr<const RetryPolicy>& policy,
                                       WallTime date) const;
  void fill_request(Request& request, const Job& job, const Line& line,
                    const RetryPolicy& policy) const;
  [[nodiscard]] std::optional<JobEnd> end_if_too_late(const Job& job, const Line& line,
                                                      const Request& request,
                                                      const RetryPolicy& policy,
                                                      WallTime date) const;
  void set_sink(const Job& job, Line& line, Request& request) const;
  [[nodiscard]] std::optional<Duration> wait_before_next_call(const Job& job, const Line& line,
                                                              const Outcome& outcome) const;
  [[nodiscard]] JobEnd end_unsent(const Job& job, const Line& line, State state,
                                  std::string_view reason, std::string about) const;
  [[nodiscard]] JobEnd end_with(const Job& job, const Line& line, const Request& request,
                                const Outcome& outcome, State state) const;
  void add_body(JsonWriter& json, const Line& line, const Response& response, JobEnd& end) const;

  const BatchOptions options_;
  const LineJobsStore store_;
  const std::shared_ptr<const OwnFiles> own_files_;
  LinePolicies policies_;
};

// The end of a job, as read back from a line of the results.
struct ResultLine {
  std::string token;
  std::string id;
  std::uint64_t input_line = 0;  // its number, from 1
  JobEnd end;                    // its `result` is the line
};
// Returns nullopt if LineJobs has not written the line.
HTTPRETRY_API std::optional<ResultLine> read_result_line(std::string_view line);
// Returns the line of the results that a dead letter contains, or an empty string if the line is
// not a dead letter.
HTTPRETRY_API std::string result_in_dead_letter(std::string_view line);

}  // namespace detail
using detail::LineJobs;
using detail::read_result_line;
using detail::result_in_dead_letter;
using detail::ResultLine;

}  // namespace httpretry::batch
