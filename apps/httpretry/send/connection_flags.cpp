#include "send/connection_flags.hpp"

#include "lib/core/base/text.hpp"
#include "send/connection.hpp"

namespace httpretry::cli {
namespace {

// Return actions that pass the value of a flag on to libcurl, as the option CURLOPT_`name`.
auto pass_text(TransportOptions& to, const char* name) {
  return [&to, name](Text v) { to.curl_options.emplace_back(name, v); };
}
auto pass_number(TransportOptions& to, const char* name, long value) {
  return [&to, name, value](Text /*v*/) { to.curl_options.emplace_back(name, value); };
}

// Sets the ports of --local-port: one, or a range such as 4000-4100.
void set_local_ports(TransportOptions& to, Text value) {
  std::string_view rest = value;
  const auto first = to_number<std::uint16_t>(take_until(rest, '-'));
  const auto last = value.find('-') == std::string::npos ? first : to_number<std::uint16_t>(rest);
  if (first.value_or(0) == 0 || last < first) {  // an invalid `last` is less than any port
    throw UsageError("option --local-port: \"" + value +
                     "\" is not a port or a range such as 4000-4100");
  }
  to.curl_options.emplace_back("LOCALPORT", long{*first});
  to.curl_options.emplace_back("LOCALPORTRANGE", long{*last} - *first + 1);
}

// Sets the client certificate for an https proxy, from FILE[:PASSWORD].
void set_proxy_certificate(TransportOptions& to, Text value) {
  ClientCertificate certificate;
  set_certificate(certificate, "--proxy-cert", value);
  to.curl_options.emplace_back("PROXY_SSLCERT", certificate.file);
  if (certificate.key_password.empty()) return;
  to.curl_options.emplace_back("PROXY_KEYPASSWD", certificate.key_password);
}

}  // namespace

// Returns the flags for the addresses and the socket of a connection. Each has a letter ('\0':
// none), a name, the name of its value (empty: none), a help text, and an action that stores the
// value `v` in `to`, which must outlive the flags. kMayBeEmpty says that the value may be "".
std::vector<Flag> address_flags(TransportOptions& to) {
  return {
      {'\0', "noproxy", "LIST",
       "hosts to reach without the proxy; * is all; \"\": none, regardless of $no_proxy",
       store(to.proxy.no_proxy), kMayBeEmpty},
      {'\0', "resolve", "HOST:PORT:ADDRESS[,ADDRESS]",
       "connect to one of these addresses for this host and port",
       // In curl, a "+" before HOST lets the address expire after a minute. A command has no use
       // for that, so the "+" is removed.
       [&](Text v) { to.resolve.push_back(v.substr(v.starts_with('+') ? 1 : 0)); }},
      // An empty HOST or PORT matches any. An empty TO or second PORT leaves that part unchanged.
      {'\0', "connect-to", "HOST:PORT:TO:PORT",
       "connect to TO:PORT instead; an empty part matches any", append(to.connect_to)},
      {'4', "ipv4", "", "use IPv4 addresses only", set(to.ip_version, IpVersion::V4)},
      {'6', "ipv6", "", "use IPv6 addresses only", set(to.ip_version, IpVersion::V6)},
      {'\0', "interface", "NAME", "connect from this network interface, address or host",
       store(to.local_interface)},
      {'\0', "local-port", "PORT[-PORT]", "connect from this port, or from a free one of a range",
       [&](Text v) { set_local_ports(to, v); }},
      {'\0', "unix-socket", "FILE", "connect to this Unix socket", store(to.unix_socket)},
      {'\0', "keepalive-time", "SECONDS",
       "how long a connection is idle before the system probes it, and the time between probes "
       "(30)",
       [&](Text v) {
         const long seconds = parse_count(v, "--keepalive-time");
         std::erase_if(to.curl_options, [](const CurlOption& option) {
           return option.name == "TCP_KEEPIDLE" || option.name == "TCP_KEEPINTVL";
         });
         if (seconds == 0) return;  // the library's default
         to.curl_options.emplace_back("TCP_KEEPIDLE", seconds);
         to.curl_options.emplace_back("TCP_KEEPINTVL", seconds);
       }},
      {'\0', "no-keepalive", "", "do not probe idle connections",
       pass_number(to, "TCP_KEEPALIVE", 0)},
      {'\0', "tcp-nodelay", "", "accepted, because it is the default", [](Text) {}},
      {'\0', "happy-eyeballs-timeout-ms", "MILLISECONDS",
       "how long IPv6 is tried before IPv4 is tried as well (200)",
       [&](Text v) {
         to.curl_options.emplace_back("HAPPY_EYEBALLS_TIMEOUT_MS",
                                      parse_count(v, "--happy-eyeballs-timeout-ms"));
       }},
  };
}

// Returns the flags for limits of time and speed, for addresses, and for the HTTP version. Each has
// a letter ('\0': none), a name, the name of its value (empty: none), a help text, and an action
// that sets a member of `to`, which must outlive the flags. The actions get the value as `v`.
std::vector<Flag> connection_flags(SendOptions& to) {
  // unless_zero() returns nullopt for 0, which means no limit.
  const std::vector<Flag> limits{
      {'m', "max-time", "SECONDS",
       "time limit for each URL: all attempts, waits and redirects; for each attempt, use --set "
       "attempt_timeout=5s",
       [&](Text v) { to.max_time = unless_zero(parse_seconds(v, "--max-time")); }},
      {'\0', "connect-timeout", "SECONDS", "time limit for connecting",
       [&](Text v) { to.connect_timeout = unless_zero(parse_seconds(v, "--connect-timeout")); }},
      {'Y', "speed-limit", "BYTES",
       "end an attempt that transfers less than this many bytes a second for 30 s, or for the time "
       "of -y; 0: no limit",
       [&](Text v) { to.speed_limit = parse_count(v, "--speed-limit"); }},
      {'y', "speed-time", "SECONDS",
       "the time for -Y; without -Y: end an attempt that transfers nothing in this time",
       [&](Text v) { to.speed_time = parse_count(v, "--speed-time"); }},
  };
  const std::vector<Flag> versions{
      {'\0', "http1.1", "", "use HTTP/1.1 only", set(to.http_version, HttpVersion::Http1)},
      {'\0', "http2", "", "use HTTP/2 if TLS negotiates it (the default)",
       set(to.http_version, HttpVersion::Any)},
      {'\0', "http2-prior-knowledge", "", "use HTTP/2 without negotiating it",
       set(to.http_version, HttpVersion::Http2PriorKnowledge)},
  };
  return joined(joined(limits, address_flags(to.connection)), versions);
}

// Returns the flags for the proxy. Each has a letter ('\0': none), a name, the name of its value
// (empty: none), a help text, and an action that stores the value `v` in `to`, which must outlive
// the flags. kMayBeEmpty says that the value may be "".
std::vector<Flag> proxy_flags(SendOptions& to) {
  auto& proxy = to.connection.proxy;
  const auto with_scheme = [&proxy](const char* scheme) {
    return [&proxy, scheme](Text v) { proxy.url = scheme + v; };
  };
  return {
      {'x', "proxy", "URL",
       "use a proxy: http, https, socks4, socks4a, socks5 or socks5h; \"\": none", store(proxy.url),
       kMayBeEmpty},
      {'\0', "socks4", "HOST[:PORT]", "the same as -x socks4://HOST:PORT",
       with_scheme("socks4://")},
      {'\0', "socks4a", "HOST[:PORT]", "the same as -x socks4a://HOST:PORT",
       with_scheme("socks4a://")},
      {'\0', "socks5", "HOST[:PORT]", "the same as -x socks5://HOST:PORT",
       with_scheme("socks5://")},
      {'\0', "socks5-hostname", "HOST[:PORT]", "the same as -x socks5h://HOST:PORT",
       with_scheme("socks5h://")},
      {'U', "proxy-user", "NAME[:PASSWORD]", "name and password for the proxy, as with -u",
       store(to.proxy_user)},
      {'\0', "proxy-basic", "", "with -U: basic authentication (the default)",
       set(to.proxy_auth, Credentials::Scheme::Basic)},
      {'\0', "proxy-digest", "", "with -U: digest authentication",
       set(to.proxy_auth, Credentials::Scheme::Digest)},
      {'p', "proxytunnel", "", "use a tunnel (CONNECT) of the proxy for http URLs too",
       pass_number(to.connection, "HTTPPROXYTUNNEL", 1)},
      {'\0', "proxy-header", "LINE", "add a header for the proxy, or the headers in @FILE",
       append(to.proxy_headers)},
      {'\0', "proxy-insecure", "", "accept any certificate of an https proxy",
       set(proxy.verify_tls, false)},
      {'\0', "proxy-cacert", "FILE", "trust the certificates in FILE for an https proxy",
       store(proxy.ca_file)},
      {'\0', "proxy-crlfile", "FILE", "like --crlfile, for an https proxy",
       pass_text(to.connection, "PROXY_CRLFILE")},
      {'\0', "proxy-pinnedpubkey", "HASHES", "like --pinnedpubkey, for an https proxy",
       pass_text(to.connection, "PROXY_PINNEDPUBLICKEY")},
      {'\0', "proxy-cert", "FILE[:PASSWORD]", "the client certificate for an https proxy",
       [&](Text v) { set_proxy_certificate(to.connection, v); }},
      {'\0', "proxy-cert-type", "PEM|DER|P12", "its format (PEM)",
       pass_text(to.connection, "PROXY_SSLCERTTYPE")},
      {'\0', "proxy-key", "FILE", "its private key, if it is in another file",
       pass_text(to.connection, "PROXY_SSLKEY")},
      {'\0', "proxy-key-type", "PEM|DER", "the format of that file (PEM)",
       pass_text(to.connection, "PROXY_SSLKEYTYPE")},
      {'\0', "proxy-pass", "PASSWORD", "the password of the private key for an https proxy",
       pass_text(to.connection, "PROXY_KEYPASSWD")},
      {'\0', "proxy-ciphers", "LIST", "like --ciphers, for an https proxy",
       pass_text(to.connection, "PROXY_SSL_CIPHER_LIST")},
      {'\0', "proxy-tls13-ciphers", "LIST", "like --tls13-ciphers, for an https proxy",
       pass_text(to.connection, "PROXY_TLS13_CIPHERS")},
      {'\0', "suppress-connect-headers", "",
       "accepted, because the responses to CONNECT are never shown", [](Text) {}},
  };
}

// Returns the flags for names and passwords. Each has a letter ('\0': none), a name, the name of
// its value (empty: none), a help text, and an action that stores the value in one of the
// arguments, which must outlive the flags. kMayBeEmpty says that the value may be "".
std::vector<Flag> credential_flags(std::optional<std::string>& user, Credentials::Scheme& auth,
                                   TransportOptions& to, std::string_view user_help) {
  return {
      {'u', "user", "NAME[:PASSWORD]", user_help, store(user), kMayBeEmpty},
      {'\0', "basic", "", "with -u: basic authentication (the default)",
       set(auth, Credentials::Scheme::Basic)},
      {'\0', "digest", "", "with -u: digest authentication",
       set(auth, Credentials::Scheme::Digest)},
      // An empty name of the file stands for ~/.netrc.
      {'n', "netrc", "", "read name and password from ~/.netrc", set(to.netrc, "")},
      {'\0', "netrc-file", "FILE", "like --netrc, with this file", store(to.netrc)},
  };
}

// Returns the flags for TLS. Each has a letter ('\0': none), a name, the name of its value (empty:
// none), a help text, and an action that stores the value `v` in `to`, which must outlive the
// flags.
std::vector<Flag> tls_flags(TransportOptions& to) {
  auto& certificate = to.client_certificate;
  return {
      {'k', "insecure", "", "accept any certificate", set(to.verify_tls, false)},
      {'\0', "cacert", "FILE", "trust the certificates in FILE", store(to.ca_file)},
      {'\0', "capath", "FOLDER", "trust the certificates in FOLDER, which c_rehash prepared",
       store(to.ca_path)},
      {'\0', "crlfile", "FILE", "accept no certificate that is on the revocation list in FILE",
       pass_text(to, "CRLFILE")},
      {'\0', "cert-status", "", "require the server to prove that its certificate is not revoked",
       pass_number(to, "SSL_VERIFYSTATUS", 1)},
      {'E', "cert", "FILE[:PASSWORD]", "the client certificate, PEM or PKCS #12",
       [&](Text v) { set_certificate(certificate, "--cert", v); }},
      {'\0', "cert-type", "PEM|DER|P12",
       "the format of the client certificate (P12 if its name ends in .p12 or .pfx, otherwise PEM)",
       store(certificate.type)},
      {'\0', "key", "FILE", "its private key, if it is in another file",
       store(certificate.key_file)},
      {'\0', "key-type", "PEM|DER", "the format of the private key (PEM)",
       store(certificate.key_type)},
      {'\0', "pass", "PASSWORD", "the password of the private key",
       store(certificate.key_password)},
      {'\0', "pinnedpubkey", "HASHES",
       "accept only these public keys of the server: sha256//..., or a file",
       store(to.pinned_keys)},
      {'\0', "tlsv1.2", "", "use TLS 1.2 or later (the default)",
       set(to.min_tls, TlsVersion::Tls12)},
      {'\0', "tlsv1.3", "", "use TLS 1.3 or later", set(to.min_tls, TlsVersion::Tls13)},
      {'\0', "tls-max", "default|1.2|1.3", "use no later version of TLS",
       [&](Text v) {
         to.max_tls.reset();
         if (v != "default") to.max_tls = v == "1.2" ? TlsVersion::Tls12 : TlsVersion::Tls13;
       }},
      {'\0', "ciphers", "LIST", "the ciphers for TLS 1.2, by OpenSSL's names",
       pass_text(to, "SSL_CIPHER_LIST")},
      {'\0', "tls13-ciphers", "LIST", "the ciphers for TLS 1.3", pass_text(to, "TLS13_CIPHERS")},
      {'\0', "curves", "LIST", "the curves for the key exchange, such as X25519:P-256",
       pass_text(to, "SSL_EC_CURVES")},
      {'\0', "no-alpn", "", "do not negotiate HTTP/2", pass_number(to, "SSL_ENABLE_ALPN", 0)},
  };
}

}  // namespace httpretry::cli
