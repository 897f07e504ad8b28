// A TLS server that tells in its response what it saw of the client's certificate.
#pragma once

#include "lib/extras/testing/certificates.hpp"
#include "raw_server.hpp"

#include <string>

namespace httpretry {

class TlsServer {
 public:
  // Answers with the common name of the client's certificate, or "nobody". `most` is the newest
  // version of TLS that it speaks; with `location` it answers with a redirect there.
  explicit TlsServer(int most = TLS1_3_VERSION, std::string location = {});
  [[nodiscard]] std::string url() const { return server_.url("https"); }
  [[nodiscard]] const std::string& ca_file() const { return certificates_.ca_file(); }
  // "sha256//…" of its public key.
  [[nodiscard]] std::string pin() const;

 private:
  void set_up(int most);
  void serve(int listener);
  void talk(SSL* tls) const;
  faults::Certificates certificates_{Tls::Good};
  std::string location_;
  RawServer server_;  // last: its thread uses the others
};

// Writes a certificate for `name` that is signed by itself into cert.pem, and its key, under
// `password`, into key.pem; both also into client.p12, which takes `rounds` of hashing to open (0:
// OpenSSL's default).
void make_client_certificate(const std::string& directory, const std::string& name,
                             const std::string& password, int rounds = 0);

// Makes of the PEM file with a certificate a directory that OpenSSL finds it in.
void make_hashed_directory(const std::string& pem_file, const std::string& directory);

}  // namespace httpretry
