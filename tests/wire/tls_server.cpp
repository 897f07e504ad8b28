#include "tls_server.hpp"

#include <doctest/doctest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <thread>
#include <vector>

namespace httpretry {
namespace {

int take_any(int /*verified*/, X509_STORE_CTX* /*store*/) { return 1; }

std::string name_of(const SSL* tls) {
  X509* certificate = SSL_get1_peer_certificate(tls);
  if (certificate == nullptr) return "nobody";
  std::array<char, 100> name{};
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name.data(),
                            static_cast<int>(name.size()));
  X509_free(certificate);
  return name.data();
}

void write_with(const std::string& path, const auto& write) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  REQUIRE(file != nullptr);
  REQUIRE(write(file) == 1);
  std::fclose(file);
}

}  // namespace

TlsServer::TlsServer(int most, std::string location)
    : location_(std::move(location)),
      server_((set_up(most), [this](int listener) { serve(listener); })) {}

void TlsServer::set_up(int most) {
  auto* context = &certificates_.context();
  SSL_CTX_set_max_proto_version(context, most);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, &take_any);
  // Without it OpenSSL refuses to resume the session of a client with a certificate.
  const std::array<unsigned char, 4> name{'t', 'e', 's', 't'};
  SSL_CTX_set_session_id_context(context, name.data(), name.size());
}

void TlsServer::serve(int listener) {
  for (;;) {
    const int connection = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) return;
    SSL* tls = SSL_new(&certificates_.context());
    SSL_set_fd(tls, connection);
    if (SSL_accept(tls) == 1) talk(tls);
    SSL_free(tls);
    ::close(connection);
  }
}

void TlsServer::talk(SSL* tls) const {
  std::string request;
  std::array<char, 4096> bytes{};
  while (request.find("\r\n\r\n") == std::string::npos) {
    const int count = SSL_read(tls, bytes.data(), static_cast<int>(bytes.size()));
    if (count <= 0) return;
    request.append(bytes.data(), static_cast<std::size_t>(count));
  }
  const auto name = name_of(tls);
  const auto status = location_.empty() ? "200 OK" : "307 Elsewhere\r\nLocation: " + location_;
  const auto answer = "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(name.size()) +
                      "\r\nConnection: close\r\n\r\n" + name;
  SSL_write(tls, answer.data(), static_cast<int>(answer.size()));
  SSL_shutdown(tls);
}

std::string TlsServer::pin() const {
  unsigned char* key = nullptr;
  const int size =
      i2d_PUBKEY(X509_get0_pubkey(SSL_CTX_get0_certificate(&certificates_.context())), &key);
  REQUIRE(size > 0);
  std::array<unsigned char, SHA256_DIGEST_LENGTH> hash{};
  SHA256(key, static_cast<std::size_t>(size), hash.data());
  OPENSSL_free(key);
  std::array<unsigned char, 64> text{};
  EVP_EncodeBlock(text.data(), hash.data(), static_cast<int>(hash.size()));
  return "sha256//" + std::string(reinterpret_cast<const char*>(text.data()));
}

void make_client_certificate(const std::string& directory, const std::string& name,
                             const std::string& password, int rounds) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  X509_set_version(certificate, X509_VERSION_3);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -1000);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 100'000);
  X509_set_pubkey(certificate, key);
  auto* subject = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(certificate, subject);
  REQUIRE(X509_sign(certificate, key, EVP_sha256()) > 0);
  write_with(directory + "/cert.pem",
             [&](std::FILE* file) { return PEM_write_X509(file, certificate); });
  write_with(directory + "/key.pem", [&](std::FILE* file) {
    return PEM_write_PrivateKey(file, key, EVP_aes_256_cbc(),
                                reinterpret_cast<const unsigned char*>(password.data()),
                                static_cast<int>(password.size()), nullptr, nullptr);
  });
  PKCS12* both =
      PKCS12_create(password.c_str(), name.c_str(), key, certificate, nullptr, 0, 0, rounds, 0, 0);
  REQUIRE(both != nullptr);
  write_with(directory + "/client.p12", [&](std::FILE* file) { return i2d_PKCS12_fp(file, both); });
  PKCS12_free(both);
  X509_free(certificate);
  EVP_PKEY_free(key);
}

void make_hashed_directory(const std::string& pem_file, const std::string& directory) {
  std::FILE* file = std::fopen(pem_file.c_str(), "rb");
  REQUIRE(file != nullptr);
  X509* certificate = PEM_read_X509(file, nullptr, nullptr, nullptr);
  std::fclose(file);
  REQUIRE(certificate != nullptr);
  std::array<char, 16> name{};
  std::snprintf(name.data(), name.size(), "%08lx.0", X509_subject_name_hash(certificate));
  write_with(directory + "/" + name.data(),
             [&](std::FILE* hashed) { return PEM_write_X509(hashed, certificate); });
  X509_free(certificate);
}

}  // namespace httpretry
