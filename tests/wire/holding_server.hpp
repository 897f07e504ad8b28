// A server on one thread that holds every request until so many are there, then answers them all:
// for calls that are to be in flight together.
#pragma once

#include "raw_server.hpp"

#include <cstddef>

namespace httpretry {

class HoldingServer {
 public:
  explicit HoldingServer(std::size_t count);
  [[nodiscard]] std::string url() const { return server_.url(); }

 private:
  static void serve(int listener, std::size_t count);
  RawServer server_;
};

}  // namespace httpretry
