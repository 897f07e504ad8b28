// Lanes: the jobs that a run has taken and not yet started, a queue for each host, and which host
// is next. A plain state machine, without clock and lock.
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

// The jobs of one host.
struct Lane {
  std::string host;
  std::array<std::deque<Job>, 3> queues;  // one for each priority
  std::size_t running = 0;
  Time held_until{};
  // Of those that run, how many our own limits keep from the wire. More of them would only wait,
  // and take the places of other hosts.
  std::size_t kept = 0;
  static constexpr std::size_t kMostKept = 8;
  // No call may begin: those that did wait for the end of an outage.
  bool left_alone = false;
  // Calls that guards() refused in a row.
  std::size_t refused = 0;

  [[nodiscard]] std::size_t queued() const {
    return queues[0].size() + queues[1].size() + queues[2].size();
  }
  [[nodiscard]] bool held(Time now) const { return now < held_until; }
  [[nodiscard]] bool may_start(Time now) const {
    return kept < kMostKept && !left_alone && !held(now);
  }
};

class Lanes {
 public:
  // `per_lane`: how many jobs of one host are kept here at most.
  explicit Lanes(std::size_t per_lane) : per_lane_(per_lane) {}

  // Whether another job of that host is wanted.
  [[nodiscard]] bool wants(std::string_view host, Time now) const;
  void add(Job job);
  // The next job that may start, those of high priority first, then host by host. It counts as
  // running from now on. Empty: there is none now.
  std::optional<Job> start(Time now);
  void ended(const std::string& host);
  // Counts whether guards() refused a call of the host. Returns true after kMostKept refusals in a
  // row: the next calls would be refused, too.
  bool refuses_all(const std::string& host, bool refused);
  // Starts no job of that host until then. Returns those that were waiting for their turn: the
  // pause may be long, and others need the memory.
  std::vector<Job> hold(const std::string& host, Time until);
  std::vector<Job> take_all();
  // Of each host whose calls are there, how many are kept from the wire.
  void set_kept(const std::map<std::string, std::size_t>& counts);
  // These hosts, and no others.
  void leave_alone(const std::vector<std::string>& hosts);

  [[nodiscard]] std::size_t queued() const { return queued_; }
  // Of these, those of hosts of which one may start now.
  [[nodiscard]] std::size_t ready(Time now) const;
  // Of the holds that are not over.
  [[nodiscard]] std::optional<Time> next_end_of_hold(Time now) const;
  [[nodiscard]] std::vector<const Lane*> held(Time now) const;

 private:
  Lane& lane(const std::string& host);
  [[nodiscard]] std::vector<Job> empty(Lane& lane);
  void forget_idle(Time now);

  std::size_t per_lane_;
  std::map<std::string, std::unique_ptr<Lane>, std::less<>> by_host_;
  std::vector<Lane*> ring_;
  std::size_t next_ = 0;  // in the ring
  std::size_t queued_ = 0;
};

}  // namespace httpretry::batch
