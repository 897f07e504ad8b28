#include "resolver.hpp"

#include "errors.hpp"

#include "lib/core/base/descriptor.hpp"
#include "lib/core/base/owned.hpp"
#include "lib/core/base/shortage.hpp"
#include "lib/core/base/signals.hpp"
#include "lib/core/base/text.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <unordered_map>

namespace httpretry {
namespace {

using namespace std::chrono_literals;

// getaddrinfo cannot be interrupted. A name server that does not answer blocks a thread for about
// 10 s; with four threads, other names can be looked up in that time.
constexpr std::size_t kMaxThreads = 4;
// getaddrinfo does not report how long an address is valid. Browsers also keep it for a minute.
constexpr Duration kFresh = 60s;
// Up to this age, addresses are still used while a new look-up runs or fails.
constexpr Duration kUsable = 6min;
// How soon `resolve` is called again while a new look-up runs.
constexpr Duration kSoon = 100ms;
// Old names are dropped at this number, and again whenever the number has doubled.
constexpr std::size_t kFewNames = 256;

Error resolve_error(std::string text) {
  return failure_of(CURLE_COULDNT_RESOLVE_HOST, std::move(text));
}

// Makes the error of a failed look-up. `code` is the result of getaddrinfo, and `cause` the errno
// that it left. The error is of the kind LocalShortage if this machine lacked memory or
// descriptors, Internal after any other failed system call, and otherwise Resolve.
Error lookup_error(const std::string& host, int code, int cause) {
  const auto why = " (" + std::string(::gai_strerror(code)) + ")";
  if (code == EAI_MEMORY || is_shortage(cause)) {
    return Error(Errc::LocalShortage, "cannot look up " + host + ": " +
                                          system_text(code == EAI_MEMORY ? ENOMEM : cause));
  }
  switch (code) {
    case EAI_NONAME:
#ifdef EAI_NODATA
    case EAI_NODATA:  // some systems do not define it
#endif
      return resolve_error("the host " + host + " does not exist, or has no address" + why);
    case EAI_AGAIN: return resolve_error("no name server could resolve " + host + why);
    case EAI_SYSTEM:  // this code means that the reason is in errno
      return Error(Errc::Internal, "cannot look up " + host + ": " + system_text(cause));
    default: return resolve_error("cannot look up " + host + why);
  }
}

// Calls the look-up function of the client's options, which the user may have written, and returns
// its addresses. Returns an error if the function returns an error or throws, if its list is empty,
// or if an element is not an IP address (libcurl would ignore such an element).
Result<Addresses> call_lookup(const Lookup& lookup, const std::string& host) {
  try {
    auto addresses = lookup(host);
    if (!addresses) return addresses;
    if (addresses->empty()) return resolve_error("the host " + host + " has no address");
    for (const auto& address : *addresses) {
      if (is_numeric(address)) continue;
      return resolve_error("the lookup of " + host + " gave \"" + address +
                           "\": expected an IPv4 or IPv6 address");
    }
    return addresses;
  } catch (const std::bad_alloc&) {
    return Error(Errc::LocalShortage, "out of memory");
  } catch (...) {
    return resolve_error("the lookup of " + host + " threw: " + text_of(std::current_exception()));
  }
}

// Returns whether this machine can reach others with IPv4. Sends nothing, because UDP connects
// without a packet.
bool has_ipv4() {
  const Descriptor udp(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in other_machine{};
  other_machine.sin_family = AF_INET;
  other_machine.sin_port = htons(9);                  // any port
  other_machine.sin_addr.s_addr = htonl(0xC0000201);  // 192.0.2.1, an address for documentation
  return udp.is_open() && ::connect(udp.get(), reinterpret_cast<const sockaddr*>(&other_machine),
                                    sizeof other_machine) == 0;
}

}  // namespace

bool is_numeric(const std::string& address) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return ::inet_pton(AF_INET, address.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, address.c_str(), bytes.data()) == 1;
}

// Returns the addresses of a host as texts such as "192.0.2.1" and "2001:db8::1", in the order of
// getaddrinfo and without duplicates. Blocks until the name server responds. Returns an error if
// the look-up fails.
Result<Addresses> system_lookup(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;      // IPv4 and IPv6
  hints.ai_socktype = SOCK_STREAM;  // otherwise each address is listed once per type of socket
  // AI_ADDRCONFIG leaves out the addresses of an IP version that this machine cannot use. Without
  // IPv4, it would also leave out 127.0.0.1, which works on every machine. So it is not set then.
  hints.ai_flags = has_ipv4() ? AI_ADDRCONFIG : 0;
  addrinfo* list = nullptr;
  errno = 0;  // getaddrinfo need not set it, and lookup_error must not see an old value
  const int code = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
  if (code != 0) return lookup_error(host, code, errno);
  const Owned<addrinfo, ::freeaddrinfo> owned(list);
  Addresses addresses;
  for (const auto* ai = list; ai != nullptr; ai = ai->ai_next) {
    std::array<char, NI_MAXHOST> text{};
    // getnameinfo cannot fail here: with NI_NUMERICHOST it looks nothing up, and the text fits.
    ::getnameinfo(ai->ai_addr, ai->ai_addrlen, text.data(), NI_MAXHOST, nullptr, 0, NI_NUMERICHOST);
    // Cuts a link-local address, "fe80::1%eth0", to "fe80::1", as CURLOPT_RESOLVE requires.
    const std::string address(text.data(), std::strcspn(text.data(), "%"));
    if (std::ranges::find(addresses, address) == addresses.end()) addresses.push_back(address);
  }
  return addresses;
}

// One look-up of a name. The event happens when the result is known. Each call that waits for it
// has a shared_ptr.
struct Resolver::NameLookup final : detail::Event {
  NameLookup(std::string host_, Time now) : host(std::move(host_)), requested_at(now) {}

  const std::string host;
  const Time requested_at;
  // Needed even if no call waits for it, because later calls use the result. Guarded by the mutex
  // of State.
  bool for_later_calls = false;
  // Set before the event happens; nullopt if the look-up was not started.
  std::optional<Result<Addresses>> result;
};

// All functions are called with the mutex held.
struct Resolver::State : std::enable_shared_from_this<State> {
  struct Entry {
    std::shared_ptr<NameLookup> last_success;
    std::shared_ptr<NameLookup> pending;  // the look-up that is queued or running
  };

  // Returns the look-up that is queued or running, or queues a new one.
  std::shared_ptr<NameLookup> request_lookup(const std::string& host, Time now) {
    auto& entry = entries[host];
    if (entry.pending) return entry.pending;
    auto name_lookup = std::make_shared<NameLookup>(host, now);
    queue.push_back(name_lookup);
    entry.pending = name_lookup;
    if (threads < kMaxThreads) start_thread();
    return name_lookup;
  }

  // Starts a thread that looks up the names in the queue. If that fails and no other thread is
  // running, ends the newest look-up with an error, because it would never be carried out.
  void start_thread() {
    try {
      std::thread([self = shared_from_this()] {
        block_signals();
        std::unique_lock lock(self->mutex);  // waits until the caller releases it
        self->run_queue(lock);
      }).detach();
      ++threads;
    } catch (const std::exception& cause) {  // no thread could be started, or memory was lacking
      if (threads > 0) return;               // a running thread will look up the name
      const auto name_lookup = queue.back();
      queue.pop_back();
      end_lookup(*name_lookup,
                 Error(Errc::LocalShortage, "cannot start a thread to look up " +
                                                name_lookup->host + ": " + cause.what()));
    }
  }

  // The function of each look-up thread. Looks up the queued names, one after another, until the
  // queue is empty. Then the thread ends instead of waiting for more, because a name is looked up
  // again after a minute at the earliest. `lock` holds the mutex, except during a look-up.
  void run_queue(std::unique_lock<std::mutex>& lock) {
    while (!queue.empty()) {
      const auto name_lookup = std::move(queue.front());
      queue.pop_front();
      // Each call that waits for the look-up has a pointer to it. Two more are `name_lookup` and
      // the one in `entries`. If no call waits, the look-up is skipped, unless later calls need the
      // result.
      const bool is_awaited = name_lookup.use_count() > 2;
      if (!is_awaited && !name_lookup->for_later_calls) {
        end_lookup(*name_lookup, /*result=*/std::nullopt);
        continue;
      }
      lock.unlock();
      auto addresses = call_lookup(lookup, name_lookup->host);
      lock.lock();
      // The entry exists, because its look-up is still pending. After a failure, the entry keeps
      // the old addresses.
      if (addresses) entries.find(name_lookup->host)->second.last_success = name_lookup;
      end_lookup(*name_lookup, std::move(addresses));
    }
    --threads;
  }

  // Resumes the calls that wait for the look-up. `result` is nullopt if it was not started.
  void end_lookup(NameLookup& name_lookup, std::optional<Result<Addresses>> result) {
    const auto entry = entries.find(name_lookup.host);
    entry->second.pending.reset();
    if (!entry->second.last_success) entries.erase(entry);
    name_lookup.result = std::move(result);
    name_lookup.happen();
  }

  // Drops the names whose addresses are too old to be used, if there are many names.
  void drop_old(Time now) {
    if (entries.size() < drop_at) return;
    std::erase_if(entries, [now](const auto& name_and_entry) {
      const auto& [last_success, pending] = name_and_entry.second;
      return !pending && last_success && now - last_success->requested_at >= kUsable;
    });
    drop_at = std::max(kFewNames, 2 * entries.size());
  }

  Lookup lookup = &system_lookup;
  bool may_block = true;
  std::mutex mutex;  // guards the rest
  std::deque<std::shared_ptr<NameLookup>> queue;
  std::unordered_map<std::string, Entry> entries;  // by name
  std::size_t drop_at = kFewNames;  // the number of entries at which `drop_old` drops some
  std::size_t threads = 0;          // running
};

Resolver::Resolver(Lookup lookup, bool may_block) : state_(std::make_shared<State>()) {
  if (lookup) state_->lookup = std::move(lookup);
  state_->may_block = may_block;
}

Resolver::~Resolver() {
  const std::lock_guard lock(state_->mutex);
  state_->queue.clear();
}

// Returns the addresses of a host, and the time at which the caller must ask again. Known addresses
// are returned at once if they are fresh (up to a minute old), or, while a new look-up runs, if
// they are still usable (up to six minutes). Otherwise waits for a look-up. Returns an error if
// that fails or does not end before `deadline`, or if `stop` is requested.
Task<Resolver::Resolved> Resolver::resolve(std::string host, Scheduler& scheduler, Time deadline,
                                           std::stop_token stop) {
  const auto now = scheduler.now();
  // A look-up that does not block runs right here, without a thread.
  if (!state_->may_block) co_return Resolved(call_lookup(state_->lookup, host), now + kFresh);
  std::shared_ptr<NameLookup> lookup;
  {
    const std::lock_guard lock(state_->mutex);
    state_->drop_old(now);
    const auto& entry = state_->entries[host];  // an empty one if the host is new
    const auto known = entry.last_success;
    const auto age = known ? Duration(now - known->requested_at) : kForever;
    const bool pending = entry.pending != nullptr;
    // A look-up may be pending although the addresses are fresh: `renew` requests one if none of
    // them could be reached.
    if (age < kFresh && !pending) co_return Resolved(*known->result, known->requested_at + kFresh);
    lookup = state_->request_lookup(host, now);  // the pending look-up, or a new one
    if (age < kUsable) {
      // This call does not wait, and a look-up that no call waits for would be skipped.
      if (!pending) lookup->for_later_calls = true;
      co_return Resolved(*known->result, now + kSoon);
    }
  }
  if (!lookup->happened()) {
    const bool not_stopped = co_await lookup->wait(scheduler, deadline, std::move(stop));
    if (!lookup->happened()) {  // stopped, or the deadline has passed
      co_return Resolved(detail::wait_ended(!not_stopped, "the address of " + host), now);
    }
  }
  // `result` is set, because a look-up that a call waits for is never skipped.
  co_return Resolved(*lookup->result, now + kFresh);
}

void Resolver::renew(const std::string& host, Time now) {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->entries.find(host);
  if (found == state_->entries.end()) return;
  const auto& [last_success, pending] = found->second;
  if (pending || !last_success || now - last_success->requested_at < kSoon) return;
  state_->request_lookup(host, now)->for_later_calls = true;
}

}  // namespace httpretry
