#include "loop.hpp"

#include "resolver.hpp"
#include "transfer.hpp"
#include "url_parts.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

namespace httpretry {
namespace {

// libcurl's look-up of a connection is linear in the connections of a multi: 14 µs of CPU a request
// at 64 in flight, 17 at 256, 31 at 1 000, 75 at 4 000.
constexpr std::size_t kTransfersPerShard = 256;
// Above the transfers in flight, or connections would be closed and opened all the time.
constexpr long kConnectionsPerShard = 2 * static_cast<long>(kTransfersPerShard);
constexpr std::size_t kIdleEasies = 1024;
constexpr int kEventsPerTurn = 256;
constexpr std::size_t kOriginsKept = 4096;

[[noreturn]] void throw_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

void init_curl() {
  static const CURLcode result = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (result != CURLE_OK) throw std::runtime_error("libcurl could not be initialised");
}

Loop::Loop(std::shared_ptr<const TransportOptions> options, std::shared_ptr<Resolver> resolver,
           Load load)
    : options_(std::move(options)),
      resolver_(std::move(resolver)),
      load_(load),
      proxied_(may_use_proxy(options_->proxy)),
      looks_up_(!proxied_ && options_->unix_socket.empty() && options_->connect_to.empty()) {
  init_curl();
  read_clock();
  try {
    open_descriptors();
    share_ = curl_share_init();
    if (share_ == nullptr) throw std::bad_alloc();
  } catch (...) {
    release();
    throw;
  }
  // One thread at a time drives a loop, so the share needs no locks.
  curl_share_setopt(share_, CURLSHOPT_SHARE, CURL_LOCK_DATA_DNS);
  curl_share_setopt(share_, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
}

Loop::~Loop() {
  easies_.clear();
  shards_.clear();
  release();
}

void Loop::open_descriptors() {
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0) throw_errno("cannot make an epoll set");
  wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = wake_;
  if (wake_ < 0 || ::epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event) != 0) {
    throw_errno("cannot make an event descriptor");
  }
}

void Loop::release() {
  curl_share_cleanup(share_);
  if (wake_ >= 0) ::close(wake_);
  if (epoll_ >= 0) ::close(epoll_);
}

Time Loop::now() const { return now_; }
WallTime Loop::wall_now() const { return std::chrono::system_clock::now(); }

void Loop::run_until(const std::atomic<bool>& done) {
  const Driving driving(*this);
  read_clock();
  for (;;) {
    turn();
    drive_shards();
    if (done.load(std::memory_order_acquire)) return;
    wait_for_events();
  }
}

void Loop::drive_shards() {
  // By index: a callback of libcurl's may not add a shard, but a reader need not know that.
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    auto& shard = *shards_[i];
    if (load_ == Load::OneCall) {
      if (!shard.active.empty()) perform(shard);
    } else if (shard.deadline <= now_) {
      shard.deadline = kNever;
      socket_action(shard, CURL_SOCKET_TIMEOUT, 0);
    }
  }
}

void Loop::perform(Shard& shard) {
  int running = 0;
  const auto code = curl_multi_perform(shard.multi, &running);
  if (code != CURLM_OK) return fail_all(shard, code);
  reap(shard);
}

// Rounded up to the tick of epoll_wait: a timer must never fire early.
int Loop::timeout_ms() const {
  if (has_ready()) return 0;
  auto next = timers().next();
  for (const auto& shard : shards_) next = std::min(next, shard->deadline);
  if (next <= now_) return 0;
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(next - now_).count();
  return static_cast<int>(std::min<std::int64_t>(wait, 3'600'000));
}

void Loop::wait_for_events() {
  int timeout = timeout_ms();
  if (timeout != 0 && !prepare_to_block()) timeout = 0;
  if (load_ == Load::OneCall) {
    if (timeout == 0) return;  // each turn has libcurl look at its sockets
    const bool sends = !shards_.empty() && !shards_.front()->active.empty();
    if (sends) return poll(*shards_.front(), timeout);
  }
  std::array<epoll_event, kEventsPerTurn> events;  // NOLINT: epoll_wait fills it
  const int count = ::epoll_wait(epoll_, events.data(), kEventsPerTurn, timeout);
  unblocked();
  read_clock();
  for (int i = 0; i < count; ++i)
    on_event(events[static_cast<std::size_t>(i)].data.fd,
             events[static_cast<std::size_t>(i)].events);
}

// libcurl looks to its own timers.
void Loop::poll(Shard& shard, int timeout) {
  curl_waitfd wake{wake_, CURL_WAIT_POLLIN, 0};
  const auto code = curl_multi_poll(shard.multi, &wake, 1, timeout, nullptr);
  unblocked();
  read_clock();
  if (wake.revents != 0) quieten();
  if (code != CURLM_OK) fail_all(shard, code);
}

// The mail itself is what matters.
void Loop::quieten() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto size = ::read(wake_, &count, sizeof count);
}

void Loop::on_event(int fd, std::uint32_t events) {
  if (fd == wake_) return quieten();
  auto& socket = socket_of(fd);
  // Closed, or no longer wanted, since the kernel wrote the event.
  if (socket.shard == nullptr || socket.wanted == 0) return forget(fd, socket);
  int mask = 0;
  if ((events & EPOLLIN) != 0) mask |= CURL_CSELECT_IN;
  if ((events & EPOLLOUT) != 0) mask |= CURL_CSELECT_OUT;
  if ((events & (EPOLLERR | EPOLLHUP)) != 0) mask |= CURL_CSELECT_ERR;
  socket_action(*socket.shard, fd, mask);
}

void Loop::wake() noexcept {
  const std::uint64_t one = 1;
  // Interrupted or not; else it can only fail where the counter is full, and the loop is awake.
  while (::write(wake_, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void Loop::socket_action(Shard& shard, curl_socket_t socket, int events) {
  int running = 0;
  const auto code = curl_multi_socket_action(shard.multi, socket, events, &running);
  if (code != CURLM_OK) return fail_all(shard, code);
  reap(shard);
}

void Loop::reap(Shard& shard) {
  int left = 0;
  while (CURLMsg* message = curl_multi_info_read(shard.multi, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    Transfer* transfer = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
    remove(*transfer);  // `message` is gone with it
    transfer->finished(code);
  }
}

// After an error of the multi itself the state of its transfers is undefined: each ends with an
// error (what was sent is known), and the multi is made anew.
void Loop::fail_all(Shard& shard, CURLMcode code) {
  const auto lost = code == CURLM_OUT_OF_MEMORY ? CURLE_OUT_OF_MEMORY : CURLE_RECV_ERROR;
  while (!shard.active.empty()) {
    auto* transfer = shard.active.back();
    remove(*transfer);
    transfer->finished(lost);
  }
  curl_multi_cleanup(std::exchange(shard.multi, nullptr));
  shard.deadline = kNever;
}

void Loop::open(Shard& shard) {
  shard.multi = curl_multi_init();
  if (shard.multi == nullptr) throw std::bad_alloc();
  shard.deadline = kNever;
  curl_multi_setopt(shard.multi, CURLMOPT_MAXCONNECTS, kConnectionsPerShard);
  if (load_ == Load::OneCall) return;
  curl_multi_setopt(shard.multi, CURLMOPT_SOCKETFUNCTION, &on_socket);
  curl_multi_setopt(shard.multi, CURLMOPT_SOCKETDATA, &shard);
  curl_multi_setopt(shard.multi, CURLMOPT_TIMERFUNCTION, &on_timer);
  curl_multi_setopt(shard.multi, CURLMOPT_TIMERDATA, &shard);
}

// HTTP/2 shares one connection, which belongs to one multi; HTTP/1.1 needs a connection each. What
// one call sends at once is polled together.
Shard& Loop::shard_for(bool multiplexed) {
  const bool together = multiplexed || load_ == Load::OneCall;
  for (auto& shard : shards_) {
    if (together || shard->active.size() < kTransfersPerShard) return *shard;
  }
  auto fresh = std::make_unique<Shard>();
  fresh->loop = this;
  shards_.push_back(std::move(fresh));
  return *shards_.back();
}

// They are learnt again soon enough where there are too many to keep.
OriginFacts& Loop::facts(const std::string& origin) {
  if (origins_.size() >= kOriginsKept && !origins_.contains(origin)) origins_.clear();
  return origins_[origin];
}

bool Loop::needs_addresses(const Url& url) const {
  return url.parts().named && looks_up_ && known_facts(url.origin()).addresses_until <= now_;
}

void Loop::renew_addresses(const Url& url) {
  if (!looks_up_) return;
  facts(url.origin()).addresses_until = Time();
  resolver_->renew(url.host(), now_);
}

OriginFacts Loop::known_facts(const std::string& origin) const {
  const auto found = origins_.find(origin);
  return found == origins_.end() ? OriginFacts{} : found->second;
}

std::unique_ptr<Easy> Loop::take_easy() {
  if (easies_.empty()) {
    return std::make_unique<Easy>(*options_, share_, SocketHooks{&on_open, &on_close, this},
                                  proxied_);
  }
  auto easy = std::move(easies_.back());
  easies_.pop_back();
  return easy;
}

void Loop::give_back(std::unique_ptr<Easy> easy, bool sound) {
  if (sound && easies_.size() < kIdleEasies) easies_.push_back(std::move(easy));
}

const char* Loop::start(Transfer& transfer, bool multiplexed) {
  auto& shard = shard_for(multiplexed);
  if (shard.multi == nullptr) open(shard);
  if (shard.active.size() == shard.active.capacity()) {  // what is added must be in the list
    shard.active.reserve(2 * shard.active.size() + 1);
  }
  curl_easy_setopt(transfer.handle(), CURLOPT_PRIVATE, &transfer);
  const auto code = curl_multi_add_handle(shard.multi, transfer.handle());
  if (code != CURLM_OK) return curl_multi_strerror(code);
  transfer.shard = &shard;
  transfer.place = shard.active.size();
  shard.active.push_back(&transfer);
  return nullptr;
}

void Loop::remove(Transfer& transfer) {
  auto& shard = *transfer.shard;
  curl_multi_remove_handle(shard.multi, transfer.handle());
  shard.active[transfer.place] = shard.active.back();
  shard.active[transfer.place]->place = transfer.place;
  shard.active.pop_back();
}

// For libcurl's callbacks, which nothing may leave as an exception.
bool Loop::has_place(int fd) noexcept {
  const auto index = static_cast<std::size_t>(fd);
  try {
    if (index >= sockets_.size()) sockets_.resize(index + 1);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

Loop::Socket& Loop::socket_of(int fd) { return sockets_[static_cast<std::size_t>(fd)]; }

// Brings the kernel's set in line with what libcurl wants.
bool Loop::watch(int fd, Socket& socket) {
  epoll_event event{};
  event.events = socket.wanted;
  event.data.fd = fd;
  const int first = socket.registered == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  int result = ::epoll_ctl(epoll_, first, fd, &event);
  // The number may have been closed and used again without our hearing of it.
  if (result != 0 && errno == EEXIST) result = ::epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event);
  if (result != 0 && errno == ENOENT) result = ::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  socket.registered = result == 0 ? socket.wanted : 0;
  return result == 0;
}

void Loop::forget(int fd, Socket& socket) const {
  if (socket.registered != 0) ::epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
  socket.registered = 0;
}

// -1 ends all transfers of the multi: where the system has no memory to tell us of the socket, they
// would else wait for ever.
int Loop::on_socket(CURL* /*easy*/, curl_socket_t fd, int what, void* user, void* /*assigned*/) {
  auto& shard = *static_cast<Shard*>(user);
  auto& loop = *shard.loop;
  if (!loop.has_place(fd)) return -1;
  auto& socket = loop.socket_of(fd);
  socket.shard = &shard;
  socket.wanted = 0;
  if (what == CURL_POLL_REMOVE) {
    // libcurl's own sockets (of its resolver) are closed behind our back.
    if (!socket.ours) loop.forget(fd, socket);
    return 0;
  }
  if ((what & CURL_POLL_IN) != 0) socket.wanted |= EPOLLIN;
  if ((what & CURL_POLL_OUT) != 0) socket.wanted |= EPOLLOUT;
  if (socket.wanted == socket.registered) return 0;
  return loop.watch(fd, socket) ? 0 : -1;
}

int Loop::on_timer(CURLM* /*multi*/, long timeout, void* user) {
  auto& shard = *static_cast<Shard*>(user);
  shard.deadline = timeout < 0 ? kNever : shard.loop->now_ + std::chrono::milliseconds(timeout);
  return 0;
}

curl_socket_t Loop::on_open(void* self, curlsocktype /*purpose*/, curl_sockaddr* address) {
  const int fd = ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  auto& loop = *static_cast<Loop*>(self);
  loop.socket_error_ = fd < 0 ? errno : 0;
  if (fd >= 0 && !loop.has_place(fd)) {
    ::close(fd);
    loop.socket_error_ = ENOMEM;
    return CURL_SOCKET_BAD;
  }
  if (fd < 0) return CURL_SOCKET_BAD;
  auto& socket = loop.socket_of(fd);
  socket = Socket{};
  socket.ours = true;
  return fd;
}

int Loop::on_close(void* self, curl_socket_t fd) {
  static_cast<Loop*>(self)->socket_of(fd) = Socket{};
  return ::close(fd);
}

}  // namespace httpretry
