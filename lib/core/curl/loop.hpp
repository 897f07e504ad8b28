// Loop: the scheduler that real calls run on. A few libcurl multi handles, one set of sockets, the
// timers and ready coroutines of RunQueue; one thread at a time drives it.
//
// A loop that carries one blocking call at a time lets libcurl poll its few sockets instead, which
// takes 2 000 instructions less for each request than a set of sockets. That needs a poller with a
// descriptor (Poller::kHasDescriptor).
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

// Initialises libcurl, once in a process, and never undoes it: a static object of the program may
// still send while it is destroyed. OpenSSL cleans up at the program's exit, after the destruction
// of all that was made after this call: so a Client begins with it.
void init_curl();
// Throws std::runtime_error where libcurl is older than we need.
void check_libcurl(const curl_version_info_data& about);

// What a loop has learned about an origin that it sends to.
struct OriginInfo {
  bool speaks_http2 = false;
  bool speaks_http1 = false;     // over TLS, where it might speak HTTP/2
  long keep_alive_seconds = -1;  // as the server last announced; -1: it did not
  Time addresses_until{};        // libcurl knows the host's addresses until then
};

class Loop final : public RunQueue, public Transport {
 public:
  enum class Load { OneCall, Many };
  Loop(std::shared_ptr<const TransportOptions> options, std::shared_ptr<Resolver> resolver,
       Load load);
  [[nodiscard]] Time now() const override { return now_.load(std::memory_order_relaxed); }
  [[nodiscard]] WallTime wall_now() const override { return std::chrono::system_clock::now(); }
  void run_until(const std::atomic<bool>& done) override;
  void read_clock() override {
    now_.store(std::chrono::steady_clock::now(), std::memory_order_relaxed);
  }

  // For a program that drives the loop (Load::Many). A turn is due when `descriptor` is readable,
  // and at `next_turn`, which each turn changes. `run_turn` does not wait.
  void run_turn();
  // -1 without Poller::kHasDescriptor.
  [[nodiscard]] int descriptor() const { return sockets.descriptor(); }
  [[nodiscard]] Time next_turn() const { return has_posted() ? now() : next_work(); }

  Task<Outcome> send(Request request, Call& call) override;

  [[nodiscard]] const TransportOptions& options() const { return *options_; }
  // Nothing could be reached there: looks for others, for the next attempt.
  void renew_addresses(const Url& url);
  // Returns an error if the host of the URL is an IP address of a version that the options exclude.
  [[nodiscard]] Result<void> check_ip_version(const Url& url) const;
  [[nodiscard]] const OriginInfo& origin(const Url& url) const;
  // To be changed.
  OriginInfo& edit_origin(const Url& url);

  // A handle for one exchange. One that is not `reusable` (it was aborted, or has rare options) is
  // destroyed when it is given back.
  std::unique_ptr<Easy> take_easy();
  void give_back(std::unique_ptr<Easy> easy, bool reusable);

  SocketSet sockets;

  // How many bytes of bodies may still be decoded in this turn of the loop: without a limit, a
  // small body that becomes huge would keep all other calls waiting, and also its own deadline.
  std::size_t decode_budget = 0;
  // The transfers that decode their rest in the next turns. The one whose turn is next comes first.
  std::vector<Transfer*> decoding;

  // About the connection with this local port. For libcurl's callbacks.
  // It may speak HTTP/2: has the watchdog look after it. nullptr where it cannot.
  std::shared_ptr<Heartbeat::Watched> watch_connection(int local_port);
  // It has turned out to speak HTTP/1, and need not be looked after.
  void found_http1(int local_port);
  // For libcurl's callbacks: libcurl makes progress.
  void progress(Heartbeat::Watched* connection) {
    if (!watches()) return;
    if (connection != nullptr) connection->progressed = true;
    heartbeat_->progress();
    progressed_ = true;
  }

  // Puts the transfer on a shard, unless libcurl refuses.
  CURLMcode start(Transfer& transfer, const SendPlan& plan);
  void remove(Transfer& transfer);

 private:
  [[nodiscard]] bool watches() const { return heartbeat_ && heartbeat_->watches(); }
  // For a host whose addresses libcurl does not know: looks them up first.
  Task<Outcome> resolve_and_send(Request request, Call& call);
  // `addresses`: for libcurl, where it does not know them. `fresh`: on a new connection.
  Task<Outcome> exchange(Request request, Call& call, const std::string* addresses, bool fresh);

  // Waits for more of the body of the request, which has paused.
  Task<> await_body(Transfer& transfer, const Call& call);

  void wake() noexcept override { sockets.wake(); }
  void work();
  void drive_shards();
  void wait_for_events();
  void take_events(int timeout);
  // When there is something to do, if nothing happens on a socket and nothing is posted.
  [[nodiscard]] Time next_work() const;
  // Has libcurl handle the events of the socket, or do what is due. It may run for as long as a
  // server sends.
  void drive(Shard& shard, curl_socket_t socket, int events);
  void plan_look(Shard& shard, bool by_time);
  void reap(Shard& shard, CURLMcode code);
  void fail_all(Shard& shard, CURLMcode code);
  void open(Shard& shard);
  Shard& shard_for(const SendPlan& plan);

  static int on_socket(CURL*, curl_socket_t socket, int what, void* shard, void*);
  static int on_timer(CURLM*, long timeout_ms, void* shard);
  static curl_socket_t on_open(void* easy, curlsocktype, curl_sockaddr* address);
  static int on_close(void* self, curl_socket_t socket);

  std::shared_ptr<const TransportOptions> options_;
  std::shared_ptr<Resolver> resolver_;
  Load load_;
  bool proxied_;
  bool looks_up_;                         // we connect to the host of the URL
  std::atomic<Time> now_{};               // other threads may read it
  std::unique_ptr<Heartbeat> heartbeat_;  // once a connection may speak HTTP/2
  bool progressed_ = false;  // while one may: libcurl has called us since it was last called
  std::unordered_map<std::string, OriginInfo, TextHash, std::equal_to<>> origins_;
  // In this order: a handle is freed before the multi handles, and both before the share.
  Owned<CURLSH, curl_share_cleanup> share_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<std::unique_ptr<Easy>> easies_;
};

}  // namespace httpretry
