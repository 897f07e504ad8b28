// LastSocket: the socket that libcurl last asked for in a transfer. It tells what this process
// lacks from a server that cannot be reached: libcurl reports both as CURLE_COULDNT_CONNECT.
#pragma once

#include <curl/curl.h>
#include <netinet/in.h>

namespace httpretry {

class LastSocket {
 public:
  // `error`: why there is no socket (errno), or 0.
  void opened(const curl_sockaddr& address, int error) noexcept;
  [[nodiscard]] int error() const { return error_; }
  // Whether `error`, of connecting, says that all local ports to this address are in use. IPv6 has
  // the same code (EADDRNOTAVAIL) for a machine without an address in the network.
  [[nodiscard]] bool lacks_port(int error) const;

 private:
  int error_ = 0;
  sockaddr_in6 address_{};  // of IPv6 or IPv4; neither for others
};

}  // namespace httpretry
