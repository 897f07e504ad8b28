#include "resolver.hpp"

#include "errors.hpp"

#include "lib/flow/signals.hpp"
#include "lib/http/text.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <vector>

namespace httpretry {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kWorkers = 4;
constexpr Duration kGood = 60s;
constexpr Duration kUsable = 6min;  // while a new look-up is under way, or fails
constexpr Duration kSoon = 100ms;
constexpr std::size_t kFewNames = 256;

Error resolve_error(std::string text) {
  Error error(Errc::Resolve, std::move(text));
  error.curl_code = 6;  // CURLE_COULDNT_RESOLVE_HOST
  return error;
}

// What getaddrinfo says; `cause` is errno then.
Error lookup_error(const std::string& host, int code, int cause) {
  const auto said = " (" + std::string(::gai_strerror(code)) + ")";
  switch (code) {
    case EAI_NONAME:
#ifdef EAI_NODATA
    case EAI_NODATA:
#endif
      return resolve_error("the host " + host + " does not exist, or has no address" + said);
    case EAI_AGAIN: return resolve_error("no name server could tell the address of " + host + said);
    case EAI_MEMORY: return Error(Errc::Internal, "no memory to look up " + host);
    case EAI_SYSTEM:
      return Error(Errc::Internal, "cannot look up " + host + ": " + system_text(cause));
    default: return resolve_error("cannot look up " + host + said);
  }
}

bool is_numeric(const std::string& address) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return ::inet_pton(AF_INET, address.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, address.c_str(), bytes.data()) == 1;
}

// A look-up of the user's is believed as far as its addresses are addresses.
Result<Addresses> asked(const Lookup& lookup, const std::string& host) {
  try {
    auto found = lookup(host);
    if (!found) return found;
    if (found->empty()) return resolve_error("the host " + host + " has no address");
    for (const auto& address : *found) {
      if (!is_numeric(address)) {
        std::string text = "the look-up of " + host + " gave \"";
        text.append(address).append("\": expected an IPv4 or IPv6 address");
        return resolve_error(std::move(text));
      }
    }
    return found;
  } catch (const std::bad_alloc&) {
    return Error(Errc::Internal, "out of memory");
  } catch (...) {
    return resolve_error("the look-up of " + host + " threw: " + text_of(std::current_exception()));
  }
}

}  // namespace

Result<Addresses> system_lookup(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* list = nullptr;
  const int code = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
  if (code != 0) return lookup_error(host, code, errno);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(list, &::freeaddrinfo);
  Addresses found;
  for (const auto* each = list; each != nullptr; each = each->ai_next) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    const void* bytes = nullptr;
    if (each->ai_family == AF_INET) {
      bytes = &reinterpret_cast<const sockaddr_in*>(each->ai_addr)->sin_addr;
    } else if (each->ai_family == AF_INET6) {
      bytes = &reinterpret_cast<const sockaddr_in6*>(each->ai_addr)->sin6_addr;
    }
    if (bytes == nullptr) continue;
    ::inet_ntop(each->ai_family, bytes, text.data(), text.size());
    const std::string address(text.data());
    if (std::find(found.begin(), found.end(), address) == found.end()) found.push_back(address);
  }
  return found;
}

// One look-up of a name, and what came of it.
class Resolver::Name final : public detail::Happening {
 public:
  Name(std::string host_, Time now) : host(std::move(host_)), asked_at(now) {}
  void answer(Result<Addresses> addresses) {
    found_.emplace(std::move(addresses));
    happen();
  }
  [[nodiscard]] const Result<Addresses>& found() const { return *found_; }

  const std::string host;
  const Time asked_at;
  int wanted = 0;  // by how many; the state's mutex guards it

 private:
  std::optional<Result<Addresses>> found_;
};

struct Resolver::Entry {
  std::shared_ptr<Name> known;  // the last answer with addresses
  std::shared_ptr<Name> asked;  // the look-up that is queued or under way
};

struct Resolver::State {
  explicit State(Lookup how) : lookup(how ? std::move(how) : Lookup(&system_lookup)) {}

  struct Worker {
    std::thread thread;
    bool busy = false;
  };

  static void work(const std::shared_ptr<State>& state, std::size_t index);
  // These with the mutex held.
  std::shared_ptr<Name> ask(const std::shared_ptr<State>& self, const std::string& host, Time now);
  void need_worker(const std::shared_ptr<State>& self);
  void take(const std::shared_ptr<Name>& name, std::unique_lock<std::mutex>& lock);
  void drop(const std::string& host);
  void forget_old(Time now);

  const Lookup lookup;
  std::mutex mutex;  // guards what is below
  std::condition_variable work_came;
  std::deque<std::shared_ptr<Name>> queue;
  std::unordered_map<std::string, Entry> names;
  std::size_t forget_at = kFewNames;
  std::array<Worker, kWorkers> workers;
  std::size_t made = 0;
  std::size_t idle = 0;
  bool closed = false;
};

// Counts as one who wants the answer, for as long as it lives.
class Resolver::Waiting {
 public:
  Waiting(State& state, std::shared_ptr<Name> name) : state_(state), name_(std::move(name)) {}
  ~Waiting() {
    const std::lock_guard lock(state_.mutex);
    --name_->wanted;
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  [[nodiscard]] const Name& name() const { return *name_; }

 private:
  State& state_;
  std::shared_ptr<Name> name_;
};

// The look-up that is under way, or a new one.
std::shared_ptr<Resolver::Name> Resolver::State::ask(const std::shared_ptr<State>& self,
                                                     const std::string& host, Time now) {
  auto& entry = names[host];
  if (entry.asked) return entry.asked;
  auto name = std::make_shared<Name>(host, now);
  queue.push_back(name);
  entry.asked = name;
  need_worker(self);
  return name;
}

void Resolver::State::need_worker(const std::shared_ptr<State>& self) {
  if (queue.size() > idle && made < workers.size()) {
    try {
      workers[made].thread = std::thread([self, index = made] { work(self, index); });
      ++made;
    } catch (const std::exception& cause) {  // no thread, or no memory for one
      if (made == 0) {                       // nobody will ever come for it
        const auto name = queue.back();
        queue.pop_back();
        drop(name->host);
        name->answer(Error(Errc::Internal,
                           "cannot make a thread to look up " + name->host + ": " + cause.what()));
        return;
      }
    }
  }
  work_came.notify_one();
}

void Resolver::State::work(const std::shared_ptr<State>& state, std::size_t index) {
  block_signals();
  std::unique_lock lock(state->mutex);
  for (;;) {
    ++state->idle;
    state->work_came.wait(lock, [&] { return state->closed || !state->queue.empty(); });
    --state->idle;
    if (state->closed) return;
    const auto name = std::move(state->queue.front());
    state->queue.pop_front();
    state->workers[index].busy = true;
    state->take(name, lock);
    state->workers[index].busy = false;
  }
}

void Resolver::State::take(const std::shared_ptr<Name>& name, std::unique_lock<std::mutex>& lock) {
  if (name->wanted == 0) return drop(name->host);
  lock.unlock();
  auto found = asked(lookup, name->host);
  lock.lock();
  auto& entry = names.find(name->host)->second;
  if (found) entry.known = name;  // a failure leaves what was known
  drop(name->host);
  name->answer(std::move(found));
}

// The look-up of that name is over.
void Resolver::State::drop(const std::string& host) {
  const auto at = names.find(host);
  at->second.asked.reset();
  if (!at->second.known) names.erase(at);
}

void Resolver::State::forget_old(Time now) {
  if (names.size() < forget_at) return;
  std::erase_if(names, [now](const auto& each) {
    const auto& entry = each.second;
    return !entry.asked && entry.known && now - entry.known->asked_at >= kUsable;
  });
  forget_at = std::max(kFewNames, 2 * names.size());
}

Resolver::Resolver(Lookup lookup) : state_(std::make_shared<State>(std::move(lookup))) {}

Resolver::~Resolver() {
  std::array<std::thread, kWorkers> ending;
  {
    const std::lock_guard lock(state_->mutex);
    state_->closed = true;
    for (auto& worker : state_->workers) {
      if (!worker.thread.joinable()) continue;
      if (worker.busy) {
        worker.thread.detach();
      } else {
        ending[static_cast<std::size_t>(&worker - state_->workers.data())] =
            std::move(worker.thread);
      }
    }
  }
  state_->work_came.notify_all();
  for (auto& thread : ending) {
    if (thread.joinable()) thread.join();
  }
}

Task<Resolver::Answer> Resolver::resolve(std::string host, Scheduler& scheduler, Time limit,
                                         std::stop_token stop) {
  const auto now = scheduler.now();
  std::shared_ptr<Name> name;
  {
    const std::lock_guard lock(state_->mutex);
    state_->forget_old(now);
    const auto at = state_->names.find(host);
    const auto known = at == state_->names.end() ? nullptr : at->second.known;
    const auto age = known ? now - known->asked_at : kForever;
    const bool looking = at != state_->names.end() && at->second.asked;
    if (age < kGood && !looking) co_return Answer(known->found(), known->asked_at + kGood);
    name = state_->ask(state_, host, now);
    if (age < kUsable) {
      if (!looking) ++name->wanted;  // by whoever comes next
      co_return Answer(known->found(), now + kSoon);
    }
    ++name->wanted;
  }
  const Waiting waiting(*state_, name);
  if (!name->happened()) {
    const bool whole = co_await name->wait(scheduler, limit, std::move(stop));
    if (!name->happened()) {
      co_return Answer(detail::wait_ended(!whole, "the address of " + host), now);
    }
  }
  co_return Answer(name->found(), now + kGood);
}

void Resolver::renew(const std::string& host, Time now) {
  const std::lock_guard lock(state_->mutex);
  const auto at = state_->names.find(host);
  if (at == state_->names.end() || at->second.asked || !at->second.known) return;
  if (now - at->second.known->asked_at >= kSoon) ++state_->ask(state_, host, now)->wanted;
}

}  // namespace httpretry
