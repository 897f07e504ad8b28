#include "exporter.hpp"

#include <httpretry/middleware/retry.hpp>
#include <httpretry/policy/policy_set.hpp>

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace httpretry {

using namespace telemetry;

namespace {

RetryPolicy policy_of(const OtlpOptions& options) {
  auto policy = options.policy;
  if (!policy) {
    const auto set = parse_policies(R"({"version": 1, "default": {"preset": "otlp"}})", "otlp");
    policy = *set.value().find("POST", *Url::parse("http://localhost/")).policy;
  }
  policy->attempt_timeout = std::min(policy->attempt_timeout, options.timeout);
  return *std::move(policy);
}

Client client_of(const OtlpOptions& options) {
  ClientOptions client;
  client.middlewares = {retry(policy_of(options))};
  client.connection = options.connection;
  return Client(std::move(client));
}

int new_eventfd() {
  const int descriptor = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (descriptor < 0) throw std::system_error(errno, std::system_category(), "eventfd");
  return descriptor;
}

// Returns the number of items that a successful response rejects.
std::uint64_t rejected_items(const Response& response, Signal signal) {
  const auto* key = signal == Signal::Traces ? "/partialSuccess/rejectedSpans"
                                             : "/partialSuccess/rejectedDataPoints";
  const auto found = response.json_at(key);
  if (!found) return 0;
  // In OTLP's JSON, a 64-bit number is a string; some servers send a number.
  if (const auto* text = std::get_if<std::string>(&*found)) {
    return std::strtoull(text->c_str(), nullptr, 10);
  }
  if (const auto* number = std::get_if<std::uint64_t>(&*found)) return *number;
  if (const auto* number = std::get_if<std::int64_t>(&*found)) {
    return *number > 0 ? static_cast<std::uint64_t>(*number) : 0;
  }
  return 0;
}

std::string message_of(const Response& response) {
  const auto found = response.json_at("/partialSuccess/errorMessage");
  if (!found) return {};
  const auto* text = std::get_if<std::string>(&*found);
  return text == nullptr ? std::string() : ": " + *text;
}

// Starts the thread with all signals blocked, so that the program's own threads handle them.
std::thread start_without_signals(std::function<void()> run) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread thread(std::move(run));
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread;
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
}

}  // namespace

std::string telemetry::endpoint_url(const OtlpOptions& options, Signal signal) {
  const bool traces = signal == Signal::Traces;
  const auto& own = traces ? options.traces_endpoint : options.metrics_endpoint;
  const auto& given = own.empty() ? options.endpoint : own;
  const auto url = Url::parse(given);
  if (!url) {
    throw std::invalid_argument(
        "the OTLP endpoint is not a usable URL: expected something like "
        "http://localhost:4318");
  }
  if (!own.empty()) return own;
  auto base = given.substr(0, given.find_first_of("?#"));
  if (!base.ends_with('/')) base += '/';
  return base + (traces ? "v1/traces" : "v1/metrics");
}

Otlp::State::State(OtlpOptions with)
    : options(std::move(with)),
      queue(options.queue),
      urls_{endpoint_url(options, Signal::Traces), endpoint_url(options, Signal::Metrics)},
      wake_(new_eventfd()),
      process_(::getpid()),
      client_(client_of(options)) {
  thread_ = start_without_signals([this] { run(); });
}

Otlp::State::~State() { ::close(wake_); }

void Otlp::State::add(SpanPtr span) noexcept {
  if (closed.load(std::memory_order_relaxed)) return drop(Signal::Traces, Why::Shutdown, 1);
  const auto before = queue.put(span);
  if (before == SpanQueue::kFull) return drop(Signal::Traces, Why::QueueFull, 1);
  if ((before + 1) % options.batch == 0) wake();
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

// Does not block: if the eventfd's counter is full, the thread is awake anyway.
void Otlp::State::wake() const noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_, &one, sizeof one);
}

bool Otlp::State::flush(Duration timeout) {
  std::unique_lock lock(mutex);
  const auto mine = ++flushes_wanted;
  wake();
  // Not the whole Duration: kForever would overflow in the clock of the condition variable.
  const auto most = std::min<Duration>(timeout, std::chrono::hours(24));
  return flushed.wait_for(lock, most, [&] { return flushes_done >= mine; });
}

void Otlp::State::stop() {
  closed.store(true, std::memory_order_relaxed);
  if (::getpid() != process_) return thread_.detach();  // a forked child does not have the thread
  flush(options.shutdown);
  {
    const std::lock_guard lock(mutex);
    ending = true;
  }
  stop_.request_stop();
  wake();
  thread_.join();
  while (queue.take()) drop(Signal::Traces, Why::Shutdown, 1);
  const auto lost = [&](Signal signal) { return std::to_string(dropped(signal, Why::Shutdown)); };
  if (lost(Signal::Traces) == "0" && lost(Signal::Metrics) == "0") return;
  report("OTLP: " + lost(Signal::Traces) + " spans and " + lost(Signal::Metrics) +
         " data points were dropped, there was no time left");
}

bool Otlp::State::wait(Time until) {
  const auto left = std::max<Duration>(until - std::chrono::steady_clock::now(), Duration::zero());
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  pollfd woken{wake_, POLLIN, 0};
  ::poll(&woken, 1, static_cast<int>(std::min<std::int64_t>(ms, 60'000)));
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(wake_, &count, sizeof count);
  const std::lock_guard lock(mutex);
  return !ending;
}

void Otlp::State::run() {
  auto next_metrics = later(std::chrono::steady_clock::now(), options.metrics_interval);
  auto next_spans = later(std::chrono::steady_clock::now(), options.interval);
  while (wait(std::min(next_spans, next_metrics))) {
    std::uint64_t wanted = 0;
    bool flushing = false;
    {
      const std::lock_guard lock(mutex);
      wanted = flushes_wanted;
      flushing = flushes_done < wanted;
    }
    while (send_spans()) {
    }
    next_spans = later(std::chrono::steady_clock::now(), options.interval);
    if (flushing || std::chrono::steady_clock::now() >= next_metrics) {
      send_metrics();
      next_metrics = later(std::chrono::steady_clock::now(), options.metrics_interval);
    }
    const std::lock_guard lock(mutex);
    flushes_done = wanted;
    flushed.notify_all();
  }
}

bool Otlp::State::send_spans() {
  std::vector<SpanPtr> spans;
  while (spans.size() < options.batch) {
    auto span = queue.take();
    if (!span) break;
    spans.push_back(std::move(span));
  }
  if (spans.empty()) return false;
  return send(Signal::Traces, otlp_json(spans, options), spans.size());
}

void Otlp::State::send_metrics() {
  std::vector<std::shared_ptr<const Metrics>> all;
  {
    const std::lock_guard lock(mutex);
    std::erase_if(metrics, [](const auto& each) { return each.expired(); });
    for (const auto& each : metrics) {
      if (auto alive = each.lock()) all.push_back(std::move(alive));
    }
  }
  for (const auto& each : all) {
    const auto snapshot = each->snapshot();
    std::uint64_t points = 0;
    for (const auto& family : snapshot.families) points += family.series.size();
    if (points > 0) send(Signal::Metrics, otlp_json(snapshot, options), points);
  }
}

bool Otlp::State::send(Signal signal, std::string body, std::uint64_t items) {
  auto request = Request::post(urls_.at(static_cast<std::size_t>(signal)), Body(std::move(body)));
  request.set_header("Content-Type", "application/json");
  for (const auto field : options.headers) request.set_header(field.name, field.value);
  CallOptions call;
  call.stop = stop_.get_token();
  record_result(signal, client_.send(request, call), items);
  return true;
}

void Otlp::State::record_result(Signal signal, const Outcome& outcome, std::uint64_t items) {
  const std::string name(kSignals.at(static_cast<std::size_t>(signal)));
  if (!outcome) {
    const bool ended = outcome.error().code == Errc::Canceled;
    drop(signal, ended ? Why::Shutdown : Why::Unreachable, items);
    if (!ended) report("OTLP " + name + " were dropped: " + outcome.error().message);
    return;
  }
  if (!outcome->is_2xx()) {
    const auto* last = outcome->history.last();
    const bool final = last == nullptr || last->cls == Class::Permanent;
    drop(signal, final ? Why::Refused : Why::Unreachable, items);
    return report("OTLP " + name + " were dropped: the collector answered " +
                  std::to_string(outcome->status));
  }
  const auto rejected = std::min(rejected_items(*outcome, signal), items);
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
