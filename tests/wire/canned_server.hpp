// Answers each request with bytes that are written down, right or wrong.
#pragma once

#include "raw_server.hpp"

#include <atomic>
#include <string>
#include <vector>

namespace httpretry {

// The n-th request gets the n-th answer, further ones the last. A connection stays open after an
// answer, so the client decides whether it is used again.
class CannedServer {
 public:
  explicit CannedServer(std::vector<std::string> answers);
  [[nodiscard]] std::string url() const { return server_.url(); }
  [[nodiscard]] int requests() const { return requests_; }
  [[nodiscard]] int connections() const { return connections_; }

 private:
  void serve(int listener);
  bool answer(int connection);  // false: the client has closed it
  const std::vector<std::string> answers_;
  std::atomic<int> requests_ = 0;
  std::atomic<int> connections_ = 0;
  RawServer server_;  // last: its thread uses the others
};

}  // namespace httpretry
