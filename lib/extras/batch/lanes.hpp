// Lanes holds the jobs that a run has taken and not yet started, in a queue for each host, and
// chooses the next one. It is a plain state machine without clock or lock.
#pragma once

#include <httpretry/batch/store.hpp>

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry::batch {

inline constexpr std::size_t kPriorities = 3;

// The jobs of one host.
struct Lane {
  std::string host;
  std::array<std::deque<Job>, kPriorities> queues;  // by priority, the highest first
  std::size_t running = 0;
  Time held_until{};
  // The number of running calls that our own limits keep from the wire. More of them would only
  // wait, and take places from other hosts.
  std::size_t kept = 0;
  static constexpr std::size_t kMostKept = 8;
  // No call may begin during an outage, because others already retry at this host.
  bool is_blocked = false;
  // The number of calls in a row that guards() has refused.
  std::size_t refused = 0;

  [[nodiscard]] std::size_t queued() const {
    return queues[0].size() + queues[1].size() + queues[2].size();
  }
  [[nodiscard]] bool held(Time now) const { return now < held_until; }
  [[nodiscard]] bool may_start(Time now) const {
    return kept < kMostKept && !is_blocked && !held(now);
  }
};

class Lanes {
 public:
  // `per_lane`: the most jobs of one host that Lanes wants to hold.
  explicit Lanes(std::size_t per_lane) : per_lane_(per_lane) {}

  // Returns whether another job of the host should be added.
  [[nodiscard]] bool wants(std::string_view host, Time now) const;
  void add(Job job);
  // If there are thousands of hosts, forgets those without jobs, so that `wants` may return true
  // for others. This bounds the memory of a run that sends to a million hosts. Keeps hosts that are
  // held, which do not count against the others.
  void forget_idle(Time now);
  // Removes and returns the next job that may start: high priority first, then host by host. It
  // counts as running until `note_job_ended`. Returns nullopt if no job may start now.
  std::optional<Job> start(Time now);
  // Notes that a running job of the host has ended.
  void note_job_ended(const std::string& host);
  // Notes whether guards() refused a call of the host. Returns true after kMostKept refusals in a
  // row, because it would also refuse the next calls.
  bool refuses_all(const std::string& host, bool refused);
  // Starts no job of the host until then. Removes and returns its queued jobs, because the pause
  // may be long and other hosts need the memory.
  std::vector<Job> hold(const std::string& host, Time until);
  // Removes and returns all queued jobs.
  std::vector<Job> take_all();
  // Sets how many running calls of each host are kept from the wire. A host without a count has
  // none.
  void set_kept(const std::map<std::string, std::size_t>& counts);
  // Blocks these hosts, and no others: none of their jobs may start.
  void set_blocked(const std::vector<std::string>& hosts);

  [[nodiscard]] std::size_t queued() const { return queued_; }
  // Returns how many queued jobs belong to hosts that may start one now.
  [[nodiscard]] std::size_t ready(Time now) const;
  // Returns when the next hold ends. Empty: no host is held.
  [[nodiscard]] std::optional<Time> next_end_of_hold(Time now) const;
  // Returns the hosts that are held, the longest hold first.
  [[nodiscard]] std::vector<const Lane*> held(Time now) const;

 private:
  Lane& lane(const std::string& host);
  [[nodiscard]] std::vector<Job> remove_queued(Lane& lane);

  std::size_t per_lane_;
  std::map<std::string, std::unique_ptr<Lane>, std::less<>> by_host_;
  std::vector<Lane*> ring_;
  std::size_t next_in_ring_ = 0;  // the index of the lane that has the next turn
  std::size_t queued_ = 0;
  std::size_t held_count_ = 0;  // at the last forget_idle(), up to a limit
};

}  // namespace httpretry::batch
