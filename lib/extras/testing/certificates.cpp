#include <lib/extras/testing/certificates.hpp>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace httpretry::faults {
namespace {

constexpr long kDay = 24L * 60 * 60;

void require(bool succeeded, const char* step) {
  if (!succeeded) throw std::runtime_error(std::string("cannot make a certificate: ") + step);
}

using PrivateKey = Owned<EVP_PKEY, EVP_PKEY_free>;
using Certificate = Owned<X509, X509_free>;

PrivateKey make_key() {
  PrivateKey key(EVP_EC_gen("P-256"));  // generating an RSA key takes about a hundred times as long
  require(key != nullptr, "generating the key failed");
  return key;
}

// Appends an extension, such as NID_key_usage, with a value in the syntax of OpenSSL's files.
void add_extension(X509& certificate, X509& issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, &issuer, &certificate, /*req=*/nullptr, /*crl=*/nullptr, /*flags=*/0);
  const Owned<X509_EXTENSION, X509_EXTENSION_free> extension(
      X509V3_EXT_conf_nid(nullptr, &context, nid, value));
  require(extension && X509_add_ext(&certificate, extension.get(), /*loc=*/-1) == 1, value);
}

// In seconds from now.
struct Validity {
  long from;
  long until;
};
constexpr Validity kValidNow{.from = -kDay, .until = 30 * kDay};
constexpr Validity kExpired{.from = -2 * kDay, .until = -kDay};

// Makes a certificate for the key, to which the caller adds extensions and a signature. `name`
// becomes the common name of its subject. If `issuer` is nullptr, the certificate names itself as
// its issuer.
Certificate make_certificate(EVP_PKEY& key, const char* name, const X509* issuer, Validity valid) {
  Certificate certificate(X509_new());
  require(certificate != nullptr, "out of memory");
  std::uint32_t serial = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial));

  X509_set_version(certificate.get(), X509_VERSION_3);
  // Serial numbers must be above 0, and should differ.
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate.get()), std::uint64_t{serial} + 1);
  // The times are in seconds from now.
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), valid.from);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), valid.until);
  X509_set_pubkey(certificate.get(), &key);
  auto* subject = X509_get_subject_name(certificate.get());
  // A length of -1 means that the name ends with NUL, and a location of -1 appends the entry.
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name), /*len=*/-1, /*loc=*/-1,
                             /*set=*/0);
  X509_set_issuer_name(certificate.get(), issuer ? X509_get_subject_name(issuer) : subject);
  return certificate;
}

Certificate make_authority(EVP_PKEY& key) {
  auto authority =
      make_certificate(key, "httpretry fault server authority", /*issuer=*/nullptr, kValidNow);
  add_extension(*authority, *authority, NID_basic_constraints, "critical,CA:TRUE");
  add_extension(*authority, *authority, NID_key_usage, "critical,keyCertSign,cRLSign");
  add_extension(*authority, *authority, NID_subject_key_identifier, "hash");
  require(X509_sign(authority.get(), &key, EVP_sha256()) > 0, "signing failed");
  return authority;
}

// Returns the server's certificate, signed by the authority, with the defect that `kind` asks for:
// signed with its own key, for another host, or expired.
Certificate make_leaf(Tls kind, EVP_PKEY& key, X509& authority, EVP_PKEY& authority_key) {
  const bool self_signed = kind == Tls::SelfSigned;
  const bool wrong_host = kind == Tls::WrongHost;
  auto leaf = make_certificate(key, wrong_host ? "elsewhere.invalid" : "localhost",
                               self_signed ? nullptr : &authority,
                               kind == Tls::Expired ? kExpired : kValidNow);
  auto& issuer = self_signed ? *leaf : authority;
  auto& issuer_key = self_signed ? key : authority_key;
  add_extension(*leaf, issuer, NID_subject_alt_name,
                wrong_host ? "DNS:elsewhere.invalid" : "DNS:localhost,IP:127.0.0.1,IP:::1");
  add_extension(*leaf, issuer, NID_ext_key_usage, "serverAuth");
  require(X509_sign(leaf.get(), &issuer_key, EVP_sha256()) > 0, "signing failed");
  return leaf;
}

}  // namespace

// Makes the TLS context of a test server, with a new certificate that has the defect that `kind`
// asks for, such as Expired. Writes the certificate of the authority that signed it to `ca_file_`,
// which clients can trust. If a step fails, require() throws std::runtime_error, whose message is
// "cannot make a certificate: " and the second argument.
Certificates::Certificates(Tls kind) : context_(SSL_CTX_new(TLS_server_method())) {
  require(context_ != nullptr, "creating the TLS context failed");
  // Writes then behave as on a plain socket: they may write a part, and continue from another
  // buffer.
  SSL_CTX_set_mode(context_.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  const auto authority_key = make_key();
  const auto authority = make_authority(*authority_key);
  const auto key = make_key();
  const auto leaf = make_leaf(kind, *key, *authority, *authority_key);  // the server's certificate
  require(SSL_CTX_use_certificate(context_.get(), leaf.get()) == 1, "OpenSSL did not accept it");
  require(SSL_CTX_use_PrivateKey(context_.get(), key.get()) == 1, "OpenSSL did not accept it");

  // mkdtemp() replaces the X's.
  directory_ = std::filesystem::temp_directory_path() / "httpretry-XXXXXX";
  require(::mkdtemp(directory_.data()) != nullptr, "creating a temporary directory failed");
  ca_file_ = directory_ + "/ca.pem";
  const Owned<std::FILE, std::fclose> file(std::fopen(ca_file_.c_str(), "we"));
  if (!file || PEM_write_X509(file.get(), authority.get()) != 1) {
    std::filesystem::remove_all(directory_);  // the destructor does not run after an exception
    require(/*succeeded=*/false, "writing its file failed");
  }
}

Certificates::~Certificates() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

}  // namespace httpretry::faults
