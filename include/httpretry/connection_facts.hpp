// ConnectionFacts: what the transport knows of the connection of one exchange, for those who ask
// with RequestOptions::on_connection. Nobody else pays for it.
#pragma once

#include <httpretry/export.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace httpretry {

struct HTTPRETRY_API ConnectionFacts {
  ConnectionFacts();
  ~ConnectionFacts();
  ConnectionFacts(const ConnectionFacts&);
  ConnectionFacts(ConnectionFacts&&) noexcept;
  ConnectionFacts& operator=(const ConnectionFacts&);
  ConnectionFacts& operator=(ConnectionFacts&&) noexcept;

  std::string remote_ip;  // the proxy's, where there is one; empty without a connection
  std::string local_ip;
  int remote_port = 0;
  int local_port = 0;
  int new_connections = 0;          // 0: a pooled one was used
  std::uint64_t request_bytes = 0;  // of the request's head, as it went out
  // 0, or OpenSSL's number for what is wrong with the certificate.
  long verify_result = 0;
  long proxy_verify_result = 0;
  int proxy_status = 0;  // what a proxy answered to CONNECT
  // The server's chain as readable text, each with its PEM at the end. Of a new connection only.
  std::vector<std::string> certificates;
};

}  // namespace httpretry
