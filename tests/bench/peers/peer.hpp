// Another HTTP client that does the same work as bench_one_get: a GET whose answer is looked at,
// over connections that are kept, `width` of them at a time.
//
//   bench_peer_NAME URL WIDTH REQUESTS
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace bench {

struct Target {
  std::string host;
  std::uint16_t port = 0;
  std::string path;
  [[nodiscard]] std::string origin() const;
};

class Peer {
 public:
  virtual ~Peer() = default;
  // Returns when so many requests were answered. Called twice: to warm up, then to be measured.
  virtual void run(long count) = 0;
};

// Each peer's own file has it.
std::unique_ptr<Peer> make_peer(const Target& target, int width);

// Ends the program where the response is not what it should be.
void check_answer(int status, bool has_content_type, bool has_body);

}  // namespace bench
