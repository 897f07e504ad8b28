// Assigns shards to threads.
#include "metrics_state.hpp"

#include <algorithm>

namespace httpretry {
namespace {

using telemetry::Shard;

// A thread's ownership of a shard.
struct Lease {
  std::uint64_t id = 0;  // of the Metrics
  std::shared_ptr<Shard> shard;
};

// The shards of a thread, of all Metrics. When the thread ends, other threads may take them.
struct Leases {
  std::vector<Lease> all;

  ~Leases();
};

// The shard that the thread used last, which avoids a search.
struct LastShard {
  std::uint64_t id = 0;
  Shard* shard = nullptr;
};

thread_local constinit LastShard last;
thread_local constinit bool thread_is_ending = false;
thread_local Leases thread_leases;

Leases::~Leases() {
  for (const auto& lease : all) lease.shard->owned.store(false, std::memory_order_release);
  last = {};
  thread_is_ending = true;  // no shard for what is destroyed later, for example a static client
}

// Returns a shard whose thread has ended, or adds a new one. The calling thread then owns it.
std::shared_ptr<Shard> take_or_add_shard(std::vector<std::shared_ptr<Shard>>& shards) {
  const auto take_if_free = [](const auto& shard) {
    bool owned = false;
    // Acquires what the thread that released the shard has counted.
    return shard->owned.compare_exchange_strong(owned, true, std::memory_order_acquire);
  };
  const auto taken = std::ranges::find_if(shards, take_if_free);
  return taken != shards.end() ? *taken : shards.emplace_back(std::make_shared<Shard>());
}

std::uint64_t new_id() {
  static std::atomic<std::uint64_t> newest = 0;
  return newest.fetch_add(1, std::memory_order_relaxed) + 1;
}

// Each host and each endpoint has a gauge from the beginning, and a SendKey has 24 bits for a host.
MetricsOptions with_most_series(MetricsOptions options) {
  constexpr std::size_t kMost = 100'000;
  options.max_hosts = std::min(options.max_hosts, kMost);
  options.max_endpoints = std::min(options.max_endpoints, kMost);
  return options;
}

}  // namespace

Metrics::State::State(MetricsOptions with)
    : options(with_most_series(std::move(with))),
      since(std::chrono::system_clock::now()),
      hosts(options.max_hosts),
      endpoints(options.max_endpoints),
      guards(options.max_hosts),
      budget_of_host(options.max_hosts + 1),
      budget_of_endpoint(options.max_endpoints + 1),
      id_(new_id()) {
  for (auto* gauges : {&budget_of_host, &budget_of_endpoint}) {
    for (auto& gauge : *gauges) gauge.store(kNone, std::memory_order_relaxed);
  }
}

Shard* Metrics::State::shard() {
  if (last.id == id_) return last.shard;
  return thread_is_ending ? nullptr : find_or_make_shard();
}

// Returns the calling thread's shard (its own set of counts) and caches it in `last`, where shard()
// looks first. Returns nullptr if memory runs out.
Shard* Metrics::State::find_or_make_shard() {
  // A thread has a lease for each Metrics that it has used.
  const auto lease = std::ranges::find(thread_leases.all, id_, &Lease::id);
  auto* const shard = lease != thread_leases.all.end() ? lease->shard.get() : lease_shard();
  if (shard != nullptr) last = {id_, shard};
  return shard;
}

// Gives the calling thread a shard of this Metrics, that is, a set of counts that only this thread
// changes. Takes the shard of a thread that has ended, or adds a new one. The lease records that
// the thread owns the shard, and releases it for other threads when the thread ends. Returns the
// shard, or nullptr if memory runs out.
Shard* Metrics::State::lease_shard() {
  auto& own_leases = thread_leases.all;  // one for each Metrics that this thread has used
  // Removes the leases of destroyed Metrics. A Metrics and a lease own the shard together, so a use
  // count of 1 means that only the lease is left.
  std::erase_if(own_leases, [](const Lease& lease) { return lease.shard.use_count() == 1; });
  bool lease_added = false;
  try {
    // Adds the lease first: a shard that was taken without a lease would never be released.
    own_leases.push_back({.id = id_, .shard = nullptr});
    lease_added = true;
    const std::lock_guard lock(mutex);  // protects `shards`, which all threads share
    own_leases.back().shard = take_or_add_shard(shards);
  } catch (const std::bad_alloc&) {
    if (lease_added) own_leases.pop_back();  // it got no shard
    return nullptr;
  }
  return own_leases.back().shard.get();
}

}  // namespace httpretry
