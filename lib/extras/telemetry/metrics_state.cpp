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
thread_local Leases leases;

Leases::~Leases() {
  for (const auto& lease : all) lease.shard->owned.store(false, std::memory_order_release);
  last = {};
  thread_is_ending = true;  // no shard for what is destroyed later, for example a static client
}

std::uint64_t new_id() {
  static std::atomic<std::uint64_t> newest = 0;
  return newest.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

Metrics::State::State(MetricsOptions with)
    : options(std::move(with)),
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

// Returns the shard that this thread already has, one that an ended thread left, or a new one, and
// remembers it in `last`. Returns nullptr if memory runs out.
Shard* Metrics::State::find_or_make_shard() {
  auto& all = leases.all;
  auto lease = std::ranges::find(all, id_, &Lease::id);
  if (lease == all.end()) {
    // Drops the leases of Metrics that were destroyed.
    std::erase_if(all, [](const Lease& each) { return each.shard.use_count() == 1; });
    try {
      all.push_back({.id = id_, .shard = nullptr});
      lease = std::prev(all.end());
      const std::lock_guard lock(mutex);
      // Another thread may try to take the same shard at the same time.
      const auto take_if_free = [](const auto& shard) {
        bool owned = false;
        return shard->owned.compare_exchange_strong(owned, true, std::memory_order_acquire);
      };
      const auto taken = std::ranges::find_if(shards, take_if_free);
      if (taken != shards.end()) {
        lease->shard = *taken;
      } else {
        shards.push_back(std::make_shared<Shard>());
        lease->shard = shards.back();
      }
    } catch (const std::bad_alloc&) {
      if (lease != all.end()) all.erase(lease);
      return nullptr;
    }
  }
  last = {id_, lease->shard.get()};
  return last.shard;
}

}  // namespace httpretry
