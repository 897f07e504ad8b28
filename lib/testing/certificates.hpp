// Certificates: an authority and a leaf, made at run time, so that none expires in the repository.
#pragma once

#include <httpretry/testing/testing.hpp>

#include <openssl/ssl.h>

#include <memory>
#include <string>

namespace httpretry::faults {

class Certificates {
 public:
  // Makes them and writes the authority's into a new private directory. Throws std::runtime_error.
  explicit Certificates(Tls kind);
  // Removes the directory.
  ~Certificates();
  Certificates(const Certificates&) = delete;
  Certificates& operator=(const Certificates&) = delete;

  // What connections of the server are made from; safe to use on several threads.
  [[nodiscard]] SSL_CTX& context() const { return *context_; }
  [[nodiscard]] const std::string& ca_file() const { return ca_file_; }

 private:
  struct FreeContext {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };

  std::unique_ptr<SSL_CTX, FreeContext> context_;
  std::string directory_;
  std::string ca_file_;
};

}  // namespace httpretry::faults
