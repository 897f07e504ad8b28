#include "line_jobs.hpp"

#include "bodies.hpp"
#include "lib/core/base/text.hpp"
#include "lib/core/client/detail/report.hpp"
#include "text.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace httpretry::batch {
namespace {

// The wait of a job that guards held back without a time for the next attempt.
constexpr Duration kUnknownWait = std::chrono::seconds(30);
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

// Returns the verdict on a job that ended with a shortage on this machine. An attempt that met a
// shortage was not sent, so it does not count.
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

StoreError write_error(const std::string& why) {
  const auto full = std::generic_category().message(ENOSPC);
  return StoreError(why +
                    (why.ends_with(full) ? "; make room and start the same command again" : ""));
}

bool is_object(const JsonTree& tree) {
  return tree.root != nullptr && tree.root->is(JsonNode::Type::Object);
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
  std::shared_ptr<MemoryBody> in_memory;
  std::shared_ptr<FileBody> in_file;
};

LineJobs::LineJobs(BatchOptions options, LineJobsStore store)
    : options_(std::move(options)), store_(std::move(store)), policies_(options_.policies) {}

LineJobs::Line LineJobs::line_of(const Job& job) const {
  Line line;
  Problems problems("the journal");
  if (!read_request_line(job.text, options_.format, line.parsed, problems)) {
    line.problem = problems.take().front().message;
  }
  return line;
}

// Returns the request of a job with its options. Returns the end of the job instead if it must not
// be sent: its line is invalid, its deadline has passed, or its idempotency key is too old.
std::variant<Prepared, JobEnd> LineJobs::prepare(const Job& job) {
  auto line = line_of(job);
  Request request(line.parsed.method, line.parsed.url);
  const auto unsent = [&](State state, std::string_view reason, std::string about) {
    return end_unsent(job, line, state, reason, std::move(about));
  };
  if (!line.problem.empty()) return unsent(State::Dead, "invalid_request", line.problem);
  const auto policy = policies_.find(line.parsed);
  if (!policy) {
    if (store_.on_missing_policy) store_.on_missing_policy(job, policy.error().message);
    return unsent(State::Dead, "invalid_request", policy.error().message);
  }

  const auto date = store_.date_now();
  if (line.parsed.deadline && *line.parsed.deadline <= date) {
    return unsent(State::Dead, "deadline",
                  "its deadline, " + rfc3339(*line.parsed.deadline) + ", has passed");
  }
  // Only the key makes the request safe to repeat, and the server may have forgotten an old one.
  const bool needs_key =
      !job.key.empty() && (*policy)->repeat != Repeat::Always && !request.repeatable();
  const bool key_old = job.maybe_sent_since && date - *job.maybe_sent_since > options_.key_lifetime;
  if (needs_key && key_old) {
    return unsent(State::Unknown, "key_too_old",
                  "it may have been sent since " + rfc3339(*job.maybe_sent_since) +
                      ", and a server is trusted to remember its key for " +
                      duration_text(options_.key_lifetime));
  }
  if (store_.body_file && line.parsed.content == RequestLine::Content::File) {
    auto file = store_.body_file(job, line.parsed.body);
    if (!file) return unsent(State::Dead, "invalid_request", file.error().message);
    line.parsed.body = *std::move(file);
  }
  fill_request(request, job, line, **policy);
  Prepared prepared(std::move(request));
  prepared.unsafe = is_unsafe(prepared.request, **policy);
  if (LinePolicies::has_own(line.parsed)) prepared.options.policy = *policy;
  if (line.parsed.deadline) {
    prepared.options.deadline =
        later(std::chrono::steady_clock::now(), *line.parsed.deadline - date);
  }
  line.max_attempts = (*policy)->max_attempts.value_or(kManyAttempts);
  set_sink(job, line, prepared.request);
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

// Adds everything but the method and the URL to the request.
void LineJobs::fill_request(Request& request, const Job& job, const Line& line,
                            const RetryPolicy& policy) const {
  const auto& parsed = line.parsed;
  for (const auto& [name, value] : parsed.headers) request.add_header(name, value);
  for (const auto& [name, value] : options_.default_headers) {
    if (!request.headers().contains(name)) request.set_header(name, value);
  }
  if (parsed.content != RequestLine::Content::None) request.set_body(body_of(parsed));
  const bool json = parsed.content == RequestLine::Content::Json;
  if (json && !request.headers().contains("Content-Type")) {
    request.set_header("Content-Type", "application/json");
  }
  if (!job.key.empty()) {
    auto header = key_header(parsed, policy);
    // A policy that requested a key when the line was read may have changed since.
    if (header.empty()) header = "Idempotency-Key";
    request.set_header(header, job.key);
    request.edit_options().repeatable = true;
  }
  request.edit_options().compressed = options_.compressed;
}

// Decides whether the response body goes to a file or stays in memory, for the line of the results.
void LineJobs::set_sink(const Job& job, Line& line, Request& request) const {
  const bool files = options_.bodies == Bodies::Files;
  if (files || !line.parsed.output.empty()) {
    line.in_file = std::make_shared<FileBody>(
        options_.directory, line.parsed.output.empty() ? file_name_of(job.id) : line.parsed.output);
    request.edit_options().sink = line.in_file;
  } else {
    const auto most_bytes = options_.bodies == Bodies::None ? 0 : kMostInline;
    line.in_memory = std::make_shared<MemoryBody>(most_bytes);
    request.edit_options().sink = line.in_memory;
  }
}

// Returns how long the job has to wait for its next call. Returns nullopt if it need not wait, or
// if its deadline would pass in that time.
std::optional<Duration> LineJobs::wait_for(const Job& job, const Line& line,
                                           const Outcome& outcome) const {
  const auto& history = history_of(outcome);
  std::optional<Duration> wait;
  const auto local = std::chrono::system_clock::now();  // `retry_at` is by this clock
  if (history.retry_at && history.stop_reason == Reason::ServerDelayTooLong) {
    wait = std::max(*history.retry_at - local, Duration::zero());
  } else if (!outcome && outcome.error().held_back()) {
    wait = history.retry_at ? std::max(*history.retry_at - local, Duration::zero()) : kUnknownWait;
  }
  if (history.stop_reason == Reason::BudgetExhausted &&
      attempts_so_far(job, outcome) < line.max_attempts) {
    wait = kBudgetWait;
  }
  const auto& deadline = line.parsed.deadline;
  if (wait && deadline && *deadline - store_.date_now() <= *wait) return std::nullopt;
  return wait;
}

// Returns whether the job has ended, must wait for another call, or goes back to the store unsent.
// Throws StoreError if its response body could not be written, because no job could continue then.
Verdict LineJobs::judge(const Job& job, const Prepared& sent, Outcome outcome) {
  Verdict verdict;
  const auto& line = *sent.request.options().context.get<Line>();
  if (line.in_file && !line.in_file->failure().empty()) throw write_error(line.in_file->failure());
  const bool may_repeat = !sent.unsafe || !maybe_executed(outcome);
  if (is_canceled(outcome)) {
    if (may_repeat) {
      verdict.what = Verdict::What::GiveBack;
      return verdict;
    }
    verdict.end = end_with(job, line, sent.request, outcome, State::Unknown);
    return verdict;
  }
  const bool is_shortage = !outcome && outcome.error().code == Errc::LocalShortage;
  if (is_shortage && may_repeat) return judge_shortage(job, outcome);
  if (const auto wait = wait_for(job, line, outcome); wait && may_repeat) {
    verdict.what = Verdict::What::Wait;
    verdict.wait = *wait;
    verdict.attempts = attempts_so_far(job, outcome);
    verdict.why = describe(outcome);
    return verdict;
  }
  verdict.end =
      end_with(job, line, sent.request, outcome, succeeded(outcome) ? State::Done : State::Dead);
  return verdict;
}

// Returns the end of a job in the given state, with its line of the results and, if it is Dead, its
// dead letter. An Unknown job gets neither, because that may yet be resolved.
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

  end.result.reserve(kUsualResult);
  JsonWriter json(end.result);
  json.begin_object();
  json.member("id", job.id);
  json.member("line", store_.line_of(job));
  json.member("run", store_.token);
  json.member("state", to_string(state));
  write_report(json, request, outcome);
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
  const bool in_sink = response.delivered > 0 || response.body.empty();
  if (line.in_file && in_sink && end.state == State::Done) {
    end.body_file = line.in_file->path();
    return json.member("body_file", end.body_file);
  }
  if (options_.bodies == Bodies::None) return;
  const bool delivered = line.in_memory && response.delivered > 0;
  const std::string_view body = delivered ? line.in_memory->content().bytes : response.body;
  const bool too_long = delivered ? line.in_memory->content().too_long : body.size() > kMostInline;
  if (too_long) return json.member("body_omitted", true);
  write_body(json, body);
}

// Parses a line of the results. Returns nullopt if it lacks what LineJobs::end_with writes: "run",
// "line" and a final "state".
std::optional<ResultLine> read_result_line(std::string_view line) {
  JsonTree tree;
  Problems problems("");
  read_json(line, tree, problems);
  if (problems.failed() || !is_object(tree)) return std::nullopt;
  using Type = JsonNode::Type;
  // Both return an empty text or 0 if there is no such member.
  const auto text_of = [&](std::string_view name, Type type) {
    const auto* const member = tree.root->member(name);
    return member != nullptr && member->is(type) ? member->text : std::string_view();
  };
  const auto number_of = [&](std::string_view name) {
    return to_number<std::uint64_t>(text_of(name, Type::Number)).value_or(0);
  };
  ResultLine result;
  result.token = text_of("run", Type::String);
  result.id = text_of("id", Type::String);
  result.number = number_of("line");
  const auto state = text_of("state", Type::String);
  const bool is_final = state == "done" || state == "dead";
  if (result.token.empty() || result.number == 0 || !is_final) return std::nullopt;
  result.end.state = state == "done" ? State::Done : State::Dead;
  result.end.status = static_cast<int>(number_of("status"));
  result.end.reason = text_of("stop_reason", Type::String);
  if (const auto* attempts = tree.root->member("attempts")) {
    result.end.attempts = static_cast<int>(attempts->children.size());
  }
  result.end.result = std::string(line) + "\n";
  return result;
}

// line_with() writes the result as the last member of the object, named "last".
std::string result_in_dead_letter(std::string_view line) {
  JsonTree tree;
  Problems problems("");
  read_json(line, tree, problems);
  if (!is_object(tree)) return {};
  const auto& members = tree.root->children;
  if (members.empty() || members.back()->key != "last") return {};
  const auto begin = static_cast<std::size_t>(members.back()->position.column - 1);
  return std::string(line.substr(begin, line.rfind('}') - begin));
}

}  // namespace httpretry::batch
