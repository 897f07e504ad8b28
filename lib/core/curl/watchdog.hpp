// Heartbeat: shows the watchdog, a thread of the process, that a loop makes progress.
//
// A server can send HTTP/2 frames that libcurl handles without calling us: empty DATA, GOAWAY,
// RST_STREAM. libcurl 7.88 does not return as long as they come. Meanwhile the loop notices neither
// its deadlines nor the other connections. So the watchdog closes such a connection from outside.
// libcurl 8 returns now and then, so the loop itself counts what such a connection receives.
#pragma once

#include <httpretry/http/time.hpp>

#include <atomic>
#include <cstdint>
#include <ctime>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace httpretry {

class Heartbeat {
 public:
  // A connection that may speak HTTP/2. Its transfers share it.
  struct Watched {
    std::atomic<bool> closed = false;  // because of a flood

    // The rest belongs to the thread that drives the loop.
    bool progressed = false;    // since the last call of libcurl, for one of its transfers
    int paused = 0;             // transfers that are paused; data for them comes without a callback
    unsigned silent_calls = 0;  // calls of libcurl without progress
    std::optional<std::uint64_t> read_at_first_count;  // bytes; the first since the last progress
  };

  // Starts the watchdog if it does not run. To be made while libcurl is running.
  Heartbeat();
  ~Heartbeat();

  // For the thread that drives the loop.

  // Whether there is a connection to look after.
  [[nodiscard]] bool watches() const { return !connections_.empty(); }
  // Around each call of libcurl while it watches. `fd`: the socket that libcurl is to handle; -1:
  // any.
  void enter(int fd);
  // Closes the connections that have received too much without progress. Returns false if it was
  // not entered.
  bool leave();
  // In libcurl's callbacks.
  void progress() { beats_.fetch_add(2, std::memory_order_relaxed); }
  // A connection may speak HTTP/2, until it is forgotten. To be called while libcurl is running.
  std::shared_ptr<Watched> watch(int fd);
  void forget(int fd);

 private:
  friend class Watchdog;
  struct Connection {
    int fd;
    std::shared_ptr<Watched> watched;
    // What the watchdog keeps:
    std::uint64_t beats = 0;  // at its last look
    std::uint64_t read = 0;   // what libcurl had read from it by then
    Duration reading{};       // CPU time between looks of which the second saw it read more
  };
  [[nodiscard]] bool entered() const { return beats_.load(std::memory_order_relaxed) % 2 == 1; }
  // Whether there was any progress since the last look.
  bool look();
  // There is none, since `cpu` of CPU time. Closes the connections from which libcurl has read for
  // too long all the same.
  void look_at_connections(Duration cpu);

  std::atomic<std::uint64_t> beats_ = 1;  // odd: libcurl is running
  std::atomic<int> fd_ = -1;
  std::atomic<clockid_t> clock_;  // the CPU time of the thread that drives the loop
  // Guards the next: the number of a closed socket may be another's at once. The thread that drives
  // the loop, the only one that adds and removes, reads without it.
  std::mutex mutex_;
  std::vector<Connection> connections_;

  // What the watchdog saw at its last look:
  std::uint64_t seen_ = 0;  // the beats
  Duration cpu_then_{};
};

}  // namespace httpretry
