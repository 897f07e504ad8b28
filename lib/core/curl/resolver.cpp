#include "resolver.hpp"

#include "errors.hpp"

#include "lib/core/base/owned.hpp"
#include "lib/core/base/shortage.hpp"
#include "lib/core/base/signals.hpp"
#include "lib/core/base/text.hpp"

#include <arpa/inet.h>
#include <netdb.h>
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

// `code` is the result of getaddrinfo, `cause` its errno.
Error lookup_error(const std::string& host, int code, int cause) {
  const auto said = " (" + std::string(::gai_strerror(code)) + ")";
  if (code == EAI_MEMORY || is_shortage(cause)) {
    return Error(Errc::LocalShortage, "cannot look up " + host + ": " +
                                          system_text(code == EAI_MEMORY ? ENOMEM : cause));
  }
  switch (code) {
    case EAI_NONAME:
#ifdef EAI_NODATA
    case EAI_NODATA:
#endif
      return resolve_error("the host " + host + " does not exist, or has no address" + said);
    case EAI_AGAIN: return resolve_error("no name server could give the address of " + host + said);
    case EAI_SYSTEM:
      return Error(Errc::Internal, "cannot look up " + host + ": " + system_text(cause));
    default: return resolve_error("cannot look up " + host + said);
  }
}

// Calls the user's function and checks its result, because libcurl ignores text that is not an
// address.
Result<Addresses> call_lookup(const Lookup& lookup, const std::string& host) {
  try {
    auto found = lookup(host);
    if (!found) return found;
    if (found->empty()) return resolve_error("the host " + host + " has no address");
    for (const auto& address : *found) {
      if (is_numeric(address)) continue;
      return resolve_error("the look-up of " + host + " gave \"" + address +
                           "\": expected an IPv4 or IPv6 address");
    }
    return found;
  } catch (const std::bad_alloc&) {
    return Error(Errc::LocalShortage, "out of memory");
  } catch (...) {
    return resolve_error("the look-up of " + host + " threw: " + text_of(std::current_exception()));
  }
}

}  // namespace

bool is_numeric(const std::string& address) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return ::inet_pton(AF_INET, address.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, address.c_str(), bytes.data()) == 1;
}

Result<Addresses> system_lookup(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* list = nullptr;
  errno = 0;
  const int code = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
  if (code != 0) return lookup_error(host, code, errno);
  const Owned<addrinfo, ::freeaddrinfo> owned(list);
  Addresses found;
  for (const auto* each = list; each != nullptr; each = each->ai_next) {
    std::array<char, NI_MAXHOST> text{};
    ::getnameinfo(each->ai_addr, each->ai_addrlen, text.data(), NI_MAXHOST, nullptr, 0,
                  NI_NUMERICHOST);
    // Without the scope of a link-local address.
    const std::string address(text.data(), std::strcspn(text.data(), "%"));
    if (std::ranges::find(found, address) == found.end()) found.push_back(address);
  }
  return found;
}

// One look-up of a name. The event happens when the result is known. Each call that waits for it
// has a shared_ptr.
struct Resolver::Name final : detail::Event {
  Name(std::string host_, Time now) : host(std::move(host_)), asked_at(now) {}

  const std::string host;
  const Time asked_at;
  bool for_later = false;  // wanted even if no call waits for it; guarded by the mutex of State
  // Set before the event happens; nullopt if the look-up was not started.
  std::optional<Result<Addresses>> found;
};

// All functions are called with the mutex held.
struct Resolver::State : std::enable_shared_from_this<State> {
  struct Entry {
    std::shared_ptr<Name> known;  // the last successful look-up
    std::shared_ptr<Name> asked;  // the look-up that is queued or running
  };

  // Returns the look-up that is running, or a new one.
  std::shared_ptr<Name> ask(const std::string& host, Time now) {
    auto& entry = names[host];
    if (entry.asked) return entry.asked;
    auto name = std::make_shared<Name>(host, now);
    queue.push_back(name);
    entry.asked = name;
    if (threads < kMaxThreads) start_thread();
    return name;
  }

  void start_thread() {
    try {
      std::thread([self = shared_from_this()] {
        block_signals();
        std::unique_lock lock(self->mutex);
        self->work(lock);
      }).detach();
      ++threads;
    } catch (const std::exception& cause) {  // no thread could be started, or memory was lacking
      if (threads > 0) return;               // a running thread will look up the name
      const auto name = queue.back();
      queue.pop_back();
      end_lookup(*name, Error(Errc::LocalShortage, "cannot start a thread to look up " +
                                                       name->host + ": " + cause.what()));
    }
  }

  // Looks up the queued names, then ends the thread, because a name is looked up again after a
  // minute at the earliest.
  void work(std::unique_lock<std::mutex>& lock) {
    while (!queue.empty()) {
      const auto name = std::move(queue.front());
      queue.pop_front();
      const bool call_waits = name.use_count() > 2;  // only this function and `names` hold it
      if (!call_waits && !name->for_later) {
        end_lookup(*name, std::nullopt);
        continue;
      }
      lock.unlock();
      auto found = call_lookup(lookup, name->host);
      lock.lock();
      // After a failure the old addresses remain.
      if (found) names.find(name->host)->second.known = name;
      end_lookup(*name, std::move(found));
    }
    --threads;
  }

  void end_lookup(Name& name, std::optional<Result<Addresses>> found) {
    const auto at = names.find(name.host);
    at->second.asked.reset();
    if (!at->second.known) names.erase(at);
    name.found = std::move(found);
    name.happen();
  }

  void forget_old(Time now) {
    if (names.size() < forget_at) return;
    std::erase_if(names, [now](const auto& each) {
      const auto& entry = each.second;
      return !entry.asked && entry.known && now - entry.known->asked_at >= kUsable;
    });
    forget_at = std::max(kFewNames, 2 * names.size());
  }

  Lookup lookup = &system_lookup;
  bool may_block = true;
  std::mutex mutex;  // guards the rest
  std::deque<std::shared_ptr<Name>> queue;
  std::unordered_map<std::string, Entry> names;
  std::size_t forget_at = kFewNames;
  std::size_t threads = 0;  // running
};

Resolver::Resolver(Lookup lookup, bool may_block) : state_(std::make_shared<State>()) {
  if (lookup) state_->lookup = std::move(lookup);
  state_->may_block = may_block;
}

Resolver::~Resolver() {
  const std::lock_guard lock(state_->mutex);
  state_->queue.clear();
}

Task<Resolver::Resolved> Resolver::resolve(std::string host, Scheduler& scheduler, Time limit,
                                           std::stop_token stop) {
  const auto now = scheduler.now();
  if (!state_->may_block) co_return Resolved(call_lookup(state_->lookup, host), now + kFresh);
  std::shared_ptr<Name> name;
  {
    const std::lock_guard lock(state_->mutex);
    state_->forget_old(now);
    const auto& entry = state_->names[host];
    const auto known = entry.known;
    const auto age = known ? now - known->asked_at : kForever;
    const bool looking = entry.asked != nullptr;
    if (age < kFresh && !looking) co_return Resolved(*known->found, known->asked_at + kFresh);
    name = state_->ask(host, now);
    if (age < kUsable) {
      if (!looking) name->for_later = true;
      co_return Resolved(*known->found, now + kSoon);
    }
  }
  if (!name->happened()) {
    const bool waited = co_await name->wait(scheduler, limit, std::move(stop));
    if (!name->happened()) {
      co_return Resolved(detail::wait_ended(!waited, "the address of " + host), now);
    }
  }
  co_return Resolved(*name->found, now + kFresh);
}

void Resolver::renew(const std::string& host, Time now) {
  const std::lock_guard lock(state_->mutex);
  const auto at = state_->names.find(host);
  if (at == state_->names.end() || at->second.asked || !at->second.known) return;
  if (now - at->second.known->asked_at >= kSoon) state_->ask(host, now)->for_later = true;
}

}  // namespace httpretry
