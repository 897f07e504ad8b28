// Two HTTP/2 servers: nghttpd, for real traffic, and one of a few frames that refuses
// streams, which no well-behaved server can be made to do.
#pragma once

#include "files.hpp"
#include "lib/testing/certificates.hpp"
#include "processes.hpp"
#include "raw_server.hpp"

#include <atomic>
#include <optional>
#include <string>

namespace httpretry {

// Serves the file /hello ("hello, two"). REQUIREs that nghttpd is installed.
class Nghttpd {
 public:
  explicit Nghttpd(bool tls = true);
  [[nodiscard]] std::string url() const;
  [[nodiscard]] const std::string& ca_file() const { return certificates_.ca_file(); }
  // The number of connections in its log so far.
  [[nodiscard]] std::size_t connections() const;

 private:
  faults::Certificates certificates_{Tls::Good};
  TemporaryDirectory directory_;
  std::string scheme_;
  std::optional<ServerProcess> process_;
};

// Refuses the first `refusals` streams (REFUSED_STREAM) and answers 200 to the others. With
// `hangs_up_at` N it says nothing to any, and each N-th stream has its connection reset.
class RefusingServer {
 public:
  explicit RefusingServer(int refusals, int hangs_up_at = 0);
  [[nodiscard]] std::string url() const { return server_.url("https"); }
  [[nodiscard]] const std::string& ca_file() const { return certificates_.ca_file(); }
  [[nodiscard]] int streams() const { return streams_; }

 private:
  void serve(int listener);
  void talk(SSL* tls);
  faults::Certificates certificates_{Tls::Good};
  int refusals_;
  int hangs_up_at_;
  std::atomic<int> streams_ = 0;
  RawServer server_;  // last: its thread uses the others
};

}  // namespace httpretry
