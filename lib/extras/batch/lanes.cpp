#include "lanes.hpp"

#include <algorithm>
#include <utility>

namespace httpretry::batch {
namespace {

constexpr std::size_t kMostLanes = 4096;      // in use at once, without those that are held
constexpr std::ptrdiff_t kMostHeld = 32'768;  // more than the hosts of a journal

}  // namespace

bool Lanes::wants(std::string_view host, Time now) const {
  const auto found = by_host_.find(host);
  if (found == by_host_.end()) return by_host_.size() < kMostLanes + held_count_;
  return !found->second->held(now) && found->second->queued() < per_lane_;
}

Lane& Lanes::lane(const std::string& host) {
  auto& entry = by_host_[host];
  if (!entry) {
    entry = std::make_unique<Lane>();
    entry->host = host;
    ring_.push_back(entry.get());
  }
  return *entry;
}

void Lanes::add(Job job) {
  auto& queues = lane(job.host).queues;
  queues[static_cast<std::size_t>(job.priority)].push_back(std::move(job));
  ++queued_;
}

// Removes and returns the job that starts next, and counts it as running. Returns nullopt if no job
// may start at `now`. High priority comes first: a job of lower priority starts only if no host has
// a job of a higher one that may start. Within a priority the hosts take turns, so the search
// begins behind the host that started a job last.
std::optional<Job> Lanes::start(Time now) {
  if (queued_ == 0) return std::nullopt;
  // 0 is the highest priority.
  for (std::size_t priority = 0; priority < kPriorities; ++priority) {
    for (std::size_t i = 0; i < ring_.size(); ++i) {
      const auto index = (next_in_ring_ + i) % ring_.size();
      auto& lane = *ring_[index];
      auto& queue = lane.queues[priority];
      if (queue.empty() || !lane.may_start(now)) continue;
      next_in_ring_ = (index + 1) % ring_.size();
      Job job = std::move(queue.front());
      queue.pop_front();
      --queued_;
      ++lane.running;
      return job;
    }
  }
  return std::nullopt;
}

void Lanes::note_job_ended(const std::string& host) { --lane(host).running; }

bool Lanes::refuses_all(const std::string& host, bool refused) {
  auto& in_a_row = lane(host).refused;
  in_a_row = refused ? in_a_row + 1 : 0;
  return in_a_row >= Lane::kMostKept;
}

std::vector<Job> Lanes::hold(const std::string& host, Time until) {
  auto& held = lane(host);
  held.held_until = std::max(held.held_until, until);
  held.refused = 0;
  return remove_queued(held);
}

// Removes and returns the queued jobs of a host.
std::vector<Job> Lanes::remove_queued(Lane& lane) {
  std::vector<Job> jobs;
  for (auto& queue : lane.queues) {
    queued_ -= queue.size();
    std::ranges::move(queue, std::back_inserter(jobs));
    queue.clear();
  }
  return jobs;
}

std::size_t Lanes::ready(Time now) const {
  std::size_t count = 0;
  for (const auto* lane : ring_) count += lane->may_start(now) ? lane->queued() : 0;
  return count;
}

std::vector<Job> Lanes::take_all() {
  std::vector<Job> jobs;
  for (auto* lane : ring_) std::ranges::move(remove_queued(*lane), std::back_inserter(jobs));
  return jobs;
}

void Lanes::set_kept(const std::map<std::string, std::size_t>& counts) {
  for (auto* lane : ring_) lane->kept = 0;
  for (const auto& [host, count] : counts) lane(host).kept = count;
}

void Lanes::set_blocked(const std::vector<std::string>& hosts) {
  for (auto* lane : ring_) lane->is_blocked = false;
  for (const auto& host : hosts) lane(host).is_blocked = true;
}

std::optional<Time> Lanes::next_end_of_hold(Time now) const {
  std::optional<Time> first;
  for (const auto* lane : ring_) {
    if (lane->held(now) && (!first || lane->held_until < *first)) first = lane->held_until;
  }
  return first;
}

std::vector<const Lane*> Lanes::held(Time now) const {
  std::vector<const Lane*> found;
  std::ranges::copy_if(ring_, std::back_inserter(found),
                       [now](const Lane* lane) { return lane->held(now); });
  std::ranges::sort(found, [](const Lane* a, const Lane* b) {
    return std::pair(b->held_until, a->host) < std::pair(a->held_until, b->host);
  });
  return found;
}

void Lanes::forget_idle(Time now) {
  if (by_host_.size() < kMostLanes) return;
  const auto idle = [now](const Lane& lane) {
    return lane.queued() == 0 && lane.running == 0 && !lane.is_blocked && !lane.held(now);
  };
  std::erase_if(ring_, [&](const Lane* lane) { return idle(*lane); });
  std::erase_if(by_host_, [&](const auto& entry) { return idle(*entry.second); });
  next_in_ring_ = 0;
  const auto held_count =
      std::ranges::count_if(ring_, [now](const Lane* lane) { return lane->held(now); });
  held_count_ = static_cast<std::size_t>(std::min(held_count, kMostHeld));
}

}  // namespace httpretry::batch
