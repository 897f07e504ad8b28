#include <lib/core/base/signals.hpp>
#include <lib/extras/testing/channel.hpp>
#include <lib/extras/testing/connection.hpp>
#include <lib/extras/testing/sockets.hpp>

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <iostream>
#include <list>
#include <thread>

namespace httpretry::faults {
namespace {

Descriptor listen_on(const std::string& address, std::uint16_t port) {
  auto socket = bind_to(address, port);
  if (::listen(socket.get(), SOMAXCONN) != 0) throw_errno("listen");
  return socket;
}

// Owns a listening socket, the thread that accepts connections, and a thread for each connection.
class Acceptor {
 public:
  // Returns when the socket listens. Counts connections in `accepted`. Throws std::system_error.
  Acceptor(Shared& shared, std::uint16_t port, std::atomic<std::size_t>& accepted)
      : shared_(shared),
        accepted_(accepted),
        listener_(listen_on(shared.options.address, port)),
        thread_([this] { run(); }) {}
  // Closes all connections and joins all threads.
  ~Acceptor() {
    stop_.signal();
    thread_.join();
  }
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

 private:
  struct Served {
    std::thread thread;
    std::atomic<bool> done = false;
  };

  // Accepts connections until `stop_` is signaled. Then waits until all of them have ended.
  void run() {
    block_signals();  // threads that this thread starts inherit the mask
    std::array<pollfd, 3> polled{
        {{stop_.fd(), POLLIN, 0}, {finished_.fd(), POLLIN, 0}, {listener_.get(), POLLIN, 0}}};
    const auto& [stop_events, finished_events, listener_events] = polled;
    while (stop_events.revents == 0) {
      if (::poll(polled.data(), polled.size(), /*timeout=*/-1) < 0) continue;
      if (finished_events.revents != 0) join_finished();
      if (listener_events.revents != 0) accept_all();
    }
    for (auto& served : connections_) served.thread.join();
  }

  // Accepts connections until none is waiting.
  void accept_all() {
    for (;;) {
      Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (socket.is_open()) {
        serve(std::move(socket));
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        // Without descriptors or memory, the listener stays readable until a connection ends. Waits
        // up to 10 ms to avoid spinning.
        std::array<pollfd, 2> polled{{{stop_.fd(), POLLIN, 0}, {finished_.fd(), POLLIN, 0}}};
        ::poll(polled.data(), polled.size(), /*timeout=*/10);
        return;
      } else if (errno != EINTR && errno != ECONNABORTED) {
        return;
      }
    }
  }

  // Starts a thread that serves the connection. If there are too many connections, resets this one,
  // with a warning the first time. If no thread can be started, closes the connection.
  void serve(Descriptor socket) {
    const auto limit = shared_.options.max_connections;
    if (connections_.size() >= limit) join_finished();  // removes those that have ended
    if (connections_.size() >= limit) {
      if (!std::exchange(warned_, true)) {
        std::cerr << "fault server: more than " << limit << " connections: new ones are reset\n";
      }
      return Channel(std::move(socket), stop_.fd()).reset();
    }
    const auto number = ++accepted_;
    auto& served = connections_.emplace_back();  // stays in place, because connections_ is a list
    try {
      served.thread = std::thread([this, number, &served, owned = std::move(socket)]() mutable {
        serve_connection(shared_, number, std::move(owned), stop_.fd());
        served.done = true;
        finished_.signal();  // wakes the thread that joins this one
      });
    } catch (const std::system_error&) {  // the lambda, which owns the socket, is destroyed
      connections_.pop_back();
    }
  }

  void join_finished() {
    finished_.clear();
    connections_.remove_if([](Served& served) {
      if (!served.done) return false;
      served.thread.join();
      return true;
    });
  }

  Shared& shared_;
  std::atomic<std::size_t>& accepted_;
  EventFd stop_{"eventfd"};
  Descriptor listener_;
  EventFd finished_{"eventfd"};
  // Used only by the accepting thread.
  std::list<Served> connections_;
  bool warned_ = false;
  std::thread thread_;
};

}  // namespace
}  // namespace httpretry::faults

namespace httpretry {

struct FaultServer::State {
  State(Scenario scenario, const FaultServerOptions& options)
      : shared(std::move(scenario), options),
        reservation(faults::bind_to(shared.options.address, shared.options.port)),
        port(faults::port_of(reservation)) {
    listen();
  }

  void listen() { acceptor.emplace(shared, port, accepted); }

  faults::Shared shared;
  std::atomic<std::size_t> accepted{0};
  // This socket is bound but never listens. While the server is stopped, it keeps the port
  // reserved, and connections are refused.
  const Descriptor reservation;
  const std::uint16_t port;
  std::optional<faults::Acceptor> acceptor;
};

FaultServer::FaultServer(Scenario scenario, FaultServerOptions options)
    : state_(std::make_unique<State>(std::move(scenario), options)) {}

FaultServer::~FaultServer() = default;

std::uint16_t FaultServer::port() const { return state_->port; }

std::string FaultServer::url(std::string_view path) const {
  const auto& options = state_->shared.options;
  auto host = options.address;
  if (host == "0.0.0.0" || host == "::") host = "localhost";
  if (host.find(':') != std::string::npos) host = '[' + host + ']';
  const auto* scheme = options.tls == Tls::Off ? "http://" : "https://";
  return (scheme + host + ':' + std::to_string(port())).append(path);
}

const std::string& FaultServer::ca_file() const {
  static const std::string none;
  const auto& certificates = state_->shared.certificates;
  return certificates ? certificates->ca_file() : none;
}

void FaultServer::stop() { state_->acceptor.reset(); }

void FaultServer::restart() {
  stop();
  state_->listen();
}

std::vector<SeenRequest> FaultServer::seen() const {
  const auto& shared = state_->shared;
  const std::lock_guard lock(state_->shared.mutex);
  return {shared.seen.begin(), shared.seen.end()};
}

std::size_t FaultServer::requests() const {
  const std::lock_guard lock(state_->shared.mutex);
  return state_->shared.count;
}

bool FaultServer::wait_for_requests(std::size_t count, Duration limit) const {
  auto& shared = state_->shared;
  const auto deadline = later(std::chrono::steady_clock::now(), limit);
  std::unique_lock lock(shared.mutex);
  return shared.recorded.wait_until(lock, deadline, [&] { return shared.count >= count; });
}

std::size_t FaultServer::connections() const { return state_->accepted; }

}  // namespace httpretry
