// Transport: the end of every chain. It carries out one exchange, never a retry.
#pragma once

#include <httpretry/call.hpp>

#include <cstdint>
#include <functional>
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

// How the library's own transport, libcurl, connects and what it accepts.
struct HTTPRETRY_API TransportOptions {
  TransportOptions();
  ~TransportOptions();
  TransportOptions(const TransportOptions&);
  TransportOptions(TransportOptions&&) noexcept;
  TransportOptions& operator=(const TransportOptions&);
  TransportOptions& operator=(TransportOptions&&) noexcept;

  Duration connect_timeout = std::chrono::seconds(10);  // TCP and TLS together
  // Finds the addresses of hosts that are named. It may block: it runs on threads of its own, up to
  // four a client, and not for a host that nobody waits for any more. Its answers are kept for a
  // minute. The end of the client does not wait for one that is under way, so it must own what it
  // uses. Not asked for localhost, and not where the environment names a proxy.
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
};

// What the library's own transport is made of: "libcurl/7.88.1 OpenSSL/3.0.15 zlib/1.2.13 …".
[[nodiscard]] HTTPRETRY_API std::string transport_version();

class HTTPRETRY_API Transport {
 public:
  virtual ~Transport();
  // Sends the request once and answers with what came back. Gives up at call.deadline() with
  // Errc::Timeout and, when call.stop() is requested, with Errc::Canceled. Must not throw; what was
  // sent is told in the outcome's `exchange`.
  virtual Task<Outcome> send(Request request, Call& call) = 0;
};

}  // namespace httpretry
