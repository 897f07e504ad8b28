// TransportOptions: how libcurl connects, whom it trusts and what it accepts. All members have a
// default that suits most programs.
#pragma once

#include <httpretry/http/request.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace httpretry {

// The addresses of a host, IPv4 and IPv6 as text ("192.0.2.1", "2001:db8::1"), best first.
using Addresses = std::vector<std::string>;
using Lookup = std::function<Result<Addresses>(const std::string& host)>;

// Asks the system, by getaddrinfo: its hosts file and its name servers. The error is Errc::Resolve;
// its message tells a host that does not exist from name servers that could not answer.
[[nodiscard]] HTTPRETRY_API Result<Addresses> system_lookup(const std::string& host);

class CookieJar;

enum class TlsVersion : std::uint8_t { Tls12, Tls13 };
enum class IpVersion : std::uint8_t { Any, V4, V6 };

// For servers that ask for a certificate of the client. It is shown only to the origin that a call
// was addressed to, not to others that a redirect leads to.
struct HTTPRETRY_API ClientCertificate {
  ClientCertificate() = default;

  // PEM, or PKCS #12 where the name ends in .p12 or .pfx.
  //
  // Default: empty, no certificate
  std::string file;

  // The private key, in PEM.
  //
  // Default: empty, the key is in `file`
  std::string key_file;

  // The same from memory, as the text of PEM files: instead of files, not beside them.
  //
  // Default: empty, no certificate; the key is in `pem`
  std::string pem;
  std::string key_pem;

  // Default: empty, the key is not encrypted
  std::string key_password;
};

// The proxy between us and all servers.
struct HTTPRETRY_API ProxyOptions {
  ProxyOptions() = default;

  // "http://proxy.example:3128". The scheme is one of http, https, socks4, socks4a, socks5 (we look
  // names up) and socks5h (the proxy does); http where there is none. Empty: no proxy.
  //
  // Default: what the environment says, in the variables that curl reads
  std::optional<std::string> url;

  // For the proxy only; servers do not see them.
  //
  // Default: none
  std::optional<Credentials> credentials;

  // Hosts to reach without the proxy: "localhost,.internal,10.0.0.0/8"; "*" is all of them.
  //
  // Default: NO_PROXY of the environment
  std::optional<std::string> no_proxy;

  // For an https proxy: a PEM file with the certificates to trust.
  //
  // Default: empty, the system's
  std::string ca_file;

  // The same from memory, as the text of a PEM file. Replaces all others.
  //
  // Default: empty
  std::string ca_pem;

  // For an https proxy: false accepts any certificate.
  //
  // Default: true
  bool verify_tls = true;
};

// An option of libcurl that has no name of its own here.
struct HTTPRETRY_API CurlOption {
  CurlOption(std::string option, std::variant<long, std::string> what);

  std::string name;  // as in CURLOPT_NAME
  std::variant<long, std::string> value;
};

// "httpretry/0.1.0"
[[nodiscard]] HTTPRETRY_API std::string default_user_agent();

struct HTTPRETRY_API TransportOptions {
  TransportOptions() = default;

  // The limit of connecting: looking up the name, TCP and TLS.
  //
  // Default: 10 s
  Duration connect_timeout = std::chrono::seconds(10);

  // Finds the addresses of host names. It may block: it runs on threads of its own, at most four
  // for each client. Its results are used for a minute, and for five more while a new look-up runs
  // or fails. ~Client does not wait for a look-up, so the function must own what it uses. It is not
  // called for localhost or hosts in `resolve`, nor with a proxy, `unix_socket` or `connect_to`.
  //
  // Default: system_lookup
  Lookup lookup;

  // false: `lookup` returns at once, for example from a table. Then it is called on the threads
  // that drive the calls, and no thread is started for it.
  //
  // Default: true
  bool lookup_may_block = true;

  // The User-Agent of requests that have none; empty: they are sent without.
  //
  // Default: "httpretry/VERSION"
  std::string user_agent = default_user_agent();

  // The largest body that is held in memory, in decoded bytes. A larger one is Errc::TooLarge. A
  // body that goes to a sink has no limit.
  //
  // Default: 64 MiB
  std::uint64_t max_body = 64U << 20U;

  // The largest size of a response's headers, 1xx responses and trailers included. More is
  // Errc::TooLarge.
  //
  // Default: 256 KiB
  std::size_t max_headers = 256U << 10U;

  // Connections that were idle for longer are not used again.
  //
  // Default: 118 s, as in libcurl
  Duration max_idle = std::chrono::seconds(118);

  // --- TLS ---

  // A PEM file with the certificates to trust.
  //
  // Default: empty, the system's
  std::string ca_file;

  // A directory of hashed certificates to trust. libcurl cannot cache it and reads it for each
  // connection, which takes 20 ms and 0.8 MB. That is why the system's directory is not used:
  // certificates that are only there are not trusted.
  //
  // Default: empty, none
  std::string ca_path;

  // The certificates to trust, as the text of a PEM file. It replaces all others: `ca_file`,
  // `ca_path` and the system's are not used then. libcurl parses it for each connection, which
  // takes 0.2 ms for each certificate in it: the bundle of a system is better in a file.
  //
  // Default: empty
  std::string ca_pem;

  // How long a change of the trusted certificates may take to be seen.
  //
  // Default: 1 h
  Duration ca_reload = std::chrono::hours(1);

  // false accepts any certificate. Only for tests against your own servers.
  //
  // Default: true
  bool verify_tls = true;

  // Default: TLS 1.2
  TlsVersion min_tls = TlsVersion::Tls12;

  // Default: none
  ClientCertificate client_certificate;

  // The public keys that a server may have, in addition to a trusted certificate:
  // "sha256//BASE64", several separated by ";", or a file with one in PEM or DER. They are checked
  // for every server, also after redirects.
  //
  // Default: empty, any key
  std::string pinned_keys;

  // --- where to connect ---

  // Default: what the environment says
  ProxyOptions proxy;

  // All connections go to this socket, whatever the host of the URL.
  //
  // Default: empty, TCP
  std::string unix_socket;

  // "HOST:PORT:TO-HOST:TO-PORT": connects to another host, while the name that is asked for and
  // checked stays. An empty HOST or PORT is any; an empty TO-HOST or TO-PORT is the URL's.
  //
  // Default: empty
  std::vector<std::string> connect_to;

  // "HOST:PORT:ADDRESS" or "HOST:PORT:ADDRESS,ADDRESS": the addresses of a host, which is then not
  // looked up. They are tried in turn. The HOST "*" is any.
  //
  // Default: empty
  std::vector<std::string> resolve;

  // Default: both
  IpVersion ip_version = IpVersion::Any;

  // Connections start there: the name of an interface ("eth0"), an address or a host name of this
  // machine.
  //
  // Default: empty, the system chooses
  std::string local_interface;

  // --- what to send along ---

  // A file with names and passwords, for requests without Credentials; empty is ~/.netrc. Only for
  // the origin that a call was addressed to.
  //
  // Default: no file is read
  std::optional<std::string> netrc;

  // Keeps the cookies that servers set, and sends them back. See cookies.hpp.
  //
  // Default: none, cookies are ignored
  std::shared_ptr<CookieJar> cookies;

  // true takes cookies from, and sends them to, other origins that a call is redirected to.
  //
  // Default: false
  bool cookies_of_other_origins = false;

  // --- anything else ---

  // Numbers and texts for options of libcurl that have no name above:
  //
  //   options.connection.curl_options = {{"TCP_NODELAY", 0}, {"TLS13_CIPHERS", "TLS_AES_128_..."}};
  //
  // The constructor of Client throws std::invalid_argument for an option that the library sets
  // itself or relies on (the message names what to use instead), that takes a pointer or a
  // function, that this libcurl does not know, or whose value it refuses. What all other options do
  // is libcurl's matter: none of them is tested here.
  //
  // Default: none
  std::vector<CurlOption> curl_options;
};

// The libraries behind it: "libcurl/7.88.1 OpenSSL/3.0.15 zlib/1.2.13 …".
[[nodiscard]] HTTPRETRY_API std::string transport_version();

}  // namespace httpretry
