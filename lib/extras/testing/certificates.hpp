// Certificates: a certificate authority and a server certificate, generated at run time so that
// none in the repository can expire.
#pragma once

#include <httpretry/testing/testing.hpp>
#include <lib/core/base/owned.hpp>

#include <openssl/ssl.h>

namespace httpretry::faults {

class Certificates {
 public:
  // Generates both, and writes the authority's certificate into a new private directory. Throws
  // std::runtime_error.
  explicit Certificates(Tls kind);
  // Removes the directory.
  ~Certificates();
  Certificates(const Certificates&) = delete;
  Certificates& operator=(const Certificates&) = delete;

  // For the server's connections; safe to use on several threads.
  [[nodiscard]] SSL_CTX& context() const { return *context_; }
  [[nodiscard]] const std::string& ca_file() const { return ca_file_; }

 private:
  Owned<SSL_CTX, SSL_CTX_free> context_;
  std::string directory_;
  std::string ca_file_;
};

}  // namespace httpretry::faults
