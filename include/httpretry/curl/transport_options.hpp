// TransportOptions: how the library's own transport, libcurl, connects and what it accepts.
#pragma once

#include <httpretry/http/request.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace httpretry {

// The addresses of a host, IPv4 and IPv6 in text ("192.0.2.1", "2001:db8::1"), best first.
using Addresses = std::vector<std::string>;
using Lookup = std::function<Result<Addresses>(const std::string& host)>;

// What the library asks where TransportOptions::lookup is left out: getaddrinfo, and so the
// system's hosts file and name servers. The message of its Errc::Resolve tells a host that does not
// exist from name servers that could not tell; both may be otherwise a moment later.
[[nodiscard]] HTTPRETRY_API Result<Addresses> system_lookup(const std::string& host);

class CookieJar;

// Who we are, for servers that ask for a certificate. Shown to the origin that a call was addressed
// to, and not where a redirect leads elsewhere.
struct HTTPRETRY_API ClientCertificate {
  ClientCertificate() = default;

  // PEM; PKCS #12 where the name ends in .p12 or .pfx. Empty: none.
  std::string file;
  std::string key_file;  // PEM; where it is left out the key stands in `file`
  std::string key_password;
};

// A proxy between us and every server.
struct HTTPRETRY_API ProxyOptions {
  ProxyOptions() = default;

  // "http://proxy.example:3128", https, socks4, socks4a, socks5 (we look the names up) or socks5h
  // (the proxy does); http where no scheme is given. Empty: no proxy. Left out: what the
  // environment says, in the variables that curl reads.
  std::optional<std::string> url;
  // For the proxy alone; no server sees them.
  std::optional<Credentials> credentials;
  // Hosts that are reached without it: "localhost,.internal,10.0.0.0/8"; "*" is all. The
  // environment's NO_PROXY where it is left out.
  std::optional<std::string> no_proxy;
  // For an https proxy, as the fields of the same names below.
  std::string ca_file;
  bool verify_tls = true;
};

enum class TlsVersion : std::uint8_t { Tls12, Tls13 };
enum class IpVersion : std::uint8_t { Any, V4, V6 };

struct HTTPRETRY_API TransportOptions {
  TransportOptions() = default;

  Duration connect_timeout = std::chrono::seconds(10);  // TCP and TLS together
  // Finds the addresses of hosts that are named. It may block: it runs on threads of its own, up to
  // four a client, and not for a host that nobody waits for any more. Its answers are kept for a
  // minute. The end of the client does not wait for one that is under way, so it must own what it
  // uses. Not asked for localhost, and not where something else than the host of the URL is
  // connected to: a proxy, a unix socket, what `connect_to` names.
  Lookup lookup;
  // Limits on an answer. More is Errc::TooLarge.
  std::uint64_t max_body = 64U << 20U;    // decoded bytes in memory
  std::size_t max_headers = 256U << 10U;  // all header blocks, 1xx and trailers included
  // Pooled connections that were idle for longer are not used again.
  Duration max_idle = std::chrono::seconds(118);

  // A PEM file with the certificates to trust, instead of the system's.
  std::string ca_file;
  // A directory of hashed certificates. Where it is left out, certificates that stand only in the
  // system's directory are not trusted: libcurl cannot cache that directory, and reading it anew
  // for each connection costs 20 ms and 0.8 MB.
  std::string ca_path;
  // How long a change of the trusted certificates may take to be seen.
  Duration ca_reload = std::chrono::hours(1);
  // false takes any certificate: for tests against servers of your own.
  bool verify_tls = true;
  TlsVersion min_tls = TlsVersion::Tls12;
  ClientCertificate client_certificate;
  // The public keys that a server may have, beside a trusted certificate: "sha256//BASE64", several
  // with ";" between, or a file with one in PEM or DER. Holds for every server, redirects included.
  std::string pinned_keys;

  ProxyOptions proxy;
  // Connections go to this socket, whatever the host of the URL.
  std::string unix_socket;
  // "HOST:PORT:TO-HOST:TO-PORT": connects elsewhere, while the name that is asked for and checked
  // stays. An empty HOST or PORT is any, an empty TO-HOST or TO-PORT the one of the URL.
  std::vector<std::string> connect_to;
  IpVersion ip_version = IpVersion::Any;
  std::string local_interface;  // a name ("eth0"), an address or a host of this machine

  // Looks for a name and a password in this file, where a request has none: ~/.netrc where it is
  // empty. For the origin that a call was addressed to.
  std::optional<std::string> netrc;
  // Keeps cookies, and sends them back to the hosts they came from; see cookies.hpp.
  std::shared_ptr<CookieJar> cookies;
  // Cookies for (and from) other origins that a call is redirected to, too.
  bool cookies_of_other_origins = false;
};

// What the library's own transport is made of: "libcurl/7.88.1 OpenSSL/3.0.15 zlib/1.2.13 …".
[[nodiscard]] HTTPRETRY_API std::string transport_version();

}  // namespace httpretry
