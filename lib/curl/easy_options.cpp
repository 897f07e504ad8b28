// What is set on an easy handle once, from the options of its client.
#include "transfer.hpp"

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

// libcurl's callbacks, with the Easy as their last argument.

int on_prereq(void* easy, char* /*remote*/, char* /*local*/, int /*port*/, int local_port) {
  auto& transfer = *static_cast<Easy*>(easy)->transfer;
  return transfer.about_to_send(local_port) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

std::size_t on_header(char* data, std::size_t size, std::size_t count, void* easy) {
  const auto bytes = size * count;
  return static_cast<Easy*>(easy)->transfer->header_line({data, bytes}) ? bytes : 0;
}

std::size_t on_body(char* data, std::size_t size, std::size_t count, void* easy) {
  return static_cast<Easy*>(easy)->transfer->body_bytes({data, size * count});
}

std::size_t on_read(char* data, std::size_t size, std::size_t count, void* easy) {
  return static_cast<Easy*>(easy)->transfer->upload().read({data, size * count});
}

int on_seek(void* easy, curl_off_t offset, int origin) {
  if (offset != 0 || origin != SEEK_SET) return CURL_SEEKFUNC_CANTSEEK;
  return static_cast<Easy*>(easy)->transfer->upload().rewind() ? CURL_SEEKFUNC_OK
                                                               : CURL_SEEKFUNC_FAIL;
}

}  // namespace

std::string transport_version() { return curl_version(); }

bool may_use_proxy(const ProxyOptions& options) {
  if (options.url) return !options.url->empty();
  // HTTP_PROXY is not among them, for a server's CGI sets it from a request header.
  constexpr std::array kNames{"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};
  return std::any_of(kNames.begin(), kNames.end(),
                     [](const char* name) { return std::getenv(name) != nullptr; });
}

Easy::Easy(const TransportOptions& options, bool proxied)
    : options_(options), handle_(curl_easy_init()) {
  if (!handle_) throw std::bad_alloc();
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
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
  configure_tls();
  configure_connections();
  // Without a proxy variable libcurl would still look for one at each exchange.
  if (proxied) {
    configure_proxy();
  } else {
    set(CURLOPT_PROXY, "");
  }
}

void Easy::configure_tls() {
  set(CURLOPT_SSLVERSION,
      static_cast<long>(options_.min_tls == TlsVersion::Tls13 ? CURL_SSLVERSION_TLSv1_3
                                                              : CURL_SSLVERSION_TLSv1_2));
  if (!options_.pinned_keys.empty()) {
    set(CURLOPT_PINNEDPUBLICKEY, options_.pinned_keys.c_str());
  }
  if (!options_.verify_tls) {
    set(CURLOPT_SSL_VERIFYPEER, 0L);
    set(CURLOPT_SSL_VERIFYHOST, 0L);
  }
  if (!options_.ca_file.empty()) set(CURLOPT_CAINFO, options_.ca_file.c_str());
  if (!options_.ca_path.empty()) {
    set(CURLOPT_CAPATH, options_.ca_path.c_str());
  } else if (!options_.ca_file.empty() || has_readable_bundle()) {
    set(CURLOPT_CAPATH, nullptr);
    set(CURLOPT_PROXY_CAPATH, nullptr);
  }
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(options_.ca_reload).count();
  set(CURLOPT_CA_CACHE_TIMEOUT, static_cast<long>(seconds));
}

void Easy::configure_proxy() {
  const auto& proxy = options_.proxy;
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
void Easy::configure_connections() {
  if (!options_.unix_socket.empty()) {
    set(CURLOPT_UNIX_SOCKET_PATH, options_.unix_socket.c_str());
  }
  if (options_.ip_version != IpVersion::Any) {
    set(CURLOPT_IPRESOLVE,
        static_cast<long>(options_.ip_version == IpVersion::V4 ? CURL_IPRESOLVE_V4
                                                               : CURL_IPRESOLVE_V6));
  }
  if (!options_.local_interface.empty()) {
    set(CURLOPT_INTERFACE, options_.local_interface.c_str());
  }
  if (options_.connect_to.empty()) return;
  for (const auto& entry : options_.connect_to) connect_to_.add(entry.c_str());
  set(CURLOPT_CONNECT_TO, connect_to_.chained());
}

}  // namespace httpretry
