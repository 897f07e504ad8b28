#include "exporter.hpp"

#include <httpretry/middleware/retry.hpp>
#include <httpretry/policy/policy_set.hpp>

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#include <algorithm>
#include <stdexcept>

namespace httpretry {

using namespace telemetry;

namespace {

RetryPolicy policy_of(const OtlpOptions& options) {
  auto policy = options.policy;
  if (!policy) {
    const auto set = parse_policies(R"({"version": 1, "default": {"preset": "otlp"}})", "otlp");
    policy = *set.value().find("POST", *Url::parse("http://localhost/")).policy;
    policy->max_elapsed_time = std::max(policy->max_elapsed_time, options.timeout);
  }
  policy->attempt_timeout =
      std::min({policy->attempt_timeout, options.timeout, policy->max_elapsed_time});
  return *std::move(policy);
}

OtlpOptions checked(OtlpOptions options) {
  if (options.batch == 0) throw std::invalid_argument("OtlpOptions::batch must be at least 1");
  constexpr std::size_t kLargestQueue = std::size_t{1} << 30U;
  if (options.queue > kLargestQueue) {
    throw std::invalid_argument("OtlpOptions::queue must be at most 2^30");
  }
  return options;
}

Client client_of(const OtlpOptions& options) {
  ClientOptions client;
  client.middlewares = {retry(policy_of(options))};
  client.connection = options.connection;
  return Client(std::move(client));
}

// Returns how many of the sent items a successful response reports as rejected; 0 if it reports
// none.
std::uint64_t rejected_items(const Response& response, Signal signal) {
  const auto* key = signal == Signal::Traces ? "/partialSuccess/rejectedSpans"
                                             : "/partialSuccess/rejectedDataPoints";
  const auto count = response.json_at(key);
  if (!count) return 0;
  // In OTLP's JSON, a 64-bit number is a string; some servers send a number.
  if (const auto* text = std::get_if<std::string>(&*count)) {
    return std::strtoull(text->c_str(), nullptr, /*base=*/10);
  }
  if (const auto* number = std::get_if<std::uint64_t>(&*count)) return *number;
  if (const auto* number = std::get_if<std::int64_t>(&*count)) {
    return *number > 0 ? static_cast<std::uint64_t>(*number) : 0;
  }
  return 0;
}

// Returns an empty snapshot if the metrics were destroyed. Owns them no longer than it must: they
// may own the exporter, and the exporter must not be destroyed on its own thread.
MetricsSnapshot snapshot_of(const std::weak_ptr<const Metrics>& weak) {
  const auto existing = weak.lock();
  return existing ? existing->snapshot() : MetricsSnapshot();
}

std::string message_of(const Response& response) {
  const auto text = response.json_text("/partialSuccess/errorMessage");
  return text.empty() ? text : ": " + text;
}

// Returns why the collector did not accept a request: "POST http://localhost:4318/v1/traces: the
// collector responded with 400", or the message of an error. If stop() canceled the request, this
// is the result of its last complete attempt, if there was one.
std::string cause_of(const Request& request, const Outcome& outcome) {
  const auto& url = request.parsed_url();
  const auto subject = "POST " + (url ? url->without_secrets() : std::string()) + ": ";
  if (outcome) return subject + "the collector responded with " + std::to_string(outcome->status);
  const auto& error = outcome.error();
  if (error.code != Errc::Canceled) return error.message;
  const auto& attempts = error.history.attempts;
  const auto last = std::find_if(attempts.rbegin(), attempts.rend(),
                                 [](const Attempt& each) { return each.error != Errc::Canceled; });
  if (last == attempts.rend()) return subject + "the collector has not responded yet";
  if (last->error) return last->error_message;
  return subject + "the collector responded with " + std::to_string(last->status);
}

// Starts a thread that blocks all signals, so that the program's own threads handle them. A thread
// inherits the mask of the thread that starts it; this function restores the caller's mask.
std::thread start_without_signals(std::function<void()> run) {
  sigset_t all_signals;
  sigset_t callers_mask;
  sigfillset(&all_signals);
  ::pthread_sigmask(SIG_SETMASK, &all_signals, &callers_mask);
  try {
    std::thread thread(std::move(run));
    ::pthread_sigmask(SIG_SETMASK, &callers_mask, nullptr);
    return thread;
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &callers_mask, nullptr);
    throw;
  }
}

}  // namespace

// Returns the URL to which spans or metrics are sent: the signal's own endpoint unchanged, or the
// common endpoint with "v1/traces" or "v1/metrics" appended. Throws if it is not a URL.
std::string telemetry::endpoint_url(const OtlpOptions& options, Signal signal) {
  const bool traces = signal == Signal::Traces;
  const auto& signal_endpoint = traces ? options.traces_endpoint : options.metrics_endpoint;
  const auto& endpoint = signal_endpoint.empty() ? options.endpoint : signal_endpoint;
  if (!Url::parse(endpoint)) {
    throw std::invalid_argument(
        "the OTLP endpoint is not a usable URL: expected something like "
        "http://localhost:4318");
  }
  if (!signal_endpoint.empty()) return signal_endpoint;
  auto base = endpoint.substr(0, endpoint.find_first_of("?#"));
  if (!base.ends_with('/')) base += '/';
  return base + (traces ? "v1/traces" : "v1/metrics");
}

Otlp::State::State(OtlpOptions with)
    : options(checked(std::move(with))),
      queue(options.queue),
      urls_{endpoint_url(options, Signal::Traces), endpoint_url(options, Signal::Metrics)},
      process_(::getpid()),
      client_(client_of(options)) {
  thread_ = start_without_signals([this] { run(); });
}

void Otlp::State::add(SpanPtr span) noexcept {
  if (closed.load(std::memory_order_relaxed)) return drop(Signal::Traces, Why::Shutdown, 1);
  const auto before = queue.put(span);
  if (before == SpanQueue::kFull) return drop(Signal::Traces, Why::QueueFull, 1);
  if ((before + 1) % options.batch == 0) wake_.signal();
}

void Otlp::State::drop(Signal signal, Why why, std::uint64_t count) noexcept {
  drops.at(static_cast<std::size_t>(signal))
      .at(static_cast<std::size_t>(why))
      .fetch_add(count, std::memory_order_relaxed);
}

std::uint64_t Otlp::State::dropped(Signal signal, Why why) const {
  return drops.at(static_cast<std::size_t>(signal))
      .at(static_cast<std::size_t>(why))
      .load(std::memory_order_relaxed);
}

bool Otlp::State::flush(Duration timeout) {
  std::unique_lock lock(mutex);
  const auto mine = ++flushes_wanted;
  wake_.signal();
  // Not the whole Duration: kForever would overflow in the clock of the condition variable.
  const auto most = std::min<Duration>(timeout, std::chrono::hours(24));
  return flushed.wait_for(lock, most, [&] { return flushes_done >= mine; });
}

// Ends the exporter: sends the spans and metrics that are waiting, which takes at most the time
// `options.shutdown`, and ends the exporter's thread. Reports how many spans and data points of
// metrics were dropped because no time was left.
void Otlp::State::stop() {
  closed.store(true, std::memory_order_relaxed);  // add() drops further spans
  // A forked child does not have the thread, but its std::thread must not be destroyed joinable.
  if (::getpid() != process_) return thread_.detach();
  flush(options.shutdown);  // returns when everything is sent, or this time has passed
  {
    const std::lock_guard lock(mutex);
    ending = true;  // the thread ends when it wakes up
  }
  stop_.request_stop();  // cancels the request that the thread may be sending
  wake_.signal();
  thread_.join();
  // Counts the spans that are still in the queue. The thread has counted the spans and data points
  // of the requests that were canceled, and has set `unfinished_cause_`.
  while (queue.take()) drop(Signal::Traces, Why::Shutdown, /*count=*/1);
  const auto spans = dropped(Signal::Traces, Why::Shutdown);
  const auto points = dropped(Signal::Metrics, Why::Shutdown);
  if (spans == 0 && points == 0) return;
  report("OTLP: " + std::to_string(spans) + " spans and " + std::to_string(points) +
         " data points were dropped, because no time was left" +
         (unfinished_cause_.empty() ? "" : ": " + unfinished_cause_));
}

// Waits until `until` or until `wake_` is signaled, but at most a minute. Returns false if the
// thread must end.
bool Otlp::State::wait(Time until) {
  const auto left = std::max<Duration>(until - std::chrono::steady_clock::now(), Duration::zero());
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  constexpr std::int64_t kMinute = 60'000;  // in milliseconds
  pollfd wake_event{wake_.fd(), POLLIN, 0};
  ::poll(&wake_event, 1, static_cast<int>(std::min(ms, kMinute)));
  wake_.clear();
  const std::lock_guard lock(mutex);
  return !ending;
}

// Runs in the exporter's thread until `stop()`. Each time that it wakes up, it sends all waiting
// spans. It also sends the metrics if their interval has passed or a `flush()` waits. A flush()
// adds one to `flushes_wanted`, and waits until `flushes_done` has reached its number.
void Otlp::State::run() {
  constexpr Duration kMinInterval = std::chrono::milliseconds(10);
  const auto interval = std::max(options.interval, kMinInterval);
  const auto metrics_interval = std::max(options.metrics_interval, kMinInterval);
  auto next_metrics = later(std::chrono::steady_clock::now(), metrics_interval);
  auto next_spans = later(std::chrono::steady_clock::now(), interval);
  while (wait(std::min(next_spans, next_metrics))) {  // until stop() ends the thread
    // Read before sending: this iteration completes all flushes up to `last_flush`. The spans of a
    // flush() that begins later may miss it.
    std::uint64_t last_flush = 0;
    bool flush_waits = false;
    {
      const std::lock_guard lock(mutex);
      last_flush = flushes_wanted;
      flush_waits = flushes_done < last_flush;
    }
    send_spans();
    next_spans = later(std::chrono::steady_clock::now(), interval);
    if (flush_waits || std::chrono::steady_clock::now() >= next_metrics) {
      send_metrics();
      next_metrics = later(std::chrono::steady_clock::now(), metrics_interval);
    }
    const std::lock_guard lock(mutex);
    flushes_done = last_flush;
    flushed.notify_all();
  }
}

// Sends the spans that are waiting, in batches. Sends at most as many as the queue can hold: spans
// may be added as fast as they are sent, and flushes and metrics must not wait for those.
void Otlp::State::send_spans() {
  for (auto left = queue.capacity(); left > 0;) {
    const auto most = std::min(options.batch, left);
    std::vector<SpanPtr> spans;
    while (spans.size() < most) {
      auto span = queue.take();
      if (!span) break;
      spans.push_back(std::move(span));
    }
    if (spans.empty()) return;
    send(Signal::Traces, otlp_json(spans, options), spans.size());
    if (spans.size() < most) return;  // the queue was empty
    left -= spans.size();
  }
}

// Sends the current values of each Metrics object that this exporter was given. The exporter does
// not keep these objects alive: it forgets a destroyed one, and skips one without data points.
void Otlp::State::send_metrics() {
  std::vector<std::weak_ptr<const Metrics>> existing;
  {
    const std::lock_guard lock(mutex);
    std::erase_if(metrics, [](const auto& weak) { return weak.expired(); });
    existing = metrics;
  }
  for (const auto& each : existing) {
    const auto snapshot = snapshot_of(each);
    std::uint64_t points = 0;  // one for each series; counted as dropped if sending fails
    for (const auto& family : snapshot.families) points += family.series.size();
    if (points > 0) send(Signal::Metrics, otlp_json(snapshot, options), points);
  }
}

void Otlp::State::send(Signal signal, std::string body, std::uint64_t items) {
  auto request = Request::post(urls_.at(static_cast<std::size_t>(signal)), Body(std::move(body)));
  request.set_header("Content-Type", "application/json").compress_with(options.compression);
  for (const auto field : options.headers) request.set_header(field.name, field.value);
  CallOptions call;
  call.stop = stop_.get_token();
  record_result(signal, request, client_.send(request, call), items);
}

// Handles the outcome of a request to the collector. `items` is the number of spans or data points
// in it. Counts those that the collector did not accept as dropped, and reports why: there was no
// response, the status was an error, or the response says that it rejects some of them.
void Otlp::State::record_result(Signal signal, const Request& request, const Outcome& outcome,
                                std::uint64_t items) {
  const std::string name(kSignals.at(static_cast<std::size_t>(signal)));
  if (!outcome) {
    const bool stopped = outcome.error().code == Errc::Canceled;  // by stop()
    drop(signal, stopped ? Why::Shutdown : Why::Unreachable, items);
    if (stopped) {
      unfinished_cause_ = cause_of(request, outcome);  // stop() reports it
    } else {
      report("OTLP " + name + " were dropped: " + cause_of(request, outcome));
    }
    return;
  }
  if (!outcome->is_2xx()) {
    // A status such as 400 refuses the data, and so does a redirect, which is a Success to the
    // policy and is not followed. One such as 503 means that all retries have failed.
    const auto* last_attempt = outcome->history.last();
    const bool was_refused = last_attempt == nullptr || last_attempt->cls == Class::Permanent ||
                             last_attempt->cls == Class::Success;
    drop(signal, was_refused ? Why::Refused : Why::Unreachable, items);
    return report("OTLP " + name + " were dropped: " + cause_of(request, outcome));
  }
  const auto rejected = std::min(rejected_items(*outcome, signal), items);  // usually 0
  if (signal == Signal::Traces) exported.fetch_add(items - rejected, std::memory_order_relaxed);
  if (rejected == 0) return;
  drop(signal, Why::Rejected, rejected);
  report("OTLP " + name + " were rejected by the collector" + message_of(*outcome));
}

void Otlp::State::report(const std::string& message) {
  if (!options.on_problem || std::ranges::find(reported_, message) != reported_.end()) return;
  if (reported_.size() < 16) reported_.push_back(message);  // messages can differ each time
  options.on_problem(message);
}

Otlp::Otlp(OtlpOptions options) : state_(std::make_shared<State>(std::move(options))) {}
Otlp::~Otlp() { state_->stop(); }

std::function<void(SpanPtr)> Otlp::sink() const {
  return [state = state_](SpanPtr span) { state->add(std::move(span)); };
}

void Otlp::add(SpanPtr span) noexcept { state_->add(std::move(span)); }

void Otlp::export_metrics(const std::shared_ptr<const Metrics>& metrics) {
  const std::lock_guard lock(state_->mutex);
  state_->metrics.emplace_back(metrics);
}

bool Otlp::flush(Duration timeout) {
  detail::check_may_block("Otlp::flush()");
  return state_->flush(timeout);
}

// Returns an entry for each signal and reason for which something was dropped.
std::vector<DroppedTelemetry> Otlp::dropped() const {
  std::vector<DroppedTelemetry> all;
  for (std::size_t signal = 0; signal < kSignals.size(); ++signal) {
    for (std::size_t why = 0; why < kWhys.size(); ++why) {
      const auto count = state_->dropped(Signal(signal), Why(why));
      if (count > 0) all.push_back({kSignals.at(signal), kWhys.at(why), count});
    }
  }
  return all;
}

std::uint64_t Otlp::exported() const { return state_->exported.load(std::memory_order_relaxed); }

}  // namespace httpretry
