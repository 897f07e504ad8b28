#include <httpretry/chain/call.hpp>
#include <httpretry/flow/scheduler.hpp>
#include <httpretry/policy/policy_set.hpp>
#include <httpretry/policy/policy_source.hpp>
#include <httpretry/testing/testing.hpp>

#include <mutex>

namespace httpretry {
namespace {

std::string in_milliseconds(Duration time) {
  const auto ms = std::chrono::floor<std::chrono::milliseconds>(time);
  if (ms == time) return std::to_string(ms.count()) + "ms";
  return std::to_string(time.count()) + "ns";
}

std::string result_text(int status, std::optional<Errc> error) {
  return error ? std::string(to_string(*error)) : std::to_string(status);
}

}  // namespace

struct RecordingObserver::Record {
  std::mutex mutex;
  std::vector<std::string> lines;
  std::vector<Attempt> attempts;
  void add(std::string line) {
    const std::lock_guard lock(mutex);
    lines.push_back(std::move(line));
  }
};

RecordingObserver::RecordingObserver() : record_(std::make_unique<Record>()) {}
RecordingObserver::~RecordingObserver() = default;

std::vector<std::string> RecordingObserver::lines() const {
  const std::lock_guard lock(record_->mutex);
  return record_->lines;
}

std::vector<Attempt> RecordingObserver::attempts() const {
  const std::lock_guard lock(record_->mutex);
  return record_->attempts;
}

void RecordingObserver::call_started(const Call& /*call*/, const Request& request) noexcept {
  record_->add("call " + request.method() + " " + request.url());
}

void RecordingObserver::attempt_started(const Call& /*call*/, const Request& /*request*/,
                                        int number) noexcept {
  record_->add("attempt " + std::to_string(number));
}

// Records "attempt 1: 503 transient, retry after 100ms", for example, and the attempt itself.
void RecordingObserver::attempt_ended(const Call& /*call*/, const Request& /*request*/,
                                      const Attempt& attempt) noexcept {
  auto line = "attempt " + std::to_string(attempt.number) + ": " +
              result_text(attempt.status, attempt.error) + " " +
              std::string(to_string(attempt.cls));
  if (attempt.retried)
    line += ", retry after " + in_milliseconds(attempt.wait.value_or(Duration{}));
  if (attempt.race == Race::Lost) line += ", lost";
  record_->add(std::move(line));
  const std::lock_guard lock(record_->mutex);
  record_->attempts.push_back(attempt);
}

void RecordingObserver::hedge_started(const Call& /*call*/, const Request& /*request*/, int number,
                                      Duration after) noexcept {
  record_->add("hedge " + std::to_string(number) + " after " + in_milliseconds(after));
}

void RecordingObserver::hedge_refused(const Call& /*call*/, HedgeRefused why) noexcept {
  record_->add("hedge refused: " + std::string(to_string(why)));
}

void RecordingObserver::held_back(const Call& call, QueuedBy by, Time until) noexcept {
  auto line = "held back by " + std::string(to_string(by));
  if (until != kNever) line += " for " + in_milliseconds(until - call.scheduler().now());
  record_->add(std::move(line));
}

void RecordingObserver::redirected(const Call& /*call*/, const Request& next) noexcept {
  record_->add("redirect to " + next.url());
}

void RecordingObserver::policies_reloaded(const Call& /*call*/,
                                          const PolicyReload& reload) noexcept {
  record_->add("policies " + std::string(reload.accepted ? "accepted" : "refused"));
}

void RecordingObserver::circuit_changed(const Call& call, const CircuitChange& change) noexcept {
  auto line = "circuit " + std::string(change.key) + ": " + std::string(to_string(change.to));
  if (change.until != kNever) {
    line += " for " + in_milliseconds(change.until - call.scheduler().now());
  }
  line += ", " + std::string(change.why);
  if (change.dry_run) line += ", a dry run";
  record_->add(std::move(line));
}

void RecordingObserver::paused(const Call& call, const PauseBegun& pause) noexcept {
  record_->add("pause " + std::string(pause.key) + ": for " +
               in_milliseconds(pause.until - call.scheduler().now()) + ", " +
               std::string(pause.source));
}

void RecordingObserver::resumed(const Call& /*call*/, std::string_view key) noexcept {
  record_->add("pause " + std::string(key) + ": over");
}

void RecordingObserver::limit_changed(const Call& /*call*/, const LimitChange& change) noexcept {
  record_->add("concurrency " + std::string(change.key) + ": " + std::to_string(change.from) +
               " to " + std::to_string(change.to));
}

void RecordingObserver::shed(const Call& /*call*/, const Error& reason) noexcept {
  record_->add("not sent: " + std::string(to_string(reason.code)));
}

void RecordingObserver::call_ended(const Call& /*call*/, const Outcome& outcome) noexcept {
  const auto result =
      outcome ? result_text(outcome->status, {}) : result_text(0, outcome.error().code);
  record_->add("end " + result + " " + std::string(to_string(history_of(outcome).stop_reason)));
}

}  // namespace httpretry
