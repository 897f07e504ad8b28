#include "loop.hpp"

#include "resolver.hpp"
#include "transfer.hpp"

#include "lib/core/base/shortage.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <stdexcept>
#include <system_error>

namespace httpretry {
namespace {

// To find a connection, libcurl searches all connections of a multi handle: 14 µs of CPU per
// request at 64 in flight, 17 at 256, 31 at 1 000, 75 at 4 000.
constexpr std::size_t kTransfersPerShard = 256;
// More than the transfers in flight; otherwise connections would be closed and opened all the time.
constexpr long kConnectionsPerShard = 2 * static_cast<long>(kTransfersPerShard);
// Decoding this much takes about a millisecond.
constexpr std::size_t kDecodedPerTurn = std::size_t{256} << 10;
// How soon to call libcurl 7.88 if it may have moved on to another address of a host.
constexpr Duration kSoon = std::chrono::milliseconds(5);

[[noreturn]] void throw_refusal(const char* why) {
  throw std::runtime_error("libcurl refuses an option of its share or multi interface: " +
                           std::string(why));
}

// Returns the number of connections above which libcurl closes an idle one. Otherwise idle
// connections to some hosts could take the last descriptors and leave none for other hosts.
long max_connections() {
  constexpr rlim_t kOtherDescriptors = 32;
  rlimit files{RLIM_INFINITY, RLIM_INFINITY};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const auto most = std::max(files.rlim_cur, kOtherDescriptors + 1) - kOtherDescriptors;
  return static_cast<long>(std::min(most, static_cast<rlim_t>(kConnectionsPerShard)));
}

}  // namespace

void check_libcurl(const curl_version_info_data& about) {
  if (about.version_num >= CURL_VERSION_BITS(7, 88, 0)) return;
  throw std::runtime_error("httpretry needs libcurl 7.88 or later; this program runs with " +
                           std::string(about.version) + ", and was built with " LIBCURL_VERSION);
}

void init_curl() {
  static const CURLcode result = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (result != CURLE_OK) throw std::runtime_error("libcurl could not be initialized");
  check_libcurl(libcurl());
}

Loop::Loop(std::shared_ptr<const TransportOptions> options, std::shared_ptr<Resolver> resolver,
           Load load)
    : options_(std::move(options)),
      resolver_(std::move(resolver)),
      load_(load),
      may_use_proxy_(may_use_proxy(options_->proxy)),
      looks_up_(!may_use_proxy_ && options_->unix_socket.empty() && options_->connect_to.empty()) {
  init_curl();
  read_clock();
  share_.reset(curl_share_init());
  if (!share_) throw std::bad_alloc();
  // One thread at a time drives a loop, so the share needs no locks.
  for (const auto what : {CURL_LOCK_DATA_DNS, CURL_LOCK_DATA_SSL_SESSION}) {
    const auto code = curl_share_setopt(share_.get(), CURLSHOPT_SHARE, what);
    if (code == CURLSHE_NOMEM) throw std::bad_alloc();
    if (code != CURLSHE_OK) throw_refusal(curl_share_strerror(code));
  }
}

void Loop::run_until(const std::atomic<bool>& done) {
  const Driving driving(*this);
  read_clock();
  for (;;) {
    work();
    if (done.load(std::memory_order_acquire)) return;
    wait_for_events();
  }
}

void Loop::run_turn() {
  const Driving driving(*this);
  take_events();
  work();
  prepare_to_block();  // if it must not block, `next_turn` returns the current time
}

// Runs one iteration of the loop, except for the wait for events: posted work, timers, ready
// coroutines, libcurl, and the decoding of bodies.
void Loop::work() {
  decode_budget = kDecodedPerTurn;
  turn();
  drive_shards();
  if (free_easies_at_ <= now()) free_unused_easies();
  // Round robin, so that no transfer waits for the end of another.
  for (auto left = decoding.size(); left > 0 && decode_budget > 0; --left) {
    auto* transfer = decoding.front();
    std::rotate(decoding.begin(), decoding.begin() + 1, decoding.end());
    transfer->decode_rest();
  }
}

// Calls libcurl for each shard (a multi handle with its transfers) that has something due: a timer
// of libcurl (`deadline`), or one of three kinds of work for which libcurl 7.88 sets no timer. If
// libcurl polls the sockets of a shard itself (`polled`), the shard is called in each iteration in
// which it has transfers, because only libcurl knows what happened to these sockets.
void Loop::drive_shards() {
  // By index, because a callback may add a shard, which would invalidate iterators.
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    auto& shard = *shards_[i];
    // A transfer whose connection failed may have to try the next address of its host.
    const bool connecting_due = shard.call_connecting_at <= now();
    if (connecting_due) shard.call_connecting_at = kNever;
    // libcurl may have read the rest of one response while it ran another transfer.
    if (shard.call_waiting_at <= now()) shard.run_waiting(now());
    // Uploads were paused because they made libcurl spin. They may be able to continue.
    if (shard.release_at <= now()) shard.release_uploads();
    // Read before run_connecting, which sets the deadline to now if it runs a transfer, although no
    // timer was due. `must_call` is then true as well.
    const auto reason = shard.deadline <= now() ? Reason::Timer : Reason::Other;
    // The call of a polled shard, below, runs all of its transfers anyway.
    if (connecting_due && !shard.polled) shard.run_connecting();
    const bool must_call = shard.polled ? !shard.active.empty() : shard.deadline <= now();
    if (must_call) {
      shard.deadline = kNever;  // libcurl sets the next one
      drive(shard, CURL_SOCKET_TIMEOUT);
    }
    // Sets the next call_connecting_at, or clears it if no transfer of the shard is connecting. The
    // next call comes sooner after a timer, which may have ended the attempt to connect to an
    // address.
    if (must_call || shard.polled) schedule_call(shard, reason);
  }
}

// Sets when libcurl must be called again for the transfers that are connecting. If an address
// refuses the connection or does not answer in time, libcurl 7.88 closes its socket, but opens the
// socket for the next address only when it is called again, and sets no timer for that. When it was
// called for a timer, it may have closed a socket without a callback.
void Loop::schedule_call(Shard& shard, Reason last_call) {
  const bool socket_lost = std::exchange(sockets.lost, false);
  if (shard.connecting == 0) {
    shard.call_connecting_at = kNever;
  } else if (socket_lost) {
    shard.call_connecting_at = now();
  } else if (last_call == Reason::Timer) {
    shard.call_connecting_at = std::min(shard.call_connecting_at, now() + kSoon);
  }
}

// Returns when the loop has something to do even without an event or a post; now() if it has
// already.
Time Loop::next_work() const {
  if (has_ready()) return now();
  if (!std::ranges::all_of(decoding, &Transfer::waits_for_sink)) return now();
  auto next = std::min(timers().next(), free_easies_at_);
  for (const auto& shard : shards_)
    next = std::min({next, shard->deadline, shard->call_connecting_at, shard->call_waiting_at,
                     shard->release_at});
  return next;
}

// Blocks until a socket has an event, another thread posts work or the loop's next work is due, but
// for an hour at most. Then has libcurl handle the events, or leaves that to the next iteration for
// the sockets that libcurl polls itself.
void Loop::wait_for_events() {
  // In milliseconds, as pollers count, and rounded up, because a timer must never fire early. The
  // limit of an hour makes even the time until kNever fit into an int.
  const auto begin = now();
  const auto next = std::max(next_work(), begin);  // a timer may be as early as Time::min()
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(next - begin).count();
  int timeout = static_cast<int>(std::clamp<std::int64_t>(wait, 0, 3'600'000));
  // If work was posted in the meantime, the loop must not block.
  if (timeout != 0 && !prepare_to_block()) timeout = 0;
  Shard* polled = nullptr;  // the shard that libcurl polls, if it has transfers; there is only one
  Shard* not_polled = nullptr;  // any other shard that has transfers
  for (const auto& shard : shards_) {
    if (!shard->active.empty()) (shard->polled ? polled : not_polled) = shard.get();
  }
  // For a blocking call (OneCall), libcurl's only sockets in the loop's own set are those of shards
  // that libcurl does not poll. Without any, a look at the set would be a wasted system call.
  const bool set_is_unused = load_ == Load::OneCall && not_polled == nullptr;
  if (set_is_unused && timeout == 0) return read_clock();  // the functions below read it as well
  if (polled == nullptr || timeout == 0) return take_events(timeout);
  poll_with_libcurl(*polled, timeout);
}

// Waits up to `timeout` milliseconds, but not beyond libcurl's next timer, for events of the
// sockets that libcurl polls itself, of the loop's own sockets, and of posts. The next iteration
// lets libcurl handle the events on its sockets.
void Loop::poll_with_libcurl(Shard& polled, int timeout) {
  int ready = 0;
  curl_waitfd own_sockets{.fd = sockets.descriptor(), .events = CURL_WAIT_POLLIN, .revents = 0};
  const auto code = curl_multi_poll(polled.multi.get(), &own_sockets, 1, timeout, &ready);
  unblocked();
  read_clock();
  // Without an event, a timer of libcurl may have ended the wait.
  if (ready == 0 && polled.call_connecting_at > now()) schedule_call(polled, Reason::Timer);
  if (code != CURLM_OK) return fail_all(polled, code);
  polled.has_event = ready > 0;
  if (own_sockets.revents != 0) take_events();
}

// Waits up to `timeout` milliseconds for events of the set's sockets, and has libcurl handle them.
void Loop::take_events(int timeout) {
  const auto events = sockets.wait(timeout);
  unblocked();
  read_clock();
  for (const auto& event : events) {
    const int fd = Poller::descriptor_of(event);
    if (auto* shard = sockets.owner_of(fd)) {
      drive(*shard, fd, Poller::what_of(event));
      schedule_call(*shard, Reason::Other);
    }
  }
  if (!events.empty()) read_clock();
}

// Has libcurl handle the events of one socket (`events`: CURL_CSELECT_IN and so on), or its due
// timers if `socket` is CURL_SOCKET_TIMEOUT. Then handles the transfers that are finished. If a
// connection may speak HTTP/2 (`is_watching`), also notifies the watchdog thread before and after
// the call, because it may take long, and works around two faults of libcurl 7.88 with HTTP/2.
void Loop::drive(Shard& shard, curl_socket_t socket, int events) {
  auto* const multi = shard.multi.get();
  int running = 0;  // not used
  if (is_watching()) heartbeat_->enter(socket);
  // The sockets of a polled shard are known to libcurl alone, so it looks at all of them.
  const auto code = shard.polled ? curl_multi_perform(multi, &running)
                                 : curl_multi_socket_action(multi, socket, events, &running);
  // The call may have taken long. (`leave` returns false if there was no connection to watch.)
  if (heartbeat_ && heartbeat_->leave()) read_clock();
  collect_finished(shard, code);
  // libcurl may have received the rest of a response for a transfer that it has not run. So some
  // milliseconds later, the loop runs the transfers that are still waiting for data.
  const bool is_for_socket = socket != CURL_SOCKET_TIMEOUT;
  const bool may_have_received = std::exchange(had_callback_, false) || is_for_socket;
  if (may_have_received && is_watching() && !shard.active.empty()) {
    shard.call_waiting_at = std::min(shard.call_waiting_at, now() + Shard::kMaxSilence);
  }
  // While the server gives an upload no window, libcurl asks to be called at once, again and again,
  // with nothing to do. So such uploads are paused: `release_at` is when they continue. They
  // continue sooner after an event of the socket, because a window arrives as one.
  // For a polled shard, poll_with_libcurl notes such an event in `has_event`.
  const bool had_event = std::exchange(shard.has_event, false) || is_for_socket;
  if (shard.release_at != kNever && had_event) return shard.release_uploads();
  if (is_watching() && heartbeat_->may_spin()) shard.hold_uploads(now());
}

// Reports to each finished transfer that libcurl is done with it. `code` is the result of driving
// libcurl; if it is an error, all transfers of the shard end.
void Loop::collect_finished(Shard& shard, CURLMcode code) {
  if (code != CURLM_OK) return fail_all(shard, code);
  int messages_left = 0;  // not used
  while (CURLMsg* message = curl_multi_info_read(shard.multi.get(), &messages_left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode result = message->data.result;
    auto& transfer = *info<Easy*>(message->easy_handle, CURLINFO_PRIVATE)->transfer;
    remove(transfer);  // this invalidates `message`
    transfer.on_finished(result);
  }
  // By index from the end, because a confirmed transfer leaves the list.
  for (auto i = shard.unconfirmed.size(); i-- > 0;) shard.unconfirmed[i]->confirm_end();
}

// Ends all transfers of the shard with an error, because their state is undefined after an error of
// the multi handle. (What was sent is known.) `start` makes a new multi handle.
void Loop::fail_all(Shard& shard, CURLMcode code) {
  while (!shard.active.empty()) {
    auto* transfer = shard.active.back();
    remove(*transfer);
    transfer->on_multi_failed(code);
  }
  while (!shard.unconfirmed.empty()) shard.unconfirmed.back()->confirm_end();
  shard.multi.reset();
  shard.deadline = shard.release_at = kNever;
}

// Creates the multi handle of a shard, and connects it with the loop's sockets and timers, unless
// libcurl polls the sockets of this shard itself. Throws std::system_error or std::bad_alloc if
// descriptors or memory are lacking, and std::runtime_error if libcurl refuses an option.
void Loop::create_multi_handle(Shard& shard) {
  errno = 0;  // so that afterwards errno is 0 or tells why libcurl failed
  shard.multi.reset(curl_multi_init());
  if (!shard.multi) {
    // Newer versions of libcurl open a descriptor for a multi handle, so one may be lacking.
    if (is_shortage(errno))
      throw std::system_error(errno, std::generic_category(), "cannot make a multi handle");
    throw std::bad_alloc();  // errno gives no reason; probably memory
  }
  const auto set = [multi = shard.multi.get()](CURLMoption option, auto value) {
    const auto code = curl_multi_setopt(multi, option, value);
    if (code != CURLM_OK) throw_refusal(curl_multi_strerror(code));
  };
  set(CURLMOPT_MAXCONNECTS, max_connections());
  if (shard.polled) return;  // then libcurl calls neither of these callbacks
  set(CURLMOPT_SOCKETFUNCTION, &on_socket);
  set(CURLMOPT_SOCKETDATA, &shard);
  set(CURLMOPT_TIMERFUNCTION, &on_timer);
  set(CURLMOPT_TIMERDATA, &shard);
}

// Returns a shard with room for the transfer, or a new one. A shard has room for any number of
// HTTP/2 requests, because they share one connection, which belongs to one multi handle, and for
// all requests of a blocking call. A negotiation that may use HTTP/2 gets its own shard: in the
// second round, libcurl would take any connection that can carry it.
Shard& Loop::shard_for(const SendPlan& plan) {
  const bool always_has_room = !plan.negotiates && (plan.http2 || load_ == Load::OneCall);
  const auto max_transfers = plan.negotiates && plan.may_multiplex ? 1 : kTransfersPerShard;
  for (auto& shard : shards_) {
    if (shard->negotiates != plan.negotiates) continue;
    if (always_has_room || shard->active.size() < max_transfers) return *shard;
  }
  const bool polled = Poller::kHasDescriptor && load_ == Load::OneCall && !plan.negotiates;
  return *shards_.emplace_back(std::make_unique<Shard>(*this, plan.negotiates, polled));
}

// Adds the transfer to a shard. Returns libcurl's error if it refuses.
CURLMcode Loop::start(Transfer& transfer, const SendPlan& plan) {
  auto& shard = shard_for(plan);
  if (!shard.multi) create_multi_handle(shard);
  // The list must not allocate after libcurl has added the handle.
  if (shard.active.size() == shard.active.capacity()) {
    shard.active.reserve(2 * shard.active.size() + 1);
    shard.unconfirmed.reserve(shard.active.capacity());
  }
  const auto code = curl_multi_add_handle(shard.multi.get(), transfer.handle());
  if (code != CURLM_OK) return code;
  transfer.shard = &shard;
  shard.active.push_back(&transfer);
  ++shard.connecting;
  return CURLM_OK;
}

void Loop::remove(Transfer& transfer) {
  auto& shard = *transfer.shard;
  if (transfer.connecting()) --shard.connecting;
  curl_multi_remove_handle(shard.multi.get(), transfer.handle());
  *std::ranges::find(shard.active, &transfer) = shard.active.back();
  shard.active.pop_back();
}

// Returns -1 if the system has no memory to watch the socket. That makes libcurl end all transfers
// of the multi handle, which would otherwise wait forever.
int Loop::on_socket(CURL* /*easy*/, curl_socket_t fd, int what, void* user, void* /*assigned*/) {
  auto& shard = *static_cast<Shard*>(user);
  return shard.loop.sockets.want(fd, shard, what) ? 0 : -1;
}

int Loop::on_timer(CURLM* /*multi*/, long timeout, void* user) {
  auto& shard = *static_cast<Shard*>(user);
  shard.deadline = timeout < 0 ? kNever : shard.loop.now() + std::chrono::milliseconds(timeout);
  return 0;
}

curl_socket_t Loop::on_open(void* easy, curlsocktype /*purpose*/, curl_sockaddr* address) {
  return static_cast<Easy*>(easy)->transfer->open_socket(*address);
}

int Loop::on_close(void* self, curl_socket_t fd) {
  auto& loop = *static_cast<Loop*>(self);
  if (loop.heartbeat_) loop.heartbeat_->forget(fd);
  return loop.sockets.close(fd);
}

}  // namespace httpretry
