// The observer functions of Metrics, which count while calls run. tests/bench/RESULTS.md has their
// cost.
#include "call_trace.hpp"
#include "metrics_state.hpp"
#include "words.hpp"

#include <httpretry/policy/policy_set.hpp>
#include <httpretry/retry/retry_policy.hpp>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace httpretry {
namespace telemetry {
namespace {

constexpr std::size_t kMaxSeries = 4096;  // of each kind in a shard
const EndpointCache::Policy kNoPolicy;

enum class Match : std::uint8_t { Whole, Prefix };

// Returns the index of `text` in the array kWords, or the last index, whose entry stands for all
// other texts. With Match::Prefix, `text` only has to begin with the word. The fold expression
// calls `matches` with each index but the last, until one matches. Unlike a loop, it compares with
// sizes that are known at compile time. This saves about 100 instructions in a send.
template <const auto& kWords, Match kMatch = Match::Whole>
std::uint8_t word_index(std::string_view text) {
  constexpr std::size_t kOther = kWords.size() - 1;
  std::uint8_t index = kOther;
  [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    // If the word at kAt matches, sets `index` and returns true.
    const auto matches = [&]<std::size_t kAt>(std::integral_constant<std::size_t, kAt>) {
      constexpr auto kSize = kWords[kAt].size();
      const bool size_fits = kMatch == Match::Prefix ? text.size() >= kSize : text.size() == kSize;
      if (!size_fits || std::memcmp(text.data(), kWords[kAt].data(), kSize) != 0) return false;
      index = kAt;
      return true;
    };
    static_cast<void>((matches(std::integral_constant<std::size_t, kIndex>()) || ...));
  }
  (std::make_index_sequence<kOther>());
  return index;
}

// Finds or adds the counts of a host, and remembers them as the last ones that were used.
HostCells& look_up_cells(Names& names, Shard& shard, std::string_view origin) {
  const auto number = shard.host_cache.number(names, origin);
  auto& cells = shard.host_cells[number];
  if (cells == nullptr) {
    const std::lock_guard lock(shard.mutex);
    cells = &shard.hosts.emplace_back();
    cells->index = number;
  }
  shard.last_host = nullptr;  // in case the assignment of the text throws
  shard.last_origin = origin;
  shard.last_host = cells;
  return *cells;
}

inline HostCells& cells_of(Names& names, Shard& shard, const Url& url) {
  const auto origin = url.origin();
  const bool is_last_host = shard.last_host != nullptr && origin == shard.last_origin;
  return is_last_host ? *shard.last_host : look_up_cells(names, shard, origin);
}

// Finds or adds the series with these packed labels.
template <class Series>
Series& series_of(Shard& shard, Table<Series>& table, std::uint64_t key) {
  if (auto* found = table.find(key)) return *found;
  const std::lock_guard lock(shard.mutex);
  return table.add(key);
}

// A server may respond with any status, so the number of series needs a limit. Beyond it, the
// server and the status are `_other`.
SendSeries& send_series(Shard& shard, SendKey key, std::uint32_t other_host) {
  if (auto* found = shard.sends.find(key.pack())) return *found;
  if (shard.sends.size() >= kMaxSeries) {
    key.host = other_host;
    if (key.status != 0) key.status = kOtherStatus;
  }
  return series_of(shard, shard.sends, key.pack());
}

// Stores the trace of a sampled call, and the span of the exchange with this number, as the
// exemplar of a bucket, at most once a second for each bucket. If a reader has locked the shard, it
// does nothing rather than wait.
void record_exemplar(Shard& shard, SendSeries& series, std::size_t bucket, Duration took,
                     const Call& call, int number) {
  auto* trace = call.get<CallTrace>();
  if (trace == nullptr || !trace->call) return;
  const auto now = trace->started + std::chrono::duration_cast<WallTime::duration>(
                                        call.scheduler().now() - call.started());
  const std::unique_lock lock(shard.mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;
  if (!series.exemplars) series.exemplars = std::make_unique<Exemplars>();
  auto& exemplar = (*series.exemplars)[bucket];
  const bool is_set = exemplar.trace_low != 0;
  if (is_set && exemplar.at + std::chrono::seconds(1) > now) return;
  const auto& id = trace->context.trace;
  exemplar = {id.high, id.low, trace->last_send, took.count(), now};
  // Hedges may have begun later. Without the retry middleware, which makes hedges possible,
  // traces() may have taken the span already.
  trace->for_each_open([&](const TracedSend& send) {
    if (send.number == number) exemplar.span = send.span.id;
  });
}

// Must match RetryPolicies in lib/core/middleware: a request that no endpoint matches shares the
// budget of its host.
bool is_budget_of_host(const ResolvedPolicy& policy) {
  const auto scope = policy.policy->budget.scope;
  return scope == BudgetPolicy::Scope::Host ||
         (scope == BudgetPolicy::Scope::Endpoint && policy.identity.empty());
}

void record_wait(Shard& shard, QueuedBy by, Duration waited) {
  shard.queued.at(static_cast<std::size_t>(by)).record(waited.count());
}

// Records what is left of the budget that an attempt used: that of its endpoint, or of its host.
void record_budget(Metrics::State& state, Shard& shard, const Call& call, const Request& request,
                   const Attempt& attempt, std::uint32_t endpoint) {
  const auto left = *attempt.budget_left;
  if (!is_budget_of_host(*attempt.policy)) {
    state.budget_of_endpoint[endpoint].store(left, std::memory_order_relaxed);
    return;
  }
  // The attempt of the exchange that ended last needs no look-up of its host.
  const bool is_cached = shard.ended_call == call.id() && shard.ended_headers == &request.headers();
  if (!is_cached && !request.parsed_url()) return;
  const auto& host =
      is_cached ? *shard.ended_host : cells_of(state.hosts, shard, *request.parsed_url());
  state.budget_of_host[host.index].store(left, std::memory_order_relaxed);
}

// Returns the labels of the series that counts a send. A label stays 0 if there is no value for it.
SendKey labels_of(const HostCells& host, const Request& request, const Outcome& outcome) {
  SendKey key;
  key.host = host.index;
  key.method = word_index<kMethods>(request.method());
  if (outcome) {
    key.version = word_index<kVersions>(outcome->http_version);
    key.status = static_cast<std::uint16_t>(outcome->status);
  } else {
    key.error = SendKey::packed_error(outcome.error().code);
    key.status = static_cast<std::uint16_t>(outcome.error().status);
  }
  return key;
}

// Returns whether the reason means that a retry was due, but was not allowed or not possible.
bool is_refused_retry(Reason reason) {
  return reason == Reason::UnsafeToRepeat || reason == Reason::NotReplayable ||
         reason == Reason::AttemptsExhausted || reason == Reason::ElapsedExhausted ||
         reason == Reason::ServerDelayTooLong || reason == Reason::BudgetExhausted;
}

}  // namespace
}  // namespace telemetry

using namespace telemetry;

Metrics::Metrics(MetricsOptions options) : state_(std::make_shared<State>(std::move(options))) {}
Metrics::~Metrics() = default;

std::shared_ptr<Metrics> metrics(MetricsOptions options) {
  return std::make_shared<Metrics>(std::move(options));
}

// Counts an exchange that begins, and caches its host for exchange_ended(). If memory runs out,
// this function and those below do not count, and the call continues.
void Metrics::exchange_started(const Call& call, const Request& request, int number) noexcept {
  const auto& url = request.parsed_url();
  auto* shard = state_->shard();
  if (shard == nullptr || !url) return;
  try {
    auto& host = cells_of(state_->hosts, *shard, *url);
    add(host.started);
    const auto id = call.id();
    shard->open_exchange(id, number) = {id, number, &host};
  } catch (const std::bad_alloc&) {
  }
}

// Counts the end of the exchange with this number in its call, and records its duration and its
// wait in the counts of this thread, the shard. Does nothing if the thread has no shard, or if
// memory runs out.
void Metrics::exchange_ended(const Call& call, const Request& request, int number,
                             const Outcome& outcome) noexcept {
  auto* shard = state_->shard();
  if (shard == nullptr) return;
  const auto id = call.id();
  // exchange_started() has stored the host in a cache. It is not there if a later exchange has
  // taken its slot, or if the exchange began on another thread.
  const auto& cached = shard->open_exchange(id, number);
  const bool is_cached = cached.call == id && cached.number == number;
  if (!is_cached && !request.parsed_url()) return;
  try {
    auto& host = is_cached ? *cached.host : cells_of(state_->hosts, *shard, *request.parsed_url());
    add(host.ended);
    // Lets attempt_ended(), which usually follows, find the host without a look-up. Requests of a
    // call that have the same headers object have the same URL, and so the same host.
    shard->ended_call = id;
    shard->ended_headers = &request.headers();
    shard->ended_host = &host;
    const auto labels = labels_of(host, request, outcome);
    auto& series = send_series(*shard, labels, /*other_host=*/state_->hosts.other());
    const auto& exchange = exchange_of(outcome);
    const auto duration = exchange.timings.total;
    const auto bucket = series.duration.record(duration.count());
    // An exchange has several sends after rounds of authentication, for example.
    add(shard->wire_sends, static_cast<std::uint64_t>(exchange.wire_sends));
    if (exchange.timings.queued != Duration::zero()) {
      record_wait(*shard, exchange.queued_by, exchange.timings.queued);
    }
    // Links the bucket of the histogram to the trace of this call, if the call is traced.
    record_exemplar(*shard, series, bucket, duration, call, number);
  } catch (const std::bad_alloc&) {
    // The exchange, or a part of it, is not counted.
  }
}

// Records what retries, hedges and guards did for an attempt, in the counts of this thread, the
// shard: the wait for guards, the result of a hedge, the tokens left in the budget, and the retry
// that follows. Most attempts have none of these, so this is checked first. If memory runs out, the
// rest is not counted.
void Metrics::attempt_ended(const Call& call, const Request& request,
                            const Attempt& attempt) noexcept {
  const bool has_budget = attempt.budget_left && attempt.policy;
  const bool was_held = telemetry::was_held_by_guards(attempt);
  const bool counts_for_endpoint = attempt.retried || has_budget || attempt.hedge;
  if (!was_held && !counts_for_endpoint) return;
  auto* shard = state_->shard();
  if (shard == nullptr) return;
  if (was_held) record_wait(*shard, attempt.queued_by, attempt.exchange().timings.queued);
  if (!counts_for_endpoint) return;
  try {
    const auto endpoint = shard->endpoint_cache.number(state_->endpoints, attempt.policy);
    if (attempt.hedge) {
      const auto result = attempt.race == Race::Won ? kHedgeWon : kHedgeLost;
      add(series_of(*shard, shard->hedges, endpoint_key(endpoint, result)).count);
    }
    if (has_budget) record_budget(*state_, *shard, call, request, attempt, endpoint);
    if (!attempt.retried) return;
    // Counts the retry by endpoint, class and the first word of the rule ("status" for "status
    // 503"), and adds its wait to the waits of all retries.
    const auto rule_kind = word_index<kRuleKinds, Match::Prefix>(attempt.rule);
    const auto key = endpoint_key(endpoint, static_cast<std::uint8_t>(attempt.cls), rule_kind);
    add(series_of(*shard, shard->retries, key).count);
    add(shard->wait, static_cast<std::uint64_t>(attempt.wait.value_or(Duration::zero()).count()));
  } catch (const std::bad_alloc&) {
  }
}

// Counts a call when it ends: its duration and its number of attempts, by the endpoint of its
// policy and the reason why it ended. Also counts a retry that was refused, a fallback, and a hedge
// (a second send of a slow request) that was refused. Each thread has its own counts, a shard. If
// there is no memory for a shard or a new series, this call or a part of it is not counted.
void Metrics::call_ended(const Call& /*call*/, const Outcome& outcome) noexcept {
  auto* shard = state_->shard();
  if (shard == nullptr) return;
  try {
    const auto& history = history_of(outcome);
    const auto& attempts = history.attempts;
    const auto& policy = attempts.empty() ? kNoPolicy : attempts.front().policy;
    const auto endpoint = shard->endpoint_cache.number(state_->endpoints, policy);
    // The key of a series packs its labels into a number.
    const auto key = endpoint_key(endpoint, static_cast<std::uint8_t>(history.stop_reason));
    auto& series = series_of(*shard, shard->calls, key);
    series.duration.record(history.elapsed.count());
    series.attempts.record(static_cast<std::int64_t>(attempts.size()));
    if (is_refused_retry(history.stop_reason)) {
      add(series_of(*shard, shard->refused_retries, key).count);
    }
    if (outcome && outcome->from_fallback) {
      add(series_of(*shard, shard->fallbacks, endpoint_key(endpoint)).count);
    }
    if (history.hedge_refused) {
      // Results of hedges are Won, Lost, and from kFirstRefused on the reasons why one was refused.
      const auto result = kFirstRefused + static_cast<std::uint8_t>(*history.hedge_refused);
      const auto hedge_key = endpoint_key(endpoint, static_cast<std::uint8_t>(result));
      add(series_of(*shard, shard->hedges, hedge_key).count);
    }
  } catch (const std::bad_alloc&) {
  }
}

void Metrics::shed(const Call& /*call*/, const Error& reason) noexcept {
  auto* shard = state_->shard();
  const auto found = std::ranges::find(kShedReasons, reason.code);
  if (shard == nullptr || found == kShedReasons.end()) return;
  add(shard->shed.at(static_cast<std::size_t>(found - kShedReasons.begin())));
}

void Metrics::circuit_changed(const Call& /*call*/, const CircuitChange& change) noexcept {
  state_->guards.changed(change);
}

void Metrics::limit_changed(const Call& /*call*/, const LimitChange& change) noexcept {
  state_->guards.changed(change);
}

void Metrics::paused(const Call& call, const PauseBegun& pause) noexcept {
  constexpr Duration kYear = std::chrono::hours(24 * 366);  // a pause may have no end
  const auto left = std::min<Duration>(pause.until - call.scheduler().now(), kYear);
  state_->guards.paused(pause.key, call.scheduler().wall_now() +
                                       std::chrono::duration_cast<WallTime::duration>(left));
}

void Metrics::resumed(const Call& /*call*/, std::string_view key) noexcept {
  state_->guards.resumed(key);
}

}  // namespace httpretry
