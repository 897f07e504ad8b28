#include "line_jobs.hpp"

#include "bodies.hpp"
#include "lib/core/base/encoding.hpp"
#include "lib/core/base/text.hpp"
#include "lib/core/client/detail/report.hpp"
#include "text.hpp"

#include <algorithm>

namespace httpretry::batch {
namespace {

// The wait of a job that guards held back without a time for the next attempt.
constexpr Duration kUnknownWait = std::chrono::seconds(30);
// The longest wait of a job that a circuit breaker held back while a probe was in flight. The probe
// usually ends long before its time limit.
constexpr Duration kProbeWait = std::chrono::seconds(1);
// The wait of a job after its budget is exhausted, which means that its host fails, not the job.
constexpr Duration kBudgetWait = std::chrono::seconds(10);

// Few lines of the results have more bytes. glibc has free blocks of this size at hand. Before it
// looks for a larger block, it joins all small free blocks, which takes longer than writing the
// line.
constexpr std::size_t kUsualResult = 1000;

constexpr int kManyAttempts = 1000;  // the limit if the policy has none

Body body_of(const RequestLine& line) {
  if (line.content == RequestLine::Content::File) return Body::file(line.body);
  return Body(line.body);
}

// Returns whether sending the request a second time may do harm.
bool is_unsafe(const Request& request, const RetryPolicy& policy) {
  if (policy.repeat == Repeat::Always) return false;
  return policy.repeat != Repeat::Safe || !request.repeatable();
}

// Returns whether a circuit breaker held the call back because a probe was in flight.
bool is_behind_probe(const Outcome& outcome) {
  if (outcome || outcome.error().code != Errc::CircuitOpen) return false;
  const auto& guards = history_of(outcome).guards;
  return guards && guards->circuit && guards->circuit->state == Circuit::HalfOpen;
}

bool is_canceled(const Outcome& outcome) {
  return history_of(outcome).stop_reason == Reason::Canceled ||
         (!outcome && outcome.error().code == Errc::Canceled);
}

bool maybe_executed(const Outcome& outcome) {
  const auto& attempts = history_of(outcome).attempts;
  return exchange_of(outcome).sent == Sent::Maybe ||
         std::ranges::any_of(attempts,
                             [](const Attempt& attempt) { return attempt.sent == Sent::Maybe; });
}

int attempts_so_far(const Job& job, const Outcome& outcome) {
  return job.attempts + static_cast<int>(history_of(outcome).attempts.size());
}

// Returns the verdict on a job whose call ended with a shortage on this machine. An attempt that
// met a shortage was not sent, so it does not count. If other attempts were sent, the job waits for
// no time at all, because only a wait stores their number.
Verdict judge_shortage(const Job& job, const Outcome& outcome) {
  const auto sent_attempts = std::ranges::count_if(
      history_of(outcome).attempts,
      [](const Attempt& attempt) { return attempt.error != Errc::LocalShortage; });
  Verdict verdict;
  verdict.what = sent_attempts == 0 ? Verdict::What::GiveBack : Verdict::What::Wait;
  verdict.attempts = job.attempts + static_cast<int>(sent_attempts);
  verdict.why = describe(outcome);
  return verdict;
}

// Writes "headers": an array of pairs, because a name may occur more than once.
void write_headers(JsonWriter& json, const Headers& headers) {
  json.key("headers").begin_array();
  for (const auto& [name, value] : headers) {
    json.begin_array();
    json.value(name);
    json.value(value);
    json.end_array();
  }
  json.end_array();
}

void write_body(JsonWriter& json, std::string_view body) {
  if (is_utf8(body)) return json.member("body", body);
  json.member("body_base64", encode_base64(body));
}

}  // namespace

// A parsed line. `prepare` stores it in the context of the request, for `judge`.
struct LineJobs::Line {
  RequestLine parsed;
  std::string problem;  // the reason why it cannot be sent; empty: it can
  int max_attempts = 0;
  // One of them is set; it receives the response body.
  std::shared_ptr<MemoryBody> response_memory;
  std::shared_ptr<FileBody> response_file;
};

LineJobs::LineJobs(BatchOptions options, LineJobsStore store)
    : options_(std::move(options)),
      store_(std::move(store)),
      own_files_(std::make_shared<const OwnFiles>(own_files(options_))),
      policies_(options_.policies) {}

LineJobs::Line LineJobs::line_of(const Job& job) const {
  Line line;
  Problems problems("the journal");
  if (!read_request_line(job.text, options_.format, line.parsed, problems)) {
    line.problem = problems.take().front().message;
  }
  return line;
}

// Returns the request of a job with the options of its call. If the job must not be sent, returns
// its end instead: Dead if its line is invalid or its deadline has passed, Unknown if its
// idempotency key is too old.
std::variant<Prepared, JobEnd> LineJobs::prepare(const Job& job) {
  auto line = line_of(job);
  const auto end_as_invalid = [&](const std::string& why) {
    return end_unsent(job, line, State::Dead, "invalid_request", why);
  };
  if (!line.problem.empty()) return end_as_invalid(line.problem);
  const auto policy = policies_.find(line.parsed);
  if (!policy) {
    // Only a queue sets this callback. It throws, which ends this worker and gives the job back,
    // because another worker may have the policy.
    if (store_.on_missing_policy) store_.on_missing_policy(job, policy.error().message);
    return end_as_invalid(policy.error().message);
  }
  Request request(line.parsed.method, line.parsed.url);
  const auto date = store_.date_now();
  if (auto end = end_if_too_late(job, line, request, **policy, date)) return *std::move(end);
  // With `body_file`, the store decides which files a job may send. It returns their full paths.
  if (store_.body_file && line.parsed.content == RequestLine::Content::File) {
    auto file = store_.body_file(job, line.parsed.body);
    if (!file) return end_as_invalid(file.error().message);
    line.parsed.body = *std::move(file);
  }
  return prepared_call(job, std::move(line), std::move(request), *policy, date);
}

// Returns the call of a job that has passed the checks of prepare(): fills in its request, which
// so far has only its method and URL, and sets the options of the call. `date` is the current date
// by the clock of the store.
Prepared LineJobs::prepared_call(const Job& job, Line line, Request request,
                                 const std::shared_ptr<const RetryPolicy>& policy,
                                 WallTime date) const {
  fill_request(request, job, line, *policy);
  Prepared prepared(std::move(request));
  prepared.unsafe = is_unsafe(prepared.request, *policy);
  // The client itself finds the policy of the endpoint, but not one that the line names or changes.
  if (LinePolicies::has_own(line.parsed)) prepared.options.policy = policy;
  if (line.parsed.deadline) {
    // The deadline of a line is a date, and that of a call is a time on the steady clock.
    prepared.options.deadline =
        later(std::chrono::steady_clock::now(), *line.parsed.deadline - date);
  }
  line.max_attempts = policy->max_attempts.value_or(kManyAttempts);
  set_sink(job, line, prepared.request);
  // judge() reads the line from the request's context after the call.
  prepared.request.edit_options().context.set(std::move(line));
  return prepared;
}

JobEnd LineJobs::give_up(const Job& job, std::string_view reason, std::string about) const {
  return end_unsent(job, line_of(job), State::Dead, reason, std::move(about));
}

// Returns the end of a job that is not sent in this run. The report in its line of the results has
// an error instead of attempts.
JobEnd LineJobs::end_unsent(const Job& job, const Line& line, State state, std::string_view reason,
                            std::string about) const {
  Error error(Errc::InvalidRequest, about);
  error.history.stop_reason = Reason::NotRetryable;
  auto end = end_with(job, line, Request(line.parsed.method, line.parsed.url), error, state);
  end.reason = reason;
  end.about = std::move(about);
  return end;
}

// Returns the end of a job that may not be sent any more: Dead if its deadline has passed, Unknown
// if its idempotency key is so old that the server may have forgotten it. Returns nullopt if the
// job may be sent. `date` is the current date by the clock of the store.
std::optional<JobEnd> LineJobs::end_if_too_late(const Job& job, const Line& line,
                                                const Request& request, const RetryPolicy& policy,
                                                WallTime date) const {
  if (line.parsed.deadline && *line.parsed.deadline <= date) {
    return end_unsent(job, line, State::Dead, "deadline",
                      "its deadline, " + rfc3339(*line.parsed.deadline) + ", has passed");
  }
  // True if only the key makes it safe to send the request a second time.
  const bool needs_key =
      !job.key.empty() && policy.repeat != Repeat::Always && !request.repeatable();
  const bool key_is_old =
      job.maybe_sent_since && date - *job.maybe_sent_since > options_.key_lifetime;
  if (!needs_key || !key_is_old) return std::nullopt;
  return end_unsent(job, line, State::Unknown, "key_too_old",
                    "it may have been sent since " + rfc3339(*job.maybe_sent_since) +
                        ", and a server is trusted to remember its key for " +
                        duration_text(options_.key_lifetime));
}

// Adds everything but the method and the URL to the request of a job: the headers of its line, the
// default headers of the run that the line does not set, the body, and the idempotency key.
void LineJobs::fill_request(Request& request, const Job& job, const Line& line,
                            const RetryPolicy& policy) const {
  const auto& parsed = line.parsed;
  for (const auto& [name, value] : parsed.headers) request.add_header(name, value);
  for (const auto& [name, value] : options_.default_headers) {
    if (!request.headers().contains(name)) request.set_header(name, value);
  }
  if (parsed.content != RequestLine::Content::None) request.set_body(body_of(parsed));
  const bool is_json = parsed.content == RequestLine::Content::Json;
  if (is_json && !request.headers().contains("Content-Type")) {
    request.set_header("Content-Type", "application/json");
  }
  if (!job.key.empty()) {
    // Empty if the policy requested a key when the line was imported, but no longer does.
    auto header = key_header(parsed, policy);
    if (header.empty()) header = "Idempotency-Key";
    request.set_header(header, job.key);
    // The server recognizes a repeated request by the key.
    request.edit_options().repeatable = true;
  }
  auto& request_options = request.edit_options();
  request_options.compressed = options_.compressed;
  request_options.cost = parsed.cost;
  request_options.upload_rate = options_.bytes_per_second;
  const bool has_credentials =
      request.headers().contains("Authorization") || parsed.parsed_url->has_userinfo();
  if (!has_credentials) request_options.credentials = options_.credentials;
}

// Decides whether the response body goes to a file or stays in memory, for the line of the results.
void LineJobs::set_sink(const Job& job, Line& line, Request& request) const {
  const auto& output = line.parsed.output;
  if (options_.bodies == Bodies::Files || !output.empty()) {
    const auto file_name = output.empty() ? file_name_of(job.id) : output;
    line.response_file = std::make_shared<FileBody>(options_.directory, file_name, own_files_);
    request.edit_options().sink = with_rate_limit(line.response_file, options_.bytes_per_second);
  } else {
    const auto most_bytes = options_.bodies == Bodies::None ? 0 : kMostInline;
    line.response_memory = std::make_shared<MemoryBody>(most_bytes);
    request.edit_options().sink = with_rate_limit(line.response_memory, options_.bytes_per_second);
  }
}

// Returns how long a job whose call has ended must wait before another call for it, or nullopt if
// the outcome of this call is final. Another call follows if the server asked for a longer wait
// than the policy allows, if the client held the request back, or if the retry budget was
// exhausted. It does not follow if the deadline of the job would pass in the meantime.
std::optional<Duration> LineJobs::wait_before_next_call(const Job& job, const Line& line,
                                                        const Outcome& outcome) const {
  const auto& history = history_of(outcome);
  // The time until the server, or the limit that held the request back, allows the next attempt.
  std::optional<Duration> time_to_retry;
  if (history.retry_at) {
    // `retry_at` is by the local clock. The clock of the store may be that of another machine.
    const auto left = *history.retry_at - std::chrono::system_clock::now();
    time_to_retry = std::max<Duration>(left, Duration::zero());
  }
  std::optional<Duration> wait;
  if (time_to_retry && history.stop_reason == Reason::ServerDelayTooLong) {
    wait = time_to_retry;
  } else if (!outcome && outcome.error().held_back()) {
    wait = time_to_retry.value_or(kUnknownWait);
    if (is_behind_probe(outcome)) wait = std::min(*wait, kProbeWait);
  }
  // An exhausted budget shows that the host fails, not the job, which may have attempts left.
  if (history.stop_reason == Reason::BudgetExhausted &&
      attempts_so_far(job, outcome) < line.max_attempts) {
    wait = kBudgetWait;
  }
  const auto& deadline = line.parsed.deadline;
  if (wait && deadline && *deadline - store_.date_now() <= *wait) return std::nullopt;
  return wait;
}

// Decides what the outcome of a call means for its job: the job has ended, must wait for another
// call, or goes back to the store, which offers it again, in this run or a later one. Throws
// StoreError if the response body could not be written to its file, because then no other job could
// write its body either.
Verdict LineJobs::judge(const Job& job, const Prepared& sent, Outcome outcome) {
  Verdict verdict;  // by default, that the job has ended as `verdict.end` says
  // prepare() stored the line in the request's context.
  const auto& line = *sent.request.options().context.get<Line>();
  if (line.response_file) line.response_file->throw_if_failed();
  // An unsafe request may be sent again only if the server certainly did not execute it.
  const bool may_repeat = !sent.unsafe || !maybe_executed(outcome);
  // The end of the run cancels calls in flight, so this outcome says nothing about the job.
  if (is_canceled(outcome)) {
    if (may_repeat) {
      verdict.what = Verdict::What::GiveBack;
      return verdict;
    }
    // The server may have executed it. Only the user can decide whether to send it again.
    verdict.end = end_with(job, line, sent.request, outcome, State::Unknown);
    return verdict;
  }
  // This machine lacked a resource, such as a descriptor, which is no failure of the job.
  const bool is_shortage = !outcome && outcome.error().code == Errc::LocalShortage;
  if (is_shortage && may_repeat) return judge_shortage(job, outcome);
  if (const auto wait = wait_before_next_call(job, line, outcome); wait && may_repeat) {
    verdict.what = Verdict::What::Wait;
    verdict.wait = *wait;
    verdict.attempts = attempts_so_far(job, outcome);
    verdict.why = describe(outcome);
    return verdict;
  }
  // The outcome is final. That includes a failure after which the job would wait if the request
  // could be repeated: unlike a canceled call, this call has a result to report.
  verdict.end =
      end_with(job, line, sent.request, outcome, succeeded(outcome) ? State::Done : State::Dead);
  return verdict;
}

// Returns the end of a job in the given state. It has the job's line for the results and, if the
// job is Dead, its dead letter, which is its line of the input with the result in it. An Unknown
// job gets neither line, because a later run may still send it.
JobEnd LineJobs::end_with(const Job& job, const Line& line, const Request& request,
                          const Outcome& outcome, State state) const {
  JobEnd end;
  end.state = state;
  end.status = outcome ? outcome->status : 0;
  end.attempts = attempts_so_far(job, outcome);
  end.reason = to_string(history_of(outcome).stop_reason);
  if (state != State::Done) {
    end.about = describe(outcome);
    if (!outcome) end.about += ": " + outcome.error().message;
  }
  if (state == State::Unknown) return end;

  // The line is the JSON object of a report, with members before and after those of the report.
  end.result.reserve(kUsualResult);
  JsonWriter json(end.result);
  json.begin_object();
  json.member("id", job.id);
  json.member("line", store_.line_of(job));
  json.member("run", store_.token);
  json.member("state", to_string(state));
  httpretry::detail::write_report(json, request, outcome);
  if (!line.parsed.tag.empty()) json.key("tag").raw(line.parsed.tag);
  if (options_.headers && outcome) write_headers(json, outcome->headers);
  if (outcome) add_body(json, line, *outcome, end);
  json.end_object();
  if (state == State::Dead) {
    end.dead_letter = line_with(job.text, line.parsed, job.id, job.key, end.result) + "\n";
  }
  end.result += '\n';
  return end;
}

// Adds a member for the response body: "body_file", or "body_omitted" if it is too long for a line,
// or the body itself. Adds none if the options leave out bodies.
void LineJobs::add_body(JsonWriter& json, const Line& line, const Response& response,
                        JobEnd& end) const {
  // A sink receives only the body of a successful response. Any other body is in `response.body`.
  const bool in_sink = response.delivered > 0 || response.body.empty();
  if (line.response_file && in_sink && end.state == State::Done) {
    end.body_file = line.response_file->path();
    return json.member("body_file", end.body_file);
  }
  if (options_.bodies == Bodies::None) return;
  const bool in_memory = line.response_memory && response.delivered > 0;
  const std::string_view body = in_memory ? line.response_memory->content().bytes : response.body;
  const bool too_long =
      in_memory ? line.response_memory->content().too_long : body.size() > kMostInline;
  if (too_long) return json.member("body_omitted", true);
  write_body(json, body);
}

}  // namespace httpretry::batch
