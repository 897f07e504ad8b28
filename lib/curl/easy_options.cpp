// What is set on an easy handle once, from the options of its client.
#include "easy.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace httpretry {
namespace {

// Debian builds libcurl with a directory of hashed certificates, which switches its cache of the
// certificate store off. The bundle file holds the same certificates.
bool has_readable_bundle() {
  const auto* about = curl_version_info(CURLVERSION_NOW);
  return about->cainfo != nullptr && ::access(about->cainfo, R_OK) == 0;
}

}  // namespace

bool may_use_proxy(const ProxyOptions& options) {
  if (options.url) return !options.url->empty();
  // HTTP_PROXY is not among them, for a server's CGI sets it from a request header.
  constexpr std::array kNames{"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};
  return std::any_of(kNames.begin(), kNames.end(),
                     [](const char* name) { return std::getenv(name) != nullptr; });
}

void Easy::configure(const TransportOptions& options, CURLSH* share, const SocketHooks& hooks,
                     bool proxied) {
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_SHARE, share);
  set(CURLOPT_ERRORBUFFER, error_text_.data());
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_TCP_KEEPIDLE, 30L);
  set(CURLOPT_TCP_KEEPINTVL, 30L);
  set(CURLOPT_PIPEWAIT, 1L);
  set(CURLOPT_BUFFERSIZE, 65536L);
  // Longer than any answer of our resolver is used: libcurl shall not look up a name by itself.
  if (!proxied) set(CURLOPT_DNS_CACHE_TIMEOUT, 300L);

  set(CURLOPT_PREREQFUNCTION, &on_prereq);
  set(CURLOPT_PREREQDATA, this);
  set(CURLOPT_HEADERFUNCTION, &on_header);
  set(CURLOPT_HEADERDATA, this);
  set(CURLOPT_WRITEFUNCTION, &on_body);
  set(CURLOPT_WRITEDATA, this);
  set(CURLOPT_READFUNCTION, &on_read);
  set(CURLOPT_READDATA, this);
  set(CURLOPT_SEEKFUNCTION, &on_seek);
  set(CURLOPT_SEEKDATA, this);
  set(CURLOPT_OPENSOCKETFUNCTION, hooks.open);
  set(CURLOPT_OPENSOCKETDATA, hooks.loop);
  set(CURLOPT_CLOSESOCKETFUNCTION, hooks.close);
  set(CURLOPT_CLOSESOCKETDATA, hooks.loop);
  configure_tls(options);
  configure_proxy(options.proxy, proxied);
  configure_connections(options);
}

void Easy::configure_tls(const TransportOptions& options) {
  set(CURLOPT_SSLVERSION,
      static_cast<long>(options.min_tls == TlsVersion::Tls13 ? CURL_SSLVERSION_TLSv1_3
                                                             : CURL_SSLVERSION_TLSv1_2));
  if (!options.pinned_keys.empty()) {
    set(CURLOPT_PINNEDPUBLICKEY, options.pinned_keys.c_str());
  }
  if (!options.verify_tls) {
    set(CURLOPT_SSL_VERIFYPEER, 0L);
    set(CURLOPT_SSL_VERIFYHOST, 0L);
  }
  if (!options.ca_file.empty()) set(CURLOPT_CAINFO, options.ca_file.c_str());
  if (!options.ca_path.empty()) {
    set(CURLOPT_CAPATH, options.ca_path.c_str());
  } else if (!options.ca_file.empty() || has_readable_bundle()) {
    set(CURLOPT_CAPATH, nullptr);
    set(CURLOPT_PROXY_CAPATH, nullptr);
  }
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(options.ca_reload).count();
  set(CURLOPT_CA_CACHE_TIMEOUT, static_cast<long>(seconds));
}

void Easy::configure_proxy(const ProxyOptions& proxy, bool proxied) {
  // Without a proxy variable libcurl would still look for one at each exchange.
  if (!proxied) {
    set(CURLOPT_PROXY, "");
    return;
  }
  if (proxy.url) set(CURLOPT_PROXY, proxy.url->c_str());
  set(CURLOPT_PROXY_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!proxy.verify_tls) {
    set(CURLOPT_PROXY_SSL_VERIFYPEER, 0L);
    set(CURLOPT_PROXY_SSL_VERIFYHOST, 0L);
  }
  if (!proxy.ca_file.empty()) {
    set(CURLOPT_PROXY_CAINFO, proxy.ca_file.c_str());
    set(CURLOPT_PROXY_CAPATH, nullptr);
  }
  if (proxy.no_proxy) set(CURLOPT_NOPROXY, proxy.no_proxy->c_str());
  if (!proxy.credentials) return;
  const bool digest = proxy.credentials->scheme == Credentials::Scheme::Digest;
  set(CURLOPT_PROXYAUTH, digest ? CURLAUTH_DIGEST : CURLAUTH_BASIC);
  set(CURLOPT_PROXYUSERNAME, proxy.credentials->user.c_str());
  set(CURLOPT_PROXYPASSWORD, proxy.credentials->password.c_str());
}

// Where connections go.
void Easy::configure_connections(const TransportOptions& options) {
  if (!options.unix_socket.empty()) {
    set(CURLOPT_UNIX_SOCKET_PATH, options.unix_socket.c_str());
  }
  if (options.ip_version != IpVersion::Any) {
    set(CURLOPT_IPRESOLVE,
        static_cast<long>(options.ip_version == IpVersion::V4 ? CURL_IPRESOLVE_V4
                                                              : CURL_IPRESOLVE_V6));
  }
  if (!options.local_interface.empty()) {
    set(CURLOPT_INTERFACE, options.local_interface.c_str());
  }
  if (options.connect_to.empty()) return;
  for (const auto& entry : options.connect_to) connect_to_.add(entry.c_str());
  set(CURLOPT_CONNECT_TO, connect_to_.chained());
}

}  // namespace httpretry
