// FakeRedis: a server on a free port of 127.0.0.1 that replies to each command with the bytes that
// a test gives, whatever they are, for as long as it lives.
#pragma once

#include "lib/core/base/descriptor.hpp"
#include "lib/extras/fleet/address.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

class FakeRedis {
 public:
  using Words = std::vector<std::string>;
  // Returns the bytes to send in response to a command. Called on the thread of the server.
  using Respond = std::function<std::string(const Words& words)>;

  // Throws std::runtime_error.
  explicit FakeRedis(Respond respond);
  ~FakeRedis();
  FakeRedis(const FakeRedis&) = delete;
  FakeRedis& operator=(const FakeRedis&) = delete;

  [[nodiscard]] httpretry::fleet::Address address(const std::string& query = "") const;
  [[nodiscard]] int connections() const;
  // The commands so far whose first key begins with `prefix`, and all of them without one.
  [[nodiscard]] int commands(const std::string& prefix = "") const;
  // Returns whether this connection, counted from 0, has sent bytes that the server has not read.
  // Only for use in `Respond`.
  [[nodiscard]] bool has_unread(int connection) const;
  // Whether it resets each connection after its next command, in place of a response.
  void set_resets(bool resets) { resets_ = resets; }

  // The bytes of replies.
  static std::string bulk(const std::string& text);
  static std::string list(const std::vector<std::int64_t>& integers);
  // Returns the replies to the commands with which a link begins, and nil to all others.
  static std::string usual(const Words& words);
  // The key of a script, or an empty text.
  static std::string key_of(const Words& words);

 private:
  struct Client {
    httpretry::Descriptor socket;
    std::string received{};
  };
  void run();
  // False: the connection is over.
  bool serve(Client& client);

  const Respond respond_;
  httpretry::Descriptor listener_;
  int port_ = 0;
  std::atomic<bool> resets_ = false;
  std::atomic<bool> stop_ = false;
  mutable std::mutex mutex_;  // guards the next two
  int connections_ = 0;
  std::vector<Words> commands_;
  std::list<Client> clients_;
  httpretry::EventFd wake_{"no fake server"};
  std::thread thread_;
};
