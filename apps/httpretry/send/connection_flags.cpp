#include "send/connection_flags.hpp"

#include "send/connection.hpp"

namespace httpretry::cli {

// Returns the flags for the addresses at both ends of a connection. Each has a letter ('\0': none),
// a name, the name of its value (empty: none), a help text, and an action that stores the value `v`
// in `to`, which must outlive the flags. kMayBeEmpty says that the value may be "".
std::vector<Flag> address_flags(TransportOptions& to) {
  return {
      {'\0', "noproxy", "LIST",
       "hosts to reach without the proxy; * is all; \"\": none, whatever $no_proxy says",
       store(to.proxy.no_proxy), kMayBeEmpty},
      {'\0', "resolve", "HOST:PORT:ADDRESS[,ADDRESS]",
       "connect to one of these addresses for this host and port",
       // As in curl, a "+" before HOST asks libcurl to forget the address after a minute, which a
       // command has no use for.
       [&](Text v) { to.resolve.push_back(v.substr(v.starts_with('+') ? 1 : 0)); }},
      {'\0', "connect-to", "HOST:PORT:TO:PORT",
       "connect to TO:PORT instead; an empty part matches any", append(to.connect_to)},
      {'4', "ipv4", "", "use IPv4 addresses only", set(to.ip_version, IpVersion::V4)},
      {'6', "ipv6", "", "use IPv6 addresses only", set(to.ip_version, IpVersion::V6)},
      {'\0', "interface", "NAME", "connect from this network interface, address or host",
       store(to.local_interface)},
      {'\0', "unix-socket", "FILE", "connect to this Unix socket", store(to.unix_socket)},
  };
}

// Returns the flags for connections. Each has a letter ('\0': none), a name, the name of its value
// (empty: none), a help text, and an action that stores the value `v` in `to`, which must outlive
// the flags. kMayBeEmpty says that the value may be "".
std::vector<Flag> connection_flags(SendOptions& to) {
  const std::vector<Flag> limits_and_proxy{
      {'m', "max-time", "SECONDS",
       "time limit for each URL: all attempts, waits and redirects; for each attempt, use --set "
       "attempt_timeout=5s",
       [&](Text v) { to.max_time = parse_seconds(v, "--max-time"); }},
      {'\0', "connect-timeout", "SECONDS", "time limit for connecting",
       [&](Text v) { to.connect_timeout = unless_zero(parse_seconds(v, "--connect-timeout")); }},
      {'x', "proxy", "URL",
       "use a proxy: http, https, socks4, socks4a, socks5 or socks5h; \"\": none",
       store(to.connection.proxy.url), kMayBeEmpty},
      {'U', "proxy-user", "NAME[:PASSWORD]", "name and password for the proxy, as with -u",
       store(to.proxy_user)},
  };
  const std::vector<Flag> versions{
      {'\0', "http1.1", "", "use HTTP/1.1 only", set(to.http_version, HttpVersion::Http1)},
      {'\0', "http2", "", "use HTTP/2 if TLS negotiates it (the default)",
       set(to.http_version, HttpVersion::Any)},
      {'\0', "http2-prior-knowledge", "", "use HTTP/2 without negotiating it",
       set(to.http_version, HttpVersion::Http2PriorKnowledge)},
  };
  return joined(joined(limits_and_proxy, address_flags(to.connection)), versions);
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
      {'E', "cert", "FILE[:PASSWORD]", "the client certificate, PEM or PKCS #12",
       [&](Text v) { set_certificate(certificate, v); }},
      {'\0', "key", "FILE", "its private key, if it is in another file",
       store(certificate.key_file)},
      {'\0', "pass", "PASSWORD", "the password of the private key",
       store(certificate.key_password)},
      {'\0', "pinnedpubkey", "HASHES",
       "accept only these public keys of the server: sha256//..., or a file",
       store(to.pinned_keys)},
      {'\0', "tlsv1.2", "", "use TLS 1.2 or later (the default)",
       set(to.min_tls, TlsVersion::Tls12)},
      {'\0', "tlsv1.3", "", "use TLS 1.3 or later", set(to.min_tls, TlsVersion::Tls13)},
  };
}

}  // namespace httpretry::cli
