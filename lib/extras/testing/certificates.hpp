// Certificates: a certificate authority and a server certificate. They are generated at run time,
// because certificates in the repository would expire.
#pragma once

#include <httpretry/testing/testing.hpp>
#include <lib/core/base/owned.hpp>

#include <openssl/ssl.h>

namespace httpretry::faults {

class Certificates {
 public:
  // Generates both, and writes the authority's certificate into a new private directory. Throws
  // std::runtime_error on failure.
  explicit Certificates(Tls kind);
  // Removes the directory.
  ~Certificates();
  Certificates(const Certificates&) = delete;
  Certificates& operator=(const Certificates&) = delete;

  // The context for the server's connections. Several threads may use it.
  [[nodiscard]] SSL_CTX& context() const { return *context_; }
  [[nodiscard]] const std::string& ca_file() const { return ca_file_; }

 private:
  Owned<SSL_CTX, SSL_CTX_free> context_;
  std::string directory_;
  std::string ca_file_;
};

}  // namespace httpretry::faults
