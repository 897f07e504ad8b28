// Heartbeat: shows the watchdog, a thread of the process, that a loop makes progress.
//
// libcurl handles some HTTP/2 frames without calling us: empty DATA, GOAWAY, RST_STREAM. While a
// server keeps sending them, libcurl 7.88 does not return, and the loop serves neither its
// deadlines nor its other connections. So the watchdog closes such a connection from outside.
// libcurl 8 returns from time to time, so there the loop itself counts what the connection
// receives.
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
  // A connection that may speak HTTP/2. The transfers on it share this object.
  struct Watched {
    std::atomic<bool> closed = false;  // because of a flood

    // The rest belongs to the thread that drives the loop.
    // A callback for one of its transfers has come since the last call of libcurl.
    bool progressed = false;
    int paused = 0;             // paused transfers, whose data arrives without a callback
    unsigned silent_calls = 0;  // calls of libcurl since the last progress
    // Returns whether the loop may be calling libcurl again and again for an upload that the server
    // gives no window.
    [[nodiscard]] bool may_spin() const { return silent_calls >= kSpinningCalls; }
    // Bytes read at the first count after the last progress.
    std::optional<std::uint64_t> read_at_first_count;
  };

  // Starts the watchdog if it is not running. Must be created while libcurl is running.
  Heartbeat();
  ~Heartbeat();

  // The functions below are for the thread that drives the loop.

  // Returns whether `may_spin` is true for a connection that the last call of libcurl handled.
  [[nodiscard]] bool may_spin() const { return may_spin_; }
  // Returns whether there is a connection to watch.
  [[nodiscard]] bool is_watching() const { return !connections_.empty(); }
  // Must be called around each call of libcurl while there is a connection to watch. `fd` is the
  // socket that libcurl is to handle, or -1 for any.
  void enter(int fd);
  // Closes the connections that have received too much without progress. Returns false if `enter`
  // was not called.
  bool leave();
  // Called from libcurl's callbacks. Adds 2, so that `beats_` stays odd.
  void progress() { beats_.fetch_add(2, std::memory_order_relaxed); }
  // Watches a connection that may speak HTTP/2 until `forget`. Must be called while libcurl is
  // running.
  std::shared_ptr<Watched> watch(int fd);
  void forget(int fd);

 private:
  friend class Watchdog;
  struct Connection {
    int fd;
    std::shared_ptr<Watched> watched;
    // Used by the watchdog:
    std::uint64_t beats = 0;  // at its last check
    std::uint64_t read = 0;   // bytes that libcurl had read by then
    Duration reading{};       // CPU time between checks during which libcurl read more
  };
  [[nodiscard]] bool entered() const { return beats_.load(std::memory_order_relaxed) % 2 == 1; }
  // Called by the watchdog. Returns whether the loop made progress since the last check or is
  // inside libcurl.
  bool check();
  // Called if the loop made no progress for `cpu` of CPU time. Closes each connection from which
  // libcurl has read for too long nevertheless.
  void check_connections(Duration cpu);
  static constexpr int kAnySocket = -1;
  static constexpr unsigned kSpinningCalls = 16;

  std::atomic<std::uint64_t> beats_ = 1;  // odd while libcurl is running
  std::atomic<int> fd_ = -1;
  std::atomic<clockid_t> clock_;  // the CPU-time clock of the thread that drives the loop
  // Guards `connections_`, because the number of a closed socket may be reused immediately. Only
  // the thread that drives the loop adds and removes, so it reads without the mutex.
  std::mutex mutex_;
  std::vector<Connection> connections_;

  bool may_spin_ = false;  // what `may_spin` returns

  // The values at the watchdog's last check:
  std::uint64_t seen_beats_ = 0;
  Duration seen_cpu_{};
};

}  // namespace httpretry
