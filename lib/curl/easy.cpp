#include "easy.hpp"

#include "url_parts.hpp"

#include <httpretry/curl/cookies.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace httpretry {
namespace {

// libcurl takes "Name:" for "leave this field out". It adds these three by itself.
constexpr char kNoAccept[] = "Accept:";
constexpr char kNoExpect[] = "Expect:";
constexpr char kExpect[] = "Expect: 100-continue";
constexpr char kNoContentType[] = "Content-Type:";
constexpr char kGzip[] = "Accept-Encoding: gzip";

char* line_of(const char* text) {
  return const_cast<char*>(text);  // libcurl's list is not const, and is only read
}

void chain(std::vector<curl_slist>& list) {
  for (std::size_t i = 1; i < list.size(); ++i) list[i - 1].next = &list[i];
}

// What libcurl has no memory for must not be left out in silence: a method, a pin, an authority.
template <class Value>
void set(CURL* easy, CURLoption option, Value value) {
  if (curl_easy_setopt(easy, option, value) == CURLE_OUT_OF_MEMORY) throw std::bad_alloc();
}

// For libcurl 0 is its default, or no limit, so it is not given that: a limit is rounded up, and
// one that is far away, or none, is the longest that fits a long of 32 bits.
long milliseconds(Duration time) {
  constexpr Duration kMost = std::chrono::hours(24 * 24);
  const auto bounded = std::min(time, kMost);
  return std::max(1L,
                  static_cast<long>(std::chrono::ceil<std::chrono::milliseconds>(bounded).count()));
}

// Debian builds libcurl with a directory of hashed certificates, which switches its cache of the
// certificate store off. The bundle file holds the same certificates.
bool has_readable_bundle() {
  const auto* about = curl_version_info(CURLVERSION_NOW);
  return about->cainfo != nullptr && ::access(about->cainfo, R_OK) == 0;
}

// Whose cookies libcurl sends: those of the name in a Host field, without its port, or of the URL;
// an address without its brackets.
std::string_view cookie_host(const Request& request, const Url& url) {
  auto host = request.headers().get("Host").value_or(std::string_view());
  if (host.empty()) host = url.host();
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

}  // namespace

bool may_use_proxy(const ProxyOptions& options) {
  if (options.url) return !options.url->empty();
  // HTTP_PROXY is not among them, for a server's CGI sets it from a request header.
  constexpr std::array kNames{"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};
  return std::any_of(kNames.begin(), kNames.end(),
                     [](const char* name) { return std::getenv(name) != nullptr; });
}

Easy::Easy(const TransportOptions& options, CURLSH* share, const SocketHooks& hooks, bool proxied)
    : options_(options), handle_(curl_easy_init()) {
  if (!handle_) throw std::bad_alloc();
  configure(options, share, hooks, proxied);
}

void Easy::configure(const TransportOptions& options, CURLSH* share, const SocketHooks& hooks,
                     bool proxied) {
  CURL* easy = handle();
  set(easy, CURLOPT_NOSIGNAL, 1L);
  set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  set(easy, CURLOPT_SHARE, share);
  set(easy, CURLOPT_ERRORBUFFER, error_text_.data());
  set(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  set(easy, CURLOPT_TCP_KEEPIDLE, 30L);
  set(easy, CURLOPT_TCP_KEEPINTVL, 30L);
  set(easy, CURLOPT_PIPEWAIT, 1L);
  set(easy, CURLOPT_BUFFERSIZE, 65536L);
  // Longer than any answer of our resolver is used: libcurl shall not look up a name by itself.
  if (!proxied) set(easy, CURLOPT_DNS_CACHE_TIMEOUT, 300L);

  set(easy, CURLOPT_PREREQFUNCTION, &on_prereq);
  set(easy, CURLOPT_PREREQDATA, this);
  set(easy, CURLOPT_HEADERFUNCTION, &on_header);
  set(easy, CURLOPT_HEADERDATA, this);
  set(easy, CURLOPT_WRITEFUNCTION, &on_body);
  set(easy, CURLOPT_WRITEDATA, this);
  set(easy, CURLOPT_READFUNCTION, &on_read);
  set(easy, CURLOPT_READDATA, this);
  set(easy, CURLOPT_SEEKFUNCTION, &on_seek);
  set(easy, CURLOPT_SEEKDATA, this);
  set(easy, CURLOPT_OPENSOCKETFUNCTION, hooks.open);
  set(easy, CURLOPT_OPENSOCKETDATA, hooks.loop);
  set(easy, CURLOPT_CLOSESOCKETFUNCTION, hooks.close);
  set(easy, CURLOPT_CLOSESOCKETDATA, hooks.loop);
  configure_tls(options);
  configure_proxy(options.proxy, proxied);
  configure_way(options);
}

void Easy::configure_tls(const TransportOptions& options) {
  CURL* easy = handle();
  set(easy, CURLOPT_SSLVERSION,
      static_cast<long>(options.min_tls == TlsVersion::Tls13 ? CURL_SSLVERSION_TLSv1_3
                                                             : CURL_SSLVERSION_TLSv1_2));
  if (!options.pinned_keys.empty()) {
    set(easy, CURLOPT_PINNEDPUBLICKEY, options.pinned_keys.c_str());
  }
  if (!options.verify_tls) {
    set(easy, CURLOPT_SSL_VERIFYPEER, 0L);
    set(easy, CURLOPT_SSL_VERIFYHOST, 0L);
  }
  if (!options.ca_file.empty()) set(easy, CURLOPT_CAINFO, options.ca_file.c_str());
  if (!options.ca_path.empty()) {
    set(easy, CURLOPT_CAPATH, options.ca_path.c_str());
  } else if (!options.ca_file.empty() || has_readable_bundle()) {
    set(easy, CURLOPT_CAPATH, nullptr);
    set(easy, CURLOPT_PROXY_CAPATH, nullptr);
  }
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(options.ca_reload).count();
  set(easy, CURLOPT_CA_CACHE_TIMEOUT, static_cast<long>(seconds));
}

void Easy::configure_proxy(const ProxyOptions& proxy, bool proxied) {
  CURL* easy = handle();
  // Without a proxy variable libcurl would still look for one at each exchange.
  if (!proxied) {
    set(easy, CURLOPT_PROXY, "");
    return;
  }
  if (proxy.url) set(easy, CURLOPT_PROXY, proxy.url->c_str());
  set(easy, CURLOPT_PROXY_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!proxy.verify_tls) {
    set(easy, CURLOPT_PROXY_SSL_VERIFYPEER, 0L);
    set(easy, CURLOPT_PROXY_SSL_VERIFYHOST, 0L);
  }
  if (!proxy.ca_file.empty()) {
    set(easy, CURLOPT_PROXY_CAINFO, proxy.ca_file.c_str());
    set(easy, CURLOPT_PROXY_CAPATH, nullptr);
  }
  if (proxy.no_proxy) set(easy, CURLOPT_NOPROXY, proxy.no_proxy->c_str());
  if (!proxy.credentials) return;
  const bool digest = proxy.credentials->scheme == Credentials::Scheme::Digest;
  set(easy, CURLOPT_PROXYAUTH, digest ? CURLAUTH_DIGEST : CURLAUTH_BASIC);
  set(easy, CURLOPT_PROXYUSERNAME, proxy.credentials->user.c_str());
  set(easy, CURLOPT_PROXYPASSWORD, proxy.credentials->password.c_str());
}

// Which way connections take.
void Easy::configure_way(const TransportOptions& options) {
  CURL* easy = handle();
  if (!options.unix_socket.empty()) {
    set(easy, CURLOPT_UNIX_SOCKET_PATH, options.unix_socket.c_str());
  }
  if (options.ip_version != IpVersion::Any) {
    set(easy, CURLOPT_IPRESOLVE,
        static_cast<long>(options.ip_version == IpVersion::V4 ? CURL_IPRESOLVE_V4
                                                              : CURL_IPRESOLVE_V6));
  }
  if (!options.local_interface.empty()) {
    set(easy, CURLOPT_INTERFACE, options.local_interface.c_str());
  }
  if (options.connect_to.empty()) return;
  for (const auto& entry : options.connect_to) {
    connect_to_.push_back({line_of(entry.c_str()), nullptr});
  }
  chain(connect_to_);
  set(easy, CURLOPT_CONNECT_TO, connect_to_.data());
}

void Easy::prepare(const Request& request, const Url& url, const SendPlan& plan) {
  const auto& options = request.options();
  error_text_[0] = '\0';
  set_url(url);
  set_shape(request, plan);
  set_headers(request, plan);
  set_addresses(plan.addresses);
  if (const auto& credentials = options.credentials) set_credentials(*credentials);
  if (!options_.client_certificate.file.empty()) set_certificate(plan.certificate);
  if (plan.netrc && !options.credentials) set_netrc(*options_.netrc);
  if (plan.cookies) set_cookies(request, url);
  // Never unset either: see SendPlan::private_handle.
  if (options.on_connection) curl_easy_setopt(handle(), CURLOPT_CERTINFO, 1L);
  set_upload_rate(options.upload_rate.value_or(0));
  set_http_version(request, url, plan);
  set_long(CURLOPT_MAXAGE_CONN, plan.max_idle_seconds, max_idle_seconds_);
  set_long(CURLOPT_CONNECTTIMEOUT_MS, milliseconds(plan.connect_timeout), connect_timeout_ms_);
  set_long(CURLOPT_EXPECT_100_TIMEOUT_MS, milliseconds(options.expect_timeout), expect_timeout_ms_);
  // Our own timer ends an attempt in time; this only catches what would slip past it.
  const auto left = plan.time_left;
  set_long(CURLOPT_TIMEOUT_MS, left == kForever ? 0 : milliseconds(left) + 2000, timeout_ms_);
}

void Easy::set_http_version(const Request& request, const Url& url, const SendPlan& plan) {
  // libcurl 7.88 fails with code 16 where it sends on such a connection for the second time.
  static const bool reusable = curl_version_info(CURLVERSION_NOW)->version_num >= 0x080000;
  const auto wanted = request.options().http_version;
  const bool tls = url.scheme() == "https";
  bool once = false;
  // Without TLS nothing negotiates HTTP/2, but libcurl would have all requests to a server wait,
  // for PIPEWAIT, until the first of them is answered.
  long version = wanted == HttpVersion::Any && tls ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1;
  if (wanted == HttpVersion::Http2PriorKnowledge) {
    version = CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE;
    once = !reusable && !tls;
  }
  set_long(CURLOPT_HTTP_VERSION, version, http_version_);
  set_long(CURLOPT_FORBID_REUSE, once ? 1 : 0, forbid_reuse_);
  set_long(CURLOPT_FRESH_CONNECT, plan.fresh_connection || once ? 1 : 0, fresh_connection_);
}

void Easy::set_certificate(bool wanted) {
  if (wanted == certified_) return;
  certified_ = wanted;
  const auto& certificate = options_.client_certificate;
  const auto text = [&](const std::string& value) {
    return wanted && !value.empty() ? value.c_str() : nullptr;
  };
  const bool pkcs12 = certificate.file.ends_with(".p12") || certificate.file.ends_with(".pfx");
  set(handle(), CURLOPT_SSLCERTTYPE, pkcs12 ? "P12" : "PEM");
  set(handle(), CURLOPT_SSLCERT, text(certificate.file));
  set(handle(), CURLOPT_SSLKEY, text(certificate.key_file));
  set(handle(), CURLOPT_KEYPASSWD, text(certificate.key_password));
}

// Never unset, as with credentials.
void Easy::set_netrc(const std::string& file) {
  set(handle(), CURLOPT_NETRC, static_cast<long>(CURL_NETRC_OPTIONAL));
  if (!file.empty()) set(handle(), CURLOPT_NETRC_FILE, file.c_str());
}

// libcurl's own engine, on this exchange's own list: so what is sent where, and which domains a
// cookie may be for, is libcurl's to say, with its list of public suffixes. Never unset either.
void Easy::set_cookies(const Request& request, const Url& url) {
  set(handle(), CURLOPT_COOKIEFILE, "");
  for (const auto& line : options_.cookies->lines_for(cookie_host(request, url))) {
    set(handle(), CURLOPT_COOKIELIST, line.c_str());
  }
  // As libcurl writes them: it need not be to the letter what it was given.
  cookies_before_ = cookie_lines();
  // The request's own go into the one field that a request may have.
  std::string own;
  for (const auto value : request.headers().get_all("Cookie")) {
    own.append(own.empty() ? "" : "; ").append(value);
  }
  if (!own.empty()) set(handle(), CURLOPT_COOKIE, own.c_str());
}

std::vector<std::string> Easy::cookie_lines() const {
  curl_slist* first = nullptr;
  curl_easy_getinfo(handle(), CURLINFO_COOKIELIST, &first);
  const std::unique_ptr<curl_slist, void (*)(curl_slist*)> list(first, &curl_slist_free_all);
  std::vector<std::string> lines;
  for (const auto* node = first; node != nullptr; node = node->next) lines.emplace_back(node->data);
  return lines;
}

void Easy::return_cookies() { options_.cookies->learn(cookies_before_, cookie_lines()); }

// Never unset: a handle with credentials serves one exchange.
void Easy::set_credentials(const Credentials& credentials) {
  const bool digest = credentials.scheme == Credentials::Scheme::Digest;
  set(handle(), CURLOPT_HTTPAUTH, digest ? CURLAUTH_DIGEST : CURLAUTH_BASIC);
  set(handle(), CURLOPT_USERNAME, credentials.user.c_str());
  set(handle(), CURLOPT_PASSWORD, credentials.password.c_str());
}

void Easy::set_url(const Url& url) {
  if (url_ && &url_->parts() == &url.parts()) return;
  // Where only CURLU changes, libcurl 7.88 goes on to report, and to authenticate for, the URL
  // before: so URL is set beside it. NULL has libcurl put the text together by itself, with the
  // userinfo, which takes a tenth of all the instructions of a small exchange.
  set(handle(), CURLOPT_URL, url.has_userinfo() ? nullptr : url.to_string().c_str());
  set(handle(), CURLOPT_CURLU, url.parts().handle.get());
  url_ = url;  // kept alive, as libcurl keeps the pointer
}

void Easy::set_long(CURLoption option, long value, long& known) {
  if (value == known) return;
  set(handle(), option, value);
  known = value;
}

void Easy::set_upload_rate(std::uint64_t rate) {
  if (rate == upload_rate_) return;
  upload_rate_ = rate;
  curl_easy_setopt(handle(), CURLOPT_MAX_SEND_SPEED_LARGE, static_cast<curl_off_t>(rate));
}

void Easy::set_method(const char* method) {
  if (method_ == method) return;
  method_ = method;
  set(handle(), CURLOPT_CUSTOMREQUEST, method_.empty() ? nullptr : method);
}

// Each shape is reached from HTTPGET, which undoes what the others set.
void Easy::set_shape(const Request& request, const SendPlan& plan) {
  CURL* easy = handle();
  const auto& method = request.method();
  const bool wants_body = method == "POST" || method == "PUT" || method == "PATCH";
  Shape shape = Shape::Get;
  if (plan.streamed_body) {
    shape = Shape::Stream;
  } else if (request.body().present() || wants_body) {
    shape = Shape::Bytes;
  } else if (method == "HEAD") {
    shape = Shape::Head;
  }

  if (shape != shape_) {
    set(easy, CURLOPT_HTTPGET, 1L);
    if (shape == Shape::Head) set(easy, CURLOPT_NOBODY, 1L);
    if (shape == Shape::Stream) set(easy, CURLOPT_UPLOAD, 1L);
    if (shape == Shape::Bytes) set(easy, CURLOPT_POST, 1L);
    shape_ = shape;
  }
  if (shape == Shape::Stream) {
    set(easy, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(plan.body_size));
  }
  if (shape == Shape::Bytes) {
    static const std::string none;
    const auto* bytes = request.body().present() ? request.body().bytes() : &none;
    set(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(bytes->size()));
    set(easy, CURLOPT_POSTFIELDS, bytes->data());
  }
  const bool implied = (shape == Shape::Get && method == "GET") || shape == Shape::Head ||
                       (shape == Shape::Bytes && method == "POST");
  set_method(implied ? "" : method.c_str());
}

bool Easy::expects_continue(const Request& request, const SendPlan& plan) const {
  const auto& from = request.options().expect_continue_from;
  if (!from) return false;
  if (shape_ == Shape::Bytes) {
    return request.body().present() && request.body().bytes()->size() >= *from;
  }
  return plan.body_size < 0 || static_cast<std::uint64_t>(plan.body_size) >= *from;
}

void Easy::set_headers(const Request& request, const SendPlan& plan) {
  const auto& headers = request.headers();
  lines_.clear();
  for (std::size_t i = 0; i < headers.size(); ++i) {
    if (plan.cookies && equal_ignoring_case(headers[i].name, "Cookie")) continue;
    lines_.push_back({line_of(headers.line(i)), nullptr});
  }
  if (!headers.contains("Accept")) lines_.push_back({line_of(kNoAccept), nullptr});
  if (shape_ == Shape::Bytes || shape_ == Shape::Stream) {
    if (!headers.contains("Expect")) {
      lines_.push_back({line_of(expects_continue(request, plan) ? kExpect : kNoExpect), nullptr});
    }
    if (!headers.contains("Content-Type")) lines_.push_back({line_of(kNoContentType), nullptr});
  }
  if (request.options().compressed && !headers.contains("Accept-Encoding")) {
    lines_.push_back({line_of(kGzip), nullptr});
  }
  for (const auto* line : {plan.range, plan.if_range}) {
    if (line != nullptr) lines_.push_back({line_of(line), nullptr});
  }
  chain(lines_);
  set(handle(), CURLOPT_HTTPHEADER, lines_.empty() ? nullptr : lines_.data());
}

// libcurl takes them into the cache that all transfers of a loop share.
void Easy::set_addresses(const std::string* entry) {
  auto* text = entry == nullptr ? nullptr : line_of(entry->c_str());
  if (text == nullptr && addresses_.data == nullptr) return;
  addresses_.data = text;
  set(handle(), CURLOPT_RESOLVE, text == nullptr ? nullptr : &addresses_);
}

int Easy::on_prereq(void* self, char* /*remote*/, char* /*local*/, int /*port*/, int local_port) {
  return static_cast<Easy*>(self)->listener_->about_to_send(local_port) ? CURL_PREREQFUNC_OK
                                                                        : CURL_PREREQFUNC_ABORT;
}

std::size_t Easy::on_header(char* data, std::size_t size, std::size_t count, void* self) {
  const auto bytes = size * count;
  return static_cast<Easy*>(self)->listener_->header_line({data, bytes}) ? bytes : 0;
}

std::size_t Easy::on_body(char* data, std::size_t size, std::size_t count, void* self) {
  const auto bytes = size * count;
  switch (static_cast<Easy*>(self)->listener_->body_bytes({data, bytes})) {
    case EasyListener::Taken::All: return bytes;
    case EasyListener::Taken::NotNow: return CURL_WRITEFUNC_PAUSE;
    case EasyListener::Taken::Refused: break;
  }
  return bytes + 1;  // 0 would be taken for success where there are no bytes
}

std::size_t Easy::on_read(char* data, std::size_t size, std::size_t count, void* self) {
  return static_cast<Easy*>(self)->listener_->read_body({data, size * count});
}

int Easy::on_seek(void* self, curl_off_t offset, int origin) {
  if (offset != 0 || origin != SEEK_SET) return CURL_SEEKFUNC_CANTSEEK;
  return static_cast<Easy*>(self)->listener_->rewind_body() ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL;
}

}  // namespace httpretry
