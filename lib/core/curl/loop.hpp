#pragma once

#include "easy.hpp"
#include "shard.hpp"
#include "socket_set.hpp"
#include "watchdog.hpp"

#include "lib/core/base/text.hpp"
#include "lib/core/flow/detail/run_queue.hpp"

#include <httpretry/chain/transport.hpp>

#include <atomic>
#include <unordered_map>

namespace httpretry {

class Loop;
class Resolver;
class Transfer;

// Initializes libcurl once per process and never cleans it up, because a static object may still
// send while it is destroyed. OpenSSL cleans up when the program exits, after the destruction of
// every static object that was created after this call. So each Client calls it first.
void init_curl();
// Throws std::runtime_error if libcurl is older than 7.88.
void check_libcurl(const curl_version_info_data& about);

// The properties of an origin that a loop has sent to.
struct OriginInfo {
  bool speaks_http2 = false;
  bool speaks_http1 = false;            // over TLS, although HTTP/2 was offered
  long keep_alive_seconds = -1;         // as the server last announced; -1: not announced
  bool refuses_encoded_bodies = false;  // a 415, but not for the same body unencoded
  Time addresses_until{};               // until then, libcurl has the host's addresses in its cache
};

// Loop runs calls on one thread, and sends their requests with libcurl: it is both the Scheduler
// and the Transport of a client's calls. It has a few libcurl multi handles (Shard), one set of
// sockets, and the timers and ready coroutines of RunQueue. One thread at a time drives it. Other
// threads may call only what RunQueue allows them, and `now`, `wall_now` and `options`.
class Loop final : public RunQueue, public Transport {
 public:
  // How many calls run on the loop:
  // * OneCall: one blocking call at a time, whose thread drives the loop with `run_until`. The loop
  //   lets libcurl poll the few sockets of the call, which takes 2 000 instructions less per
  //   request than a set of sockets. That needs a poller with a descriptor
  //   (Poller::kHasDescriptor).
  // * Many: any number of calls, on a background thread or in the program's own event loop.
  enum class Load { OneCall, Many };
  Loop(std::shared_ptr<const TransportOptions> options, std::shared_ptr<Resolver> resolver,
       Load load);
  [[nodiscard]] Time now() const override { return now_.load(std::memory_order_relaxed); }
  [[nodiscard]] WallTime wall_now() const override { return std::chrono::system_clock::now(); }
  void run_until(const std::atomic<bool>& done) override;
  void read_clock() override {
    now_.store(std::chrono::steady_clock::now(), std::memory_order_relaxed);
  }

  // Runs one turn, and does not block. For an EventLoop (Load::Many), which calls it when
  // `descriptor` is readable, and at the time `next_turn`.
  void run_turn();
  // Returns a descriptor that becomes readable when a socket has an event or another thread has
  // posted work. Returns -1 in a build whose poller has none (Poller::kHasDescriptor is false).
  [[nodiscard]] int descriptor() const { return sockets.descriptor(); }
  // Returns when the next turn is due even if the descriptor is not readable. Each turn changes it.
  [[nodiscard]] Time next_turn() const { return has_posted() ? now() : next_work(); }

  Task<Outcome> send(Request request, Call& call) override;

  [[nodiscard]] const TransportOptions& options() const { return *options_; }
  // Looks up the host again, for the next attempt, because no known address could be reached.
  void renew_addresses(const Url& url);
  // Returns an error if the host of the URL is an IP address of a version that the options exclude.
  [[nodiscard]] Result<void> check_ip_version(const Url& url) const;
  // Returns what is known about the origin of the URL. The defaults if the loop has not sent to it.
  [[nodiscard]] const OriginInfo& origin(const Url& url) const;
  // Returns the entry of the URL's origin, to be changed. Adds an entry if the origin has none.
  OriginInfo& edit_origin(const Url& url);

  // Returns a handle for one exchange.
  std::unique_ptr<Easy> acquire_easy();
  // Takes a handle back after its exchange. Keeps it for another exchange if it is `reusable`,
  // otherwise destroys it. It is not reusable after a failure, or with options that are rarely used
  // and that are not reset.
  void return_easy(std::unique_ptr<Easy> easy, bool reusable);

  SocketSet sockets;

  // How many bytes of bodies may still be decoded in this turn. Each turn begins with 256 KiB.
  // Without a limit, a small body that decodes to a huge one would hold up all other calls and its
  // own deadline.
  std::size_t decode_budget = 0;
  // The transfers that still have received bytes to decode, in the order in which they do so.
  std::vector<Transfer*> decoding;

  // These two are called from libcurl's callbacks, for the connection with this local port.
  // Has the watchdog watch a connection that may speak HTTP/2. Returns nullptr if that is
  // impossible.
  std::shared_ptr<Heartbeat::Watched> watch_connection(int local_port);
  // Reports that the connection speaks HTTP/1 and need not be watched.
  void found_http1(int local_port);
  // Called from libcurl's callbacks: libcurl makes progress.
  void progress(Heartbeat::Watched* connection) {
    if (!is_watching()) return;
    if (connection != nullptr) connection->progressed = true;
    heartbeat_->progress();
    had_callback_ = true;
  }

  // Adds the transfer to a shard. Returns libcurl's error if it refuses.
  CURLMcode start(Transfer& transfer, const SendPlan& plan);
  void remove(Transfer& transfer);

 private:
  [[nodiscard]] std::size_t easies_in_use() const;
  void free_unused_easies();
  [[nodiscard]] bool is_watching() const { return heartbeat_ && heartbeat_->is_watching(); }
  // Sends the body as RequestOptions::compress_with requests, or as it is after a 415.
  Task<Outcome> send_encoded(Request request, Call& call);
  // Looks up a host whose addresses libcurl does not know, and then sends.
  Task<Outcome> resolve_and_send(Request request, Call& call);
  // `addresses` are for libcurl; nullptr if it knows them.
  Task<Outcome> exchange(Request request, Call& call, const std::string* addresses, Pooling pool);

  // Waits for more of the request's body, which has paused.
  Task<> await_body(Transfer& transfer, const Call& call);

  void wake() noexcept override { sockets.wake(); }
  void work();
  void drive_shards();
  void wait_for_events();
  void poll_with_libcurl(Shard& polled, int timeout);
  void take_events(int timeout = 0);  // in milliseconds
  // Returns when the loop has work even if no socket has an event and nothing is posted.
  [[nodiscard]] Time next_work() const;
  // Has libcurl handle the socket's events, or do what is due if `socket` is CURL_SOCKET_TIMEOUT.
  // This may take as long as a server keeps sending.
  void drive(Shard& shard, curl_socket_t socket, int events = 0);
  // Why libcurl was called. Other: for a socket, or to continue a transfer.
  enum class Reason : std::uint8_t { Timer, Other };
  void schedule_call(Shard& shard, Reason last_call);
  void collect_finished(Shard& shard, CURLMcode code);
  void fail_all(Shard& shard, CURLMcode code);
  void create_multi_handle(Shard& shard);
  Shard& shard_for(const SendPlan& plan);

  static int on_socket(CURL*, curl_socket_t socket, int what, void* shard, void*);
  static int on_timer(CURLM*, long timeout_ms, void* shard);
  static curl_socket_t on_open(void* easy, curlsocktype, curl_sockaddr* address);
  static int on_close(void* self, curl_socket_t socket);

  std::shared_ptr<const TransportOptions> options_;
  std::shared_ptr<Resolver> resolver_;
  Load load_;
  bool may_use_proxy_;
  bool looks_up_;  // the library connects to the URL's host itself, so it must look up the name
  std::atomic<Time> now_{};               // atomic because other threads may read it
  std::unique_ptr<Heartbeat> heartbeat_;  // created when a connection may speak HTTP/2
  bool had_callback_ = false;             // a callback has come since libcurl was last driven
  std::unordered_map<std::string, OriginInfo, TextHash, std::equal_to<>> origins_;
  // The order matters: handles are freed before the multi handles, and both before the share.
  Owned<CURLSH, curl_share_cleanup> share_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<std::unique_ptr<Easy>> easies_;  // the idle ones
  std::size_t most_in_use_ = 0;                // since the last `free_unused_easies`
  Time free_easies_at_ = kNever;
};

}  // namespace httpretry
