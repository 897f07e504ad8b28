#include "watchdog.hpp"

#include "lib/core/base/signals.hpp"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstddef>
#include <new>
#include <optional>
#include <thread>
#include <utility>

namespace httpretry {
namespace {

using namespace std::chrono_literals;

constexpr auto kCheckInterval = 25ms;
// The CPU time for which libcurl may read from a connection without a callback. While it receives a
// response with many headers or a large body, it calls us every few microseconds. CPU time, because
// the thread may have had to wait for a core.
constexpr Duration kMaxCpuTime = 50ms;
// A connection may receive this many bytes without a callback, counted after this many calls of
// libcurl. One PING frame per second reaches the limit after seventeen hours.
constexpr unsigned kSilentCalls = 256;
constexpr std::uint64_t kMaxSilentBytes = 1024 * 1024;
// After this many checks without progress of any loop, the watchdog sleeps until a loop wakes it.
constexpr int kMaxQuietChecks = 40;

Duration cpu_time(clockid_t clock) {
  timespec time{};
  if (::clock_gettime(clock, &time) != 0) return {};  // the thread has ended
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

clockid_t clock_of_this_thread() {
  clockid_t clock{};
  ::pthread_getcpuclockid(::pthread_self(), &clock);
  return clock;
}

// Returns nullopt if the socket is not one of TCP, or is closed.
std::optional<std::uint64_t> bytes_received(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
  return info.tcpi_bytes_received;
}

// Returns how many bytes of a TCP connection libcurl has read: the received ones less the unread
// ones. Returns nullopt if bytes arrived between the two system calls in every try, because the
// difference would be too small or even negative.
std::optional<std::uint64_t> bytes_read(int fd) {
  constexpr int kTries = 8;
  auto received = bytes_received(fd);
  for (int tries = 0; received && tries < kTries; ++tries) {
    int unread = 0;
    if (::ioctl(fd, FIONREAD, &unread) != 0) return std::nullopt;
    const auto before = std::exchange(received, bytes_received(fd));
    if (received == before) return *before - static_cast<std::uint64_t>(unread);
  }
  return std::nullopt;
}

// Resets the connection and drops what was received but not read, by connecting to an unspecified
// address. It is a plain system call, because ThreadSanitizer takes connect() for the creation of a
// new descriptor.
void reset_connection(int fd, Heartbeat::Watched& watched) {
  watched.closed = true;
  sockaddr unspecified{};
  unspecified.sa_family = AF_UNSPEC;
  ::syscall(SYS_connect, fd, &unspecified, sizeof unspecified);
}

}  // namespace

// The watchdog of the process. Its thread runs while there are loops to watch.
class Watchdog {
 public:
  // Returns the only watchdog, made at the first call.
  static Watchdog& instance() {
    // Never destroyed, because the thread may outlive static objects. A forked child does not have
    // the thread, which may have held the lock or waited at the moment of the fork. So the child
    // gets a new watchdog in place of the old one.
    static auto* const watchdog = [] {
      if (::pthread_atfork(nullptr, nullptr, [] { make(); }) != 0) throw std::bad_alloc();
      return make();
    }();
    return *watchdog;
  }

  void add(Heartbeat& loop) {
    const std::lock_guard lock(mutex_);
    if (!running_) std::thread(&Watchdog::run, this).detach();  // the thread waits for the lock
    running_ = true;
    loops_.push_back(&loop);
  }

  void remove(Heartbeat& loop) {
    const std::lock_guard lock(mutex_);
    std::erase(loops_, &loop);
    if (!loops_.empty()) return;
    loops_.shrink_to_fit();
    woken_.notify_one();
  }

  // Called when a loop makes progress.
  void wake() {
    if (!asleep_.load(std::memory_order_seq_cst)) return;
    const std::lock_guard lock(mutex_);  // once it is locked, the thread waits
    woken_.notify_one();
  }

 private:
  static Watchdog* make() {
    alignas(Watchdog) static std::array<std::byte, sizeof(Watchdog)> place;
    return new (place.data()) Watchdog;
  }

  // The function of the watchdog's thread. Checks all loops at intervals. If none has made progress
  // for kMaxQuietChecks checks, sleeps until one does. Ends when no loop is left.
  void run() {
    block_signals();
    std::unique_lock lock(mutex_);
    for (int quiet_checks = 0; !loops_.empty();) {
      quiet_checks = check_loops() ? 0 : quiet_checks + 1;
      asleep_ = quiet_checks >= kMaxQuietChecks;
      // A loop that made progress just before `asleep_` was set has not woken this thread, so this
      // checks once more. Progress found here delays the sleep until the next quiet check.
      if (asleep_ && check_loops()) asleep_ = false;
      if (asleep_) {
        woken_.wait(lock);
      } else {
        woken_.wait_for(lock, kCheckInterval);
      }
    }
    running_ = false;
  }

  // Returns whether any loop has made progress.
  bool check_loops() {
    bool progress = false;
    for (auto* loop : loops_) progress = loop->check() || progress;
    return progress;
  }

  std::mutex mutex_;  // guards the next two members
  std::vector<Heartbeat*> loops_;
  bool running_ = false;
  std::condition_variable woken_;
  std::atomic<bool> asleep_ = false;
};

Heartbeat::Heartbeat() : clock_(clock_of_this_thread()) { Watchdog::instance().add(*this); }
Heartbeat::~Heartbeat() { Watchdog::instance().remove(*this); }

void Heartbeat::enter(int fd) {
  fd_.store(fd, std::memory_order_relaxed);
  clock_.store(clock_of_this_thread(), std::memory_order_relaxed);
  beats_.fetch_add(1, std::memory_order_seq_cst);
  Watchdog::instance().wake();
}

// Called after each call of libcurl, for the connections that may speak HTTP/2. Resets those from
// which libcurl has read more than kMaxSilentBytes without calling us back for any of their
// transfers, because the server then sends frames that belong to no response. Sets `may_spin_` if
// libcurl was often called without any progress. Returns false if `enter` was not called, which
// means that there was no connection to watch.
bool Heartbeat::leave() {
  if (!entered()) return false;
  // `beats_` is even from here on, so the watchdog knows that libcurl is not running.
  beats_.fetch_add(1, std::memory_order_relaxed);
  const int handled_fd = fd_.load(std::memory_order_relaxed);
  may_spin_ = false;
  // The last three members of a connection are for the watchdog's thread.
  for (auto& [fd, watched, beats, read, reading] : connections_) {
    if (handled_fd != kAnySocket && handled_fd != fd) continue;  // libcurl did not handle this one
    // libcurl's callbacks set `progressed`. The data of a paused transfer brings no callback, so
    // such a connection counts as one with progress.
    if (std::exchange(watched->progressed, false) || watched->paused > 0) {
      watched->silent_calls = 0;
      watched->read_at_first_count.reset();
    }
    ++watched->silent_calls;  // a call with progress counts as the first one
    may_spin_ = may_spin_ || watched->may_spin();
    // Counts the bytes only at each kSilentCalls-th call, because that takes system calls.
    if (watched->silent_calls % kSilentCalls != 0) continue;
    const auto read_now = bytes_read(fd);
    if (!read_now) continue;  // unknown for now
    // The first count after progress is the reference for the later ones.
    if (!watched->read_at_first_count) watched->read_at_first_count = read_now;
    if (*read_now - *watched->read_at_first_count > kMaxSilentBytes) reset_connection(fd, *watched);
  }
  return true;
}

std::shared_ptr<Heartbeat::Watched> Heartbeat::watch(int fd) {
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find(connections_, fd, &Connection::fd);
  if (known != connections_.end()) return known->watched;
  auto watched = std::make_shared<Watched>();
  connections_.push_back({.fd = fd, .watched = watched});
  if (!entered()) enter(kAnySocket);  // there was nothing to watch when libcurl was called
  return watched;
}

void Heartbeat::forget(int fd) {
  const std::lock_guard lock(mutex_);
  std::erase_if(connections_, [fd](const Connection& some) { return some.fd == fd; });
}

// Returns whether the loop made progress since the last check or is inside libcurl.
bool Heartbeat::check() {
  const auto beats = beats_.load(std::memory_order_seq_cst);
  const bool in_curl = beats % 2 == 1;
  const bool progress = std::exchange(seen_beats_, beats) != beats;
  if (in_curl) {
    const auto cpu = cpu_time(clock_);
    const auto previous_cpu = std::exchange(seen_cpu_, cpu);
    if (!progress) check_connections(cpu - previous_cpu);
  }
  return in_curl || progress;
}

// Resets a connection from which libcurl has read for too long. libcurl may also be busy without a
// flood: it opens certificates or hashes a password, and then reads from the connection once. So
// the time between two checks counts only if libcurl has read in that time, and counts
// kCheckInterval at most, because a check may be late.
void Heartbeat::check_connections(Duration cpu) {
  const std::lock_guard lock(mutex_);
  const int handled_fd = fd_;
  for (auto& [fd, watched, beats, read, reading] : connections_) {
    if (handled_fd != kAnySocket && handled_fd != fd) continue;
    const auto read_now = bytes_read(fd).value_or(read);  // if unknown, as if unchanged
    // Whether this is the first check of the connection since the loop last made progress.
    const bool first_check = std::exchange(beats, seen_beats_) != seen_beats_;
    const bool read_more = std::exchange(read, read_now) != read_now;
    if (first_check) reading = {};
    if (first_check || !read_more) continue;
    reading += std::min<Duration>(cpu, kCheckInterval);
    if (reading > kMaxCpuTime) reset_connection(fd, *watched);
  }
}

}  // namespace httpretry
