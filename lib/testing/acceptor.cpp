#include <lib/testing/acceptor.hpp>

#include <lib/testing/socket_address.hpp>

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <csignal>
#include <iostream>
#include <system_error>
#include <utility>

namespace httpretry::faults {
namespace {

Descriptor listen_on(const std::string& address, std::uint16_t port) {
  auto socket = bind_to(address, port);
  if (::listen(socket.get(), SOMAXCONN) != 0) throw_errno("listen");
  return socket;
}

// Threads that this one starts inherit the mask. SIGPIPE matters most: OpenSSL writes to sockets
// without MSG_NOSIGNAL.
void block_signals() {
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace

Acceptor::Acceptor(Shared& shared, std::uint16_t port, std::atomic<std::size_t>& accepted)
    : shared_(shared),
      accepted_(accepted),
      listener_(listen_on(shared.options.address, port)),
      thread_([this] { run(); }) {}

Acceptor::~Acceptor() {
  stop_.signal();
  thread_.join();
}

void Acceptor::run() {
  block_signals();
  std::array<pollfd, 3> waited{
      {{stop_.fd(), POLLIN, 0}, {finished_.fd(), POLLIN, 0}, {listener_.get(), POLLIN, 0}}};
  while (waited[0].revents == 0) {
    if (::poll(waited.data(), waited.size(), -1) < 0) continue;
    if (waited[1].revents != 0) join_finished();
    if (waited[2].revents != 0) accept_all();
  }
  for (auto& connection : connections_) connection.join();
}

void Acceptor::accept_all() {
  for (;;) {
    Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (socket.open()) {
      serve(std::move(socket));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      // The listener stays readable until another connection ends: pause instead of spinning.
      std::array<pollfd, 2> ended{{{stop_.fd(), POLLIN, 0}, {finished_.fd(), POLLIN, 0}}};
      ::poll(ended.data(), ended.size(), 10);
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

void Acceptor::serve(Descriptor socket) {
  const auto limit = shared_.options.max_connections;
  if (connections_.size() >= limit) join_finished();
  if (connections_.size() >= limit) {
    if (!std::exchange(warned_, true)) {
      std::cerr << "fault server: more than " << limit << " connections: new ones are reset\n";
    }
    Channel(std::move(socket), stop_.fd()).reset();
    return;
  }
  const auto number = ++accepted_;
  const auto thread = connections_.emplace(connections_.end());
  try {
    *thread = std::thread([this, number, thread, owned = std::move(socket)]() mutable {
      Connection(shared_, number, std::move(owned), stop_.fd()).run();
      {
        const std::lock_guard lock(mutex_);
        finished_connections_.push_back(thread);
      }
      finished_.signal();
    });
  } catch (const std::system_error&) {
    connections_.erase(thread);  // no thread available: the connection is closed
  }
}

void Acceptor::join_finished() {
  finished_.clear();
  std::vector<Threads::iterator> finished;
  {
    const std::lock_guard lock(mutex_);
    finished.swap(finished_connections_);
  }
  for (const auto thread : finished) {
    thread->join();
    connections_.erase(thread);
  }
}

}  // namespace httpretry::faults
