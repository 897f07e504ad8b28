// The options of a client: the check that they are valid, and what they set once on an easy handle.
#include "content_codings.hpp"
#include "resolver.hpp"
#include "transfer.hpp"
#include "url_parts.hpp"

#include "lib/core/base/text.hpp"

#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>

namespace httpretry {
namespace {

[[noreturn]] void reject(std::string_view option, const std::string& why) {
  throw std::invalid_argument("TransportOptions::" + std::string(option) + ": " + why);
}

void check_duration(std::string_view option, Duration duration) {
  if (duration < Duration::zero()) reject(option, "it must not be negative");
}

void check_text(std::string_view option, std::string_view text) {
  if (text.find('\0') != std::string_view::npos) reject(option, "a NUL byte is not allowed");
}

// Refuses a text without a block of this `kind`, such as "CERTIFICATE". Without this check, a file
// name in place of the text would be noticed only at the first connection. Messages do not repeat
// the text, because it is secret.
void check_pem(std::string_view option, std::string_view pem, std::string_view kind) {
  check_text(option, pem);
  if (pem.empty()) return;
  const auto begin = pem.find("-----BEGIN ");
  if (begin != pem.npos && pem.find(std::string(kind) + "-----", begin) != pem.npos) return;
  reject(option, "there is no " + std::string(kind) +
                     " in it; expected the text of a PEM file, not its name");
}

void check_certificate_type(std::string_view option, const std::string& type) {
  if (type.empty() || type == "PEM" || type == "DER" || type == "P12") return;
  reject(option, "expected PEM, DER or P12");
}

// Checks that the client certificate and its key are given either as files or as PEM texts, but not
// one of each. A single file or text may hold both. Throws std::invalid_argument, as `refuse` and
// the other check functions do.
void check_certificate(const ClientCertificate& cert) {
  constexpr std::string_view kOption = "client_certificate";
  // Paths and the password must have no NUL byte, and a text must have a PEM block of its kind.
  check_text("client_certificate.file", cert.file);
  check_text("client_certificate.key_file", cert.key_file);
  check_text("client_certificate.key_password", cert.key_password);
  check_certificate_type("client_certificate.type", cert.type);
  check_certificate_type("client_certificate.key_type", cert.key_type);
  check_pem("client_certificate.pem", cert.pem, "CERTIFICATE");
  check_pem("client_certificate.key_pem", cert.key_pem, "PRIVATE KEY");
  const bool as_file = !cert.file.empty() || !cert.key_file.empty();
  const bool as_text = !cert.pem.empty() || !cert.key_pem.empty();
  if (as_file && as_text) {
    reject(kOption, "set file and key_file, or pem and key_pem, but not both");
  }
  if (as_file && cert.file.empty())
    reject(kOption, "a private key needs the file of its certificate");
  if (!as_text) return;
  if (cert.pem.empty()) reject(kOption, "a key_pem needs the pem of its certificate");
  // Without a text for the key, that of the certificate must hold the key as well.
  if (cert.key_pem.empty()) check_pem("client_certificate.pem", cert.pem, "PRIVATE KEY");
}

// Checks the options of the proxy: its certificates, its credentials, and its URL, which must have
// a scheme that libcurl knows. Throws std::invalid_argument, by way of `refuse` and the other check
// functions. Messages do not repeat the URL, because it may contain a password.
void check_proxy(const ProxyOptions& proxy) {
  check_pem("proxy.ca_pem", proxy.ca_pem, "CERTIFICATE");
  check_text("proxy.ca_file", proxy.ca_file);
  if (proxy.no_proxy) check_text("proxy.no_proxy", *proxy.no_proxy);
  if (proxy.credentials) {
    if (const char* why = problem_of(*proxy.credentials)) reject("proxy.credentials", why);
    using Scheme = Credentials::Scheme;
    const auto scheme = proxy.credentials->scheme;
    if (scheme != Scheme::Basic && scheme != Scheme::Digest) {
      reject("proxy.credentials", "the scheme must be Basic or Digest");
    }
  }
  if (!proxy.url || proxy.url->empty()) return;  // "" means no proxy
  check_text("proxy.url", *proxy.url);
  const detail::CurlUrl url(curl_url());
  // libcurl takes "host:port" for the address of an http proxy.
  const auto text = proxy.url->find("://") == proxy.url->npos ? "http://" + *proxy.url : *proxy.url;
  // Any scheme is allowed at first, because the message about it below is better than libcurl's.
  const auto code = curl_url_set(url.get(), CURLUPART_URL, text.c_str(), CURLU_NON_SUPPORT_SCHEME);
  if (code != CURLUE_OK) reject("proxy.url", std::string("not a URL: ") + curl_url_strerror(code));
  constexpr std::array kSchemes{"http", "https", "socks4", "socks4a", "socks5", "socks5h"};
  const auto scheme = detail::url_part(url.get(), CURLUPART_SCHEME);
  if (std::ranges::find(kSchemes, scheme) != kSchemes.end()) return;
  reject("proxy.url",
         "the scheme must be one of http, https, socks4, socks4a, socks5 and socks5h, not \"" +
             scheme + "\"");
}

bool is_base64_of_32_bytes(std::string_view text) {
  const auto is_base64 = [](char c) { return is_letter(c) || is_digit(c) || c == '+' || c == '/'; };
  return text.size() == 44 && text.back() == '=' &&
         std::all_of(text.begin(), text.end() - 1, is_base64);
}

// Checks a list "sha256//HASH;sha256//HASH". A text with any other beginning names a file.
void check_pins(std::string_view pins) {
  constexpr std::string_view kHash = "sha256//";
  check_text("pinned_keys", pins);
  if (!pins.starts_with(kHash)) return;
  while (!pins.empty()) {
    const auto pin = take_until(pins, ';');
    if (!pin.starts_with(kHash) || !is_base64_of_32_bytes(pin.substr(kHash.size()))) {
      reject("pinned_keys", "\"" + std::string(pin) +
                                "\" is not sha256// and the 44 characters of a hash in base64");
    }
  }
}

bool is_port(std::string_view text) {
  return text.empty() || to_number<std::uint16_t>(text).value_or(0) > 0;
}

// Removes "NAME:" or "[ADDRESS]:" from the front. Returns false if neither is there.
bool remove_host(std::string_view& text) {
  const auto colon = text.find(':', text.starts_with('[') ? text.find(']') : 0);
  if (colon == std::string_view::npos) return false;
  text.remove_prefix(colon + 1);
  return true;
}

// Checks the form HOST:PORT:TO-HOST:TO-PORT, of which each part may be empty. The message does not
// repeat the entry, because it may be a misplaced URL with a password.
void check_connect_to(const std::string& entry) {
  check_text("connect_to", entry);
  std::string_view rest = entry;
  const bool valid = remove_host(rest) && rest.find(':') != std::string_view::npos &&
                     is_port(take_until(rest, ':')) && remove_host(rest) && is_port(rest);
  if (!valid) reject("connect_to", "expected HOST:PORT:TO-HOST:TO-PORT");
}

bool is_address(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  return is_numeric(std::string(text));
}

// Checks the form HOST:PORT:ADDRESS[,ADDRESS]. The message does not repeat the entry, because it
// may be a misplaced URL with a password.
void check_resolve(const std::string& entry) {
  check_text("resolve", entry);
  std::string_view rest = entry;
  const auto host = take_until(rest, ':');
  const auto port = take_until(rest, ':');
  // libcurl gives a special meaning to entries that begin with "+" or "-".
  bool valid = !host.empty() && !host.starts_with('+') && !host.starts_with('-') && !port.empty() &&
               is_port(port) && !rest.empty() && !rest.ends_with(',');
  while (valid && !rest.empty()) valid = is_address(take_until(rest, ','));
  if (!valid) reject("resolve", "expected HOST:PORT:ADDRESS[,ADDRESS]");
}

// libcurl's callbacks. Their user data is the Easy.

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
  return static_cast<Easy*>(easy)->transfer->send_bytes({data, size * count});
}

int on_debug(CURL* /*handle*/, curl_infotype what, char* data, std::size_t size, void* easy) {
  auto* transfer = static_cast<Easy*>(easy)->transfer;
  if (what == CURLINFO_TEXT && transfer != nullptr) transfer->on_log_text({data, size});
  return 0;
}

int on_progress(void* easy, curl_off_t /*to_receive*/, curl_off_t /*received*/,
                curl_off_t /*to_send*/, curl_off_t sent) {
  auto* transfer = static_cast<Easy*>(easy)->transfer;
  return transfer == nullptr || transfer->report_progress(static_cast<std::uint64_t>(sent)) ? 0 : 1;
}

int on_seek(void* easy, curl_off_t offset, int origin) {
  if (offset != 0 || origin != SEEK_SET) return CURL_SEEKFUNC_CANTSEEK;
  return static_cast<Easy*>(easy)->transfer->rewind_body() ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL;
}

}  // namespace

// Checks the options of a client before it is made. Throws std::invalid_argument, as do the check
// functions that it calls, for the first option that is invalid by itself or together with another.
// Does not read the files that options name, because these may appear later.
void check(const TransportOptions& options) {
  check_duration("connect_timeout", options.connect_timeout);
  check_duration("max_idle", options.max_idle);
  check_duration("ca_reload", options.ca_reload);
  check_text("ca_file", options.ca_file);
  check_text("ca_path", options.ca_path);
  check_pem("ca_pem", options.ca_pem, "CERTIFICATE");
  check_certificate(options.client_certificate);
  check_text("local_interface", options.local_interface);
  // If `lookup_may_block` is false, the loop's own thread runs the look-up, and system_lookup, the
  // default, would block that thread.
  if (!options.lookup && !options.lookup_may_block) {
    reject("lookup_may_block", "false needs a lookup: system_lookup blocks");
  }
  check_text("unix_socket", options.unix_socket);
  constexpr auto kLongest = sizeof(sockaddr_un::sun_path) - 1;  // without the NUL at the end
  if (options.unix_socket.size() > kLongest) {
    reject("unix_socket", "a path of " + std::to_string(options.unix_socket.size()) +
                              " bytes; the system allows " + std::to_string(kLongest));
  }
  if (!valid_header_value(options.user_agent))
    reject("user_agent", "it cannot be sent as a header");
  for (const auto& coding : options.content_codings) {
    if (coding.name.empty() || !valid_header_value(coding.name) || !coding.decoder ||
        !coding.encoder) {
      reject("content_codings", "each needs a name and both functions");
    }
  }
  if (options.max_tls && *options.max_tls < options.min_tls) {
    reject("max_tls", "it is below min_tls");
  }
  if (options.netrc) check_text("netrc", *options.netrc);
  check_pins(options.pinned_keys);
  check_proxy(options.proxy);
  for (const auto& entry : options.connect_to) check_connect_to(entry);
  for (const auto& entry : options.resolve) check_resolve(entry);
  check_curl_options(options.curl_options);
}

std::string default_user_agent() { return "httpretry/" HTTPRETRY_VERSION; }

std::string transport_version() { return curl_version(); }

bool may_use_proxy(const ProxyOptions& options) {
  if (options.url) return !options.url->empty();
  // HTTP_PROXY is not in the list, because CGI sets it from a request header (httpoxy).
  constexpr std::array kNames{"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};
  return std::ranges::any_of(kNames, [](const char* name) { return std::getenv(name) != nullptr; });
}

void Easy::fail(CURLoption option, CURLcode code) {
  if (code == CURLE_OUT_OF_MEMORY) throw std::bad_alloc();
  const auto* about = curl_easy_option_by_id(option);
  throw std::runtime_error("libcurl " + std::string(libcurl().version) + " refuses the option " +
                           (about == nullptr ? std::to_string(option) : about->name) +
                           ", which is needed here: " + curl_easy_strerror(code));
}

// Makes a libcurl handle, and sets the options that stay the same for all of its exchanges.
// `with_proxy`: the options or the environment name a proxy. Throws std::runtime_error if libcurl
// refuses an option, or std::bad_alloc.
Easy::Easy(const TransportOptions& options, bool with_proxy)
    : options_(options),
      user_agent_(options.user_agent.empty() ? "" : "User-Agent: " + options.user_agent),
      accept_encoding_("Accept-Encoding: " + names_of_codings(options.content_codings)),
      handle_(curl_easy_init()) {
  if (!handle_) throw std::bad_alloc();
  set(CURLOPT_NOSIGNAL, 1L);    // signals would disturb a program with several threads
  set(CURLOPT_PATH_AS_IS, 1L);  // each URL is already in the form in which it is sent
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_ERRORBUFFER, error_text.data());
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_TCP_KEEPIDLE, 30L);  // in seconds, like the next
  set(CURLOPT_TCP_KEEPINTVL, 30L);
  // Despite its name this option also affects HTTP: with this value, libcurl does not send a
  // request again when a reused connection gave no response. (It still sends again what an HTTP/2
  // server has refused.) A libcurl without RTSP lacks the option; there, SendTracker stops the
  // second send.
  set_if_known(CURLOPT_RTSP_REQUEST, static_cast<long>(CURL_RTSPREQ_RECEIVE));
  // 300 seconds. The loop gives libcurl the addresses of a host again after 60, so libcurl never
  // has to look up a name itself, except for a proxy.
  if (!with_proxy) set(CURLOPT_DNS_CACHE_TIMEOUT, 300L);
  set(CURLOPT_PREREQFUNCTION, &on_prereq);
  set(CURLOPT_HEADERFUNCTION, &on_header);
  set(CURLOPT_WRITEFUNCTION, &on_body);
  set(CURLOPT_READFUNCTION, &on_read);
  set(CURLOPT_SEEKFUNCTION, &on_seek);
  set(CURLOPT_DEBUGFUNCTION, &on_debug);
  set(CURLOPT_XFERINFOFUNCTION, &on_progress);  // called only if NOPROGRESS is 0
  // The user data of these callbacks is this Easy.
  for (const auto option :
       {CURLOPT_PRIVATE, CURLOPT_PREREQDATA, CURLOPT_HEADERDATA, CURLOPT_WRITEDATA,
        CURLOPT_READDATA, CURLOPT_SEEKDATA, CURLOPT_DEBUGDATA, CURLOPT_XFERINFODATA}) {
    set(option, this);
  }
  configure_tls();
  set_text(CURLOPT_UNIX_SOCKET_PATH, options_.unix_socket);
  set_text(CURLOPT_INTERFACE, options_.local_interface);
  // The enumerators have libcurl's values.
  static_assert(static_cast<long>(IpVersion::V4) == CURL_IPRESOLVE_V4 &&
                static_cast<long>(IpVersion::V6) == CURL_IPRESOLVE_V6);
  set(CURLOPT_IPRESOLVE, static_cast<long>(options_.ip_version));
  for (const auto& entry : options_.connect_to) connect_to_.add(entry.c_str());
  set(CURLOPT_CONNECT_TO, connect_to_.chained());
  configure_proxy(with_proxy);
  for (const auto& option : options_.curl_options) set_curl_option(option);  // already checked
}

// Sets how libcurl verifies servers: the range of TLS versions, the pinned keys, and the
// certificates that it trusts (from a bundle file, a directory, or a PEM text in memory).
void Easy::configure_tls() {
  long versions =
      options_.min_tls == TlsVersion::Tls13 ? CURL_SSLVERSION_TLSv1_3 : CURL_SSLVERSION_TLSv1_2;
  if (options_.max_tls) {
    versions |= *options_.max_tls == TlsVersion::Tls13 ? CURL_SSLVERSION_MAX_TLSv1_3
                                                       : CURL_SSLVERSION_MAX_TLSv1_2;
  }
  set(CURLOPT_SSLVERSION, versions);
  set_text(CURLOPT_PINNEDPUBLICKEY, options_.pinned_keys);
  set(CURLOPT_SSL_VERIFYPEER, options_.verify_tls ? 1L : 0L);
  // With 2, the certificate must be for the host.
  set(CURLOPT_SSL_VERIFYHOST, options_.verify_tls ? 2L : 0L);
  set_text(CURLOPT_CAINFO, options_.ca_file);
  set_text(CURLOPT_CAPATH, options_.ca_path);
  // Debian builds libcurl with a default directory of certificates (CAPATH). With a directory,
  // libcurl does not cache certificates, so it would read them again for each connection. If the
  // user names no directory, and the certificates can come from a file (the user's, or libcurl's
  // default bundle), the directory is unset.
  const char* const bundle = libcurl().cainfo;  // nullptr if unknown
  const bool has_file =
      !options_.ca_file.empty() || (bundle != nullptr && ::access(bundle, R_OK) == 0);
  if (options_.ca_path.empty() && has_file) {
    set_if_known(CURLOPT_CAPATH, nullptr);
    set_if_known(CURLOPT_PROXY_CAPATH, nullptr);
  }
  if (!options_.ca_pem.empty()) {
    set_pem(CURLOPT_CAINFO_BLOB, options_.ca_pem);
    // `ca_pem` replaces all others, but libcurl would go on trusting those of a directory.
    set_if_known(CURLOPT_CAPATH, nullptr);
  }
  // How long libcurl caches the certificates of a file before it reads the file again.
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(options_.ca_reload).count();
  set_if_known(CURLOPT_CA_CACHE_TIMEOUT, static_cast<long>(seconds));
}

// Sets the proxy that the options name. If they name none, libcurl takes that of the environment.
// If neither names one (`with_proxy` is false), sets an empty proxy and an empty list of hosts
// without a proxy. Otherwise libcurl would look for the variables of both in each exchange.
void Easy::configure_proxy(bool with_proxy) {
  if (!with_proxy) {
    // A libcurl built without proxies knows neither option, which is fine: it uses no proxy anyway.
    set_if_known(CURLOPT_PROXY, "");
    set_if_known(CURLOPT_NOPROXY, "");
    return;
  }
  const auto& proxy = options_.proxy;
  // From here on, `set` throws if libcurl lacks an option: the user wants a proxy.
  if (proxy.url) set(CURLOPT_PROXY, proxy.url->c_str());
  // The options about TLS are for https proxies.
  set(CURLOPT_PROXY_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  set(CURLOPT_PROXY_SSL_VERIFYPEER, proxy.verify_tls ? 1L : 0L);
  // With 2, the certificate must be for the proxy's host.
  set(CURLOPT_PROXY_SSL_VERIFYHOST, proxy.verify_tls ? 2L : 0L);
  set_text(CURLOPT_PROXY_CAINFO, proxy.ca_file);
  if (!proxy.ca_pem.empty()) set_pem(CURLOPT_PROXY_CAINFO_BLOB, proxy.ca_pem);
  // If the user names certificates, unsets libcurl's default directory of certificates (CAPATH),
  // because libcurl would trust the certificates in that directory as well.
  if (!proxy.ca_file.empty() || !proxy.ca_pem.empty()) set_if_known(CURLOPT_PROXY_CAPATH, nullptr);
  if (proxy.no_proxy) set(CURLOPT_NOPROXY, proxy.no_proxy->c_str());
  for (std::size_t i = 0; i < proxy.headers.size(); ++i) proxy_lines_.add(proxy.headers.line(i));
  set(CURLOPT_PROXYHEADER, proxy_lines_.chained());
  if (!proxy.credentials) return;
  set_credentials(*proxy.credentials, CURLOPT_PROXYAUTH, CURLOPT_PROXYUSERNAME,
                  CURLOPT_PROXYPASSWORD);
}

}  // namespace httpretry
