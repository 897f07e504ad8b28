// Acceptor: a listening socket, the thread that accepts connections, and a thread for each of them.
#pragma once

#include <lib/testing/connection.hpp>
#include <lib/testing/descriptor.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace httpretry::faults {

class Acceptor {
 public:
  // Listens when it returns. Counts connections in `accepted`. Throws std::system_error.
  Acceptor(Shared& shared, std::uint16_t port, std::atomic<std::size_t>& accepted);
  // Closes all connections and joins all threads.
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

 private:
  using Threads = std::list<std::thread>;

  void run();
  void accept_all();
  void serve(Descriptor socket);
  void join_finished();

  Shared& shared_;
  std::atomic<std::size_t>& accepted_;
  EventFd stop_;
  Descriptor listener_;

  // Used only by the accepting thread.
  Threads connections_;
  bool warned_ = false;

  EventFd finished_;
  std::mutex mutex_;
  std::vector<Threads::iterator> finished_connections_;  // guarded by mutex_

  std::thread thread_;
};

}  // namespace httpretry::faults
