// An HTTP/2 server over TLS that answers most requests and fails the others: refused and reset
// streams, GOAWAY, connections cut off, answers cut short, silence, 429 and 503. nghttp2 reads and
// writes the frames; what goes wrong is ours to say.
#pragma once

#include "ledger.hpp"

#include "lib/extras/testing/certificates.hpp"
#include "lib/extras/testing/sockets.hpp"

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>

namespace httpretry::ledger {

enum class Mischief : std::uint8_t {
  None,
  Unavailable,  // 503
  TryLater,     // 503, and a Retry-After of 0
  Throttle,     // 429, and a Retry-After of 0
  Refuse,       // REFUSED_STREAM, before anything is done
  Reset,        // RST_STREAM instead of a response
  Truncate,     // half of the body, then RST_STREAM
  Silence,
  GoAway,      // answers, and says that this connection takes no more
  Disconnect,  // closes the connection, whatever else is under way on it
};

class Http2FaultServer {
 public:
  // `saw` is called for each request, on several threads, before anything of its response is
  // written.
  Http2FaultServer(std::uint64_t seed, std::function<void(const Sight&)> saw);
  ~Http2FaultServer();
  Http2FaultServer(const Http2FaultServer&) = delete;
  Http2FaultServer& operator=(const Http2FaultServer&) = delete;

  [[nodiscard]] std::string url(std::string_view path) const;
  [[nodiscard]] const std::string& ca_file() const { return certificates_.ca_file(); }
  // Cuts every connection off, and listens anew.
  void restart();

  // For its connections.
  [[nodiscard]] SSL_CTX& context() const { return certificates_.context(); }
  [[nodiscard]] int stop_fd() const { return stop_.fd(); }
  [[nodiscard]] Mischief draw();
  void saw(const Sight& sight) const { saw_(sight); }

 private:
  void listen();
  void stop();
  void accept_all(int listener);

  faults::Certificates certificates_{Tls::Good};
  Descriptor reservation_;  // bound, and never listening: the port stays ours
  std::function<void(const Sight&)> saw_;
  std::mutex mutex_;
  std::mt19937_64 random_;
  EventFd stop_{"eventfd"};
  std::thread thread_;
};

}  // namespace httpretry::ledger
