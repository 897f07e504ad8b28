// LineJobs: what the lines of the input mean: the request of each, what its outcome says, and the
// line that the results get. It knows nothing of where the jobs are kept.
#pragma once

#include "lib/core/json/detail/json.hpp"
#include "line_policies.hpp"

#include <functional>
#include <optional>
#include <string>

namespace httpretry::batch {

// The settings of LineJobs that depend on where the jobs are stored: in a journal or in a queue.
struct LineJobsStore {
  // Stands in each line of the results, so that they are recognized again.
  std::string token;
  // The clock for deadlines and the age of keys: of the server, if several machines share the jobs.
  std::function<WallTime()> date_now = [] { return std::chrono::system_clock::now(); };
  // Called for a job whose policy does not exist, with the reason; it may throw. Otherwise the job
  // is dead.
  std::function<void(const Job& job, const std::string& why)> on_missing_policy = {};
  // Returns the file for the path that a job names as its body, or throws. An error makes the job
  // dead. Empty: a job may name any file.
  std::function<Result<std::string>(const Job& job, const std::string& path)> body_file = {};
  // Returns the line of the input that the job stands in.
  std::function<std::uint64_t(const Job& job)> line_of = [](const Job& job) { return job.number; };
};

inline constexpr std::size_t kMostInline = 64 * 1024;

class HTTPRETRY_API LineJobs final : public Jobs {
 public:
  // Uses only the options that concern requests, responses and results.
  LineJobs(BatchOptions options, LineJobsStore store);

  [[nodiscard]] std::variant<Prepared, JobEnd> prepare(const Job& job) override;
  // How a job ends that must not be sent, for a reason of the store.
  [[nodiscard]] JobEnd give_up(const Job& job, std::string_view reason, std::string about) const;
  // Throws StoreError if a body could not be written to its file.
  [[nodiscard]] Verdict judge(const Job& job, const Prepared& sent, Outcome outcome) override;

 private:
  struct Line;
  [[nodiscard]] Line line_of(const Job& job) const;
  void complete(Request& request, const Job& job, const Line& line,
                const RetryPolicy& policy) const;
  void set_sink(const Job& job, Line& line, Request& request) const;
  [[nodiscard]] std::optional<Duration> wait_for(const Job& job, const Line& line,
                                                 const Outcome& outcome) const;
  [[nodiscard]] JobEnd unsent(const Job& job, const Line& line, State state,
                              std::string_view reason, std::string about) const;
  [[nodiscard]] JobEnd ended(const Job& job, const Line& line, const Request& request,
                             const Outcome& outcome, State state) const;
  void add_body(JsonWriter& json, const Line& line, const Response& response, JobEnd& end) const;

  const BatchOptions options_;
  const LineJobsStore store_;
  LinePolicies policies_;
};

// What a line of the results says of its job, to take it over again.
struct ResultLine {
  std::string token;
  std::string id;
  std::uint64_t number = 0;
  JobEnd end;  // with the line as its `result`
};
// Empty: it is no line of ours.
HTTPRETRY_API std::optional<ResultLine> read_result_line(std::string_view line);
// The results line that a dead letter contains; empty where it is none.
HTTPRETRY_API std::string result_in_dead_letter(std::string_view line);

}  // namespace httpretry::batch
