// TransportOptions: how libcurl connects, which certificates it trusts, and what it accepts. Every
// member has a default that suits most programs.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/curl/content_coding.hpp>
#include <httpretry/http/request.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace httpretry {

// The addresses of a host, IPv4 and IPv6 as text ("192.0.2.1", "2001:db8::1"), the preferred one
// first.
using Addresses = std::vector<std::string>;
// Returns the addresses of a host, or an error; see TransportOptions::lookup.
using Lookup = std::function<Result<Addresses>(const std::string& host)>;

// Looks a host up with getaddrinfo, which uses the system's hosts file and name servers. An error
// is Errc::Resolve; its message distinguishes a host that does not exist from name servers that did
// not answer.
[[nodiscard]] HTTPRETRY_API Result<Addresses> system_lookup(const std::string& host);

class CookieJar;

// The versions of TLS that can be a limit.
enum class TlsVersion : std::uint8_t { Tls12, Tls13 };
// The addresses that are used: those of both versions of IP, or of one.
enum class IpVersion : std::uint8_t { Any, V4, V6 };

// A certificate for servers that require one from the client. It is presented only to the origin
// that a call was addressed to, not to origins that a redirect leads to.
struct HTTPRETRY_API ClientCertificate {
  ClientCertificate() = default;

  // A file in PEM format, or in PKCS #12 if its name ends in .p12 or .pfx.
  //
  // Default: empty, no certificate
  std::string file;

  // The private key, in PEM.
  //
  // Default: empty, the key is in `file`
  std::string key_file;

  // The same as the text of PEM files, to be set instead of the files.
  //
  // Default: empty, no certificate; the key is in `pem`
  std::string pem;
  std::string key_pem;

  // Default: empty, the key is not encrypted
  std::string key_password;

  // The formats of `file` and of `key_file`: "PEM", "DER" or "P12".
  //
  // Default: empty, by the name of `file`, and PEM for `key_file`
  std::string type;
  std::string key_type;
};

// The proxy between the client and all servers.
struct HTTPRETRY_API ProxyOptions {
  ProxyOptions() = default;

  // "http://proxy.example:3128". The scheme is http, https, socks4, socks4a, socks5 (names are
  // looked up locally) or socks5h (the proxy looks names up); without a scheme it is http. An empty
  // string means no proxy.
  //
  // Default: taken from the environment variables that curl reads
  std::optional<std::string> url;

  // Credentials for the proxy, with the scheme Basic or Digest. They are never sent to servers.
  //
  // Default: none
  std::optional<Credentials> credentials;

  // Hosts that are reached without the proxy: "localhost,.internal,10.0.0.0/8". "*" matches all
  // hosts.
  //
  // Default: NO_PROXY in the environment
  std::optional<std::string> no_proxy;

  // Headers for an http or https proxy. Servers do not get them.
  //
  // Default: none
  Headers headers;

  // For an https proxy: a PEM file with the trusted certificates.
  //
  // Default: empty, the system's certificates
  std::string ca_file;

  // The same as the text of a PEM file. Replaces all other certificates.
  //
  // Default: empty
  std::string ca_pem;

  // For an https proxy: false accepts any certificate.
  //
  // Default: true
  bool verify_tls = true;
};

// A libcurl option that has no member of its own in TransportOptions.
struct HTTPRETRY_API CurlOption {
  CurlOption(std::string option, std::variant<long, std::string> new_value);

  std::string name;  // the part after CURLOPT_
  std::variant<long, std::string> value;
};

// Returns "httpretry/1.0.0", with the version of the library.
[[nodiscard]] HTTPRETRY_API std::string default_user_agent();

// The settings of a client's connections (ClientOptions::connection): how libcurl connects, which
// certificates it trusts, and what it accepts.
struct HTTPRETRY_API TransportOptions {
  TransportOptions() = default;

  // The limit for making a connection: looking up the name, TCP and TLS.
  //
  // Default: 10 s
  Duration connect_timeout = std::chrono::seconds(10);

  // Finds the addresses of host names. It may block, because it runs on separate threads, at most
  // four for each client. Its results are used for one minute, and for five more minutes while a
  // new lookup runs or fails. ~Client does not wait for a lookup, so the function must own
  // everything that it uses. It is not called for localhost or for hosts in `resolve`, nor with a
  // proxy, `unix_socket` or `connect_to`.
  //
  // Default: system_lookup
  Lookup lookup;

  // Set this to false if `lookup` returns immediately, for example from a table. `lookup` is then
  // called on the threads that drive the calls, and no thread is started for it.
  //
  // Default: true
  bool lookup_may_block = true;

  // The User-Agent of requests that have none. If empty, these requests are sent without one.
  //
  // Default: "httpretry/VERSION"
  std::string user_agent = default_user_agent();

  // The maximum size of a body in memory, in decoded bytes. A larger body is Errc::TooLarge,
  // unless a retry follows by the status. A body that goes to a sink has no limit.
  //
  // Default: 64 MiB
  std::uint64_t max_body = 64U << 20U;

  // The maximum size of a response's headers, including 1xx responses and trailers. Larger headers
  // are Errc::TooLarge.
  //
  // Default: 256 KiB
  std::size_t max_headers = 256U << 10U;

  // Connections that have been idle for longer are not reused.
  //
  // Default: 118 s, as in libcurl
  Duration max_idle = std::chrono::seconds(118);

  // --- TLS ---

  // A PEM file with the trusted certificates.
  //
  // Default: empty, the system's certificates
  std::string ca_file;

  // A directory of trusted certificates with hashed names. libcurl cannot cache the directory and
  // reads it for each connection, which takes 20 ms and 0.8 MB. That is why the system's directory
  // is not used: certificates that exist only there are not trusted.
  //
  // Default: empty, none
  std::string ca_path;

  // The trusted certificates as the text of a PEM file. They replace all others: `ca_file`,
  // `ca_path` and the system's certificates are then ignored. libcurl parses the text for each
  // connection, which takes 0.2 ms per certificate, so keep a large bundle in a file.
  //
  // Default: empty
  std::string ca_pem;

  // How long it may take until a change of the trusted certificate files has an effect.
  //
  // Default: 1 h
  Duration ca_reload = std::chrono::hours(1);

  // False accepts any certificate. Use it only for tests against your own servers.
  //
  // Default: true
  bool verify_tls = true;

  // The minimum TLS version.
  //
  // Default: TLS 1.2
  TlsVersion min_tls = TlsVersion::Tls12;

  // The maximum TLS version.
  //
  // Default: none
  std::optional<TlsVersion> max_tls;

  // The certificate of this client.
  //
  // Default: none
  ClientCertificate client_certificate;

  // The public keys that a server may have, checked in addition to its certificate:
  // "sha256//BASE64", several of these separated by ";", or a file with one key in PEM or DER. The
  // check applies to every server, including those after redirects.
  //
  // Default: empty, any key
  std::string pinned_keys;

  // --- where to connect ---

  // Default: taken from the environment
  ProxyOptions proxy;

  // A Unix domain socket for all connections, whatever the host of the URL.
  //
  // Default: empty, TCP
  std::string unix_socket;

  // "HOST:PORT:TO-HOST:TO-PORT" connects to another host and port, while the host name that is sent
  // and verified stays the same. An empty HOST or PORT matches any; an empty TO-HOST or TO-PORT
  // keeps that of the URL.
  //
  // Default: empty
  std::vector<std::string> connect_to;

  // "HOST:PORT:ADDRESS" or "HOST:PORT:ADDRESS,ADDRESS" sets the addresses of a host, which is then
  // not looked up. They are tried in order. The HOST "*" matches any.
  //
  // Default: empty
  std::vector<std::string> resolve;

  // The IP versions to use.
  //
  // Default: both
  IpVersion ip_version = IpVersion::Any;

  // The local end of connections: the name of a network interface ("eth0"), or an address or host
  // name of this machine.
  //
  // Default: empty, chosen by the system
  std::string local_interface;

  // --- what to send ---

  // A file with user names and passwords for requests without Credentials; an empty name is
  // ~/.netrc. Used only for the origin that a call was addressed to.
  //
  // Default: none
  std::optional<std::string> netrc;

  // Stores the cookies that servers set, and sends them back; see cookies.hpp.
  //
  // Default: none, cookies are ignored
  std::shared_ptr<CookieJar> cookies;

  // True also accepts cookies from, and sends them to, other origins that a call is redirected to.
  //
  // Default: false
  bool cookies_of_other_origins = false;

  // Codings that the client supports in addition to gzip. Requests with
  // RequestOptions::compressed name them in Accept-Encoding, after gzip, and
  // RequestOptions::compress_with may be one of them. httpretry::compression has brotli and
  // Zstandard (compression.hpp).
  //
  // Default: none
  std::vector<ContentCoding> content_codings;

  // --- other options ---

  // Values for libcurl options that have no member above:
  //
  //   options.connection.curl_options = {{"TCP_NODELAY", 0}, {"TLS13_CIPHERS", "TLS_AES_128_..."}};
  //
  // The constructor of Client throws std::invalid_argument for an option that the library sets or
  // relies on (the message names the alternative), that takes a pointer or a function, or that this
  // libcurl does not support, and for a value that libcurl rejects. All other options are passed to
  // libcurl; this library does not test them.
  //
  // Default: none
  std::vector<CurlOption> curl_options;
};

// Returns the versions of the underlying libraries: "libcurl/7.88.1 OpenSSL/3.0.15 zlib/1.2.13 …".
[[nodiscard]] HTTPRETRY_API std::string transport_version();

}  // namespace httpretry
