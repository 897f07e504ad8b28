#include "easy.hpp"

#include "url_parts.hpp"

#include <httpretry/curl/cookies.hpp>

#include <algorithm>
#include <new>

namespace httpretry {
namespace {

// libcurl takes "Name:" for "leave this field out". It adds these three by itself.
constexpr char kNoAccept[] = "Accept:";
constexpr char kNoExpect[] = "Expect:";
constexpr char kExpect[] = "Expect: 100-continue";
constexpr char kNoContentType[] = "Content-Type:";
constexpr char kGzip[] = "Accept-Encoding: gzip";

// For libcurl 0 is its default, or no limit, so it is not given that: a limit is rounded up, and
// one that is far away, or none, is the longest that fits a long of 32 bits.
long milliseconds(Duration time) {
  constexpr Duration kMost = std::chrono::hours(24 * 24);
  const auto bounded = std::min(time, kMost);
  return std::max(1L,
                  static_cast<long>(std::chrono::ceil<std::chrono::milliseconds>(bounded).count()));
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

Easy::Easy(const TransportOptions& options, CURLSH* share, const SocketHooks& hooks, bool proxied)
    : options_(options), handle_(curl_easy_init()) {
  if (!handle_) throw std::bad_alloc();
  configure(options, share, hooks, proxied);
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
  if (options.on_connection) set(CURLOPT_CERTINFO, 1L);
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
  set(CURLOPT_SSLCERTTYPE, pkcs12 ? "P12" : "PEM");
  set(CURLOPT_SSLCERT, text(certificate.file));
  set(CURLOPT_SSLKEY, text(certificate.key_file));
  set(CURLOPT_KEYPASSWD, text(certificate.key_password));
}

// Never unset, as with credentials.
void Easy::set_netrc(const std::string& file) {
  set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_OPTIONAL));
  if (!file.empty()) set(CURLOPT_NETRC_FILE, file.c_str());
}

// libcurl's own engine, on this exchange's own list: so what is sent where, and which domains a
// cookie may be for, is libcurl's decision, with its list of public suffixes. Never unset either.
void Easy::set_cookies(const Request& request, const Url& url) {
  set(CURLOPT_COOKIEFILE, "");
  for (const auto& line : options_.cookies->lines_for(cookie_host(request, url))) {
    set(CURLOPT_COOKIELIST, line.c_str());
  }
  // As libcurl writes them: it need not be to the letter what it was given.
  cookies_before_ = cookie_lines();
  // The request's own go into the one field that a request may have.
  std::string own;
  for (const auto value : request.headers().get_all("Cookie")) {
    own.append(own.empty() ? "" : "; ").append(value);
  }
  if (!own.empty()) set(CURLOPT_COOKIE, own.c_str());
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
  set(CURLOPT_HTTPAUTH, digest ? CURLAUTH_DIGEST : CURLAUTH_BASIC);
  set(CURLOPT_USERNAME, credentials.user.c_str());
  set(CURLOPT_PASSWORD, credentials.password.c_str());
}

void Easy::set_url(const Url& url) {
  if (url_ && &url_->parts() == &url.parts()) return;
  // Where only CURLU changes, libcurl 7.88 goes on to report, and to authenticate for, the URL
  // before: so URL is set beside it. NULL has libcurl put the text together by itself, with the
  // userinfo, which takes a tenth of all the instructions of a small exchange.
  set(CURLOPT_URL, url.has_userinfo() ? nullptr : url.to_string().c_str());
  set(CURLOPT_CURLU, url.parts().handle.get());
  url_ = url;  // kept alive, as libcurl keeps the pointer
}

void Easy::set_long(CURLoption option, long value, long& known) {
  if (value == known) return;
  set(option, value);
  known = value;
}

void Easy::set_upload_rate(std::uint64_t rate) {
  if (rate == upload_rate_) return;
  upload_rate_ = rate;
  set(CURLOPT_MAX_SEND_SPEED_LARGE, static_cast<curl_off_t>(rate));
}

void Easy::set_method(const char* method) {
  if (method_ == method) return;
  method_ = method;
  set(CURLOPT_CUSTOMREQUEST, method_.empty() ? nullptr : method);
}

// Each shape is reached from HTTPGET, which undoes what the others set.
void Easy::set_shape(const Request& request, const SendPlan& plan) {
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
    set(CURLOPT_HTTPGET, 1L);
    if (shape == Shape::Head) set(CURLOPT_NOBODY, 1L);
    if (shape == Shape::Stream) set(CURLOPT_UPLOAD, 1L);
    if (shape == Shape::Bytes) set(CURLOPT_POST, 1L);
    shape_ = shape;
  }
  if (shape == Shape::Stream) {
    set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(plan.body_size));
  }
  if (shape == Shape::Bytes) {
    static const std::string none;
    const auto* bytes = request.body().present() ? request.body().bytes() : &none;
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(bytes->size()));
    set(CURLOPT_POSTFIELDS, bytes->data());
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
    lines_.add(headers.line(i));
  }
  if (!headers.contains("Accept")) lines_.add(kNoAccept);
  if (shape_ == Shape::Bytes || shape_ == Shape::Stream) {
    if (!headers.contains("Expect")) {
      lines_.add(expects_continue(request, plan) ? kExpect : kNoExpect);
    }
    if (!headers.contains("Content-Type")) lines_.add(kNoContentType);
  }
  if (request.options().compressed && !headers.contains("Accept-Encoding")) {
    lines_.add(kGzip);
  }
  for (const auto* line : {plan.range, plan.if_range}) {
    if (line != nullptr) lines_.add(line);
  }
  set(CURLOPT_HTTPHEADER, lines_.chained());
}

// libcurl takes them into the cache that all transfers of a loop share.
void Easy::set_addresses(const std::string* entry) {
  if (entry == nullptr && addresses_.empty()) return;
  addresses_.clear();
  if (entry != nullptr) addresses_.add(entry->c_str());
  set(CURLOPT_RESOLVE, addresses_.chained());
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
