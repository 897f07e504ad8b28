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

// Returns the shard that this thread already has, a free one, or a new one. nullptr without memory.
Shard* Metrics::State::find_or_make_shard() {
  auto& all = leases.all;
  auto found = std::ranges::find(all, id_, &Lease::id);
  if (found == all.end()) {
    // Drops the leases of Metrics that were destroyed.
    std::erase_if(all, [](const Lease& lease) { return lease.shard.use_count() == 1; });
    try {
      all.push_back({id_, nullptr});
      found = std::prev(all.end());
      const std::lock_guard lock(mutex);
      const auto is_free = [](const auto& shard) {
        bool owned = false;
        return shard->owned.compare_exchange_strong(owned, true, std::memory_order_acquire);
      };
      const auto free = std::ranges::find_if(shards, is_free);
      if (free != shards.end()) {
        found->shard = *free;
      } else {
        shards.push_back(std::make_shared<Shard>());
        found->shard = shards.back();
      }
    } catch (const std::bad_alloc&) {
      if (found != all.end()) all.erase(found);
      return nullptr;
    }
  }
  last = {id_, found->shard.get()};
  return last.shard;
}

}  // namespace httpretry
