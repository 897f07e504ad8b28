#include "easy.hpp"

#include "transfer.hpp"

#include "lib/core/base/regular_file.hpp"
#include "lib/core/chain/detail/call_state.hpp"

#include <httpretry/curl/cookies.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace httpretry {
namespace {

// libcurl takes 0 for its default, or for no limit, so the result is never 0: a limit is rounded
// up. A limit that is far away, or none, becomes the longest that fits a long of 32 bits.
long milliseconds(Duration time) {
  constexpr Duration kMost = std::chrono::hours(24 * 24);
  const auto bounded = std::chrono::ceil<std::chrono::milliseconds>(std::min(time, kMost));
  return std::max(1L, static_cast<long>(bounded.count()));
}

// The host whose cookies libcurl sends: that of the header Host, without its port, or of the URL.
// An address has no brackets.
std::string_view cookie_host(const Request& request, const Url& url) {
  auto host = request.headers().get("Host").value_or(std::string_view());
  if (host.empty()) host = url.host();
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

// A server closes a connection that was idle for some time, perhaps just when we use it. A request
// that must not be sent twice therefore uses only connections that were idle for less than this,
// or than the server has announced. Common servers keep idle connections for 5 s and more.
constexpr long kIdleSecondsIfUnsafe = 2;

// For MAXAGE_CONN, which compares whole seconds: N allows connections that were idle for less than
// N + 1. Negative: none.
long idle_limit(const Request& request, const TransportOptions& options, const OriginInfo& origin) {
  using std::chrono::seconds;
  const auto usual = static_cast<long>(std::chrono::floor<seconds>(options.max_idle).count());
  if (request.repeatable()) return usual;
  const auto announced = origin.keep_alive_seconds;
  const auto limit = announced >= 0 ? announced - 1 : kIdleSecondsIfUnsafe;
  return std::min(usual, limit - 1);
}

Error unreadable(const std::string& what, const std::string& path, const std::string& why) {
  Error error(Errc::InvalidRequest, "cannot read " + what + " " + path + ": " + why);
  error.curl_code = CURLE_READ_ERROR;
  return error;
}

bool is_digest(const std::optional<Credentials>& credentials) {
  return credentials && credentials->scheme == Credentials::Scheme::Digest;
}

// libcurl reads these files in the loop, and would wait for ever where one is a pipe. About one
// that is missing, it has errors of its own.
Result<void> check_tls_files(const TransportOptions& options, bool tls) {
  constexpr std::string_view kHash = "sha256//";
  const auto& certificate = options.client_certificate;
  const auto& pins = options.pinned_keys;
  const auto check_file = [](bool used, const char* what, const std::string& path) -> Result<void> {
    if (!used || path.empty() || !could_make_wait(path)) return {};
    return unreadable(what, path, kCouldMakeWait);
  };
  auto checked = check_file(tls, "ca_file", options.ca_file);
  if (checked) checked = check_file(tls, "client_certificate.file", certificate.file);
  if (checked) checked = check_file(tls, "client_certificate.key_file", certificate.key_file);
  if (checked) checked = check_file(tls && !pins.starts_with(kHash), "pinned_keys", pins);
  if (checked) checked = check_file(true, "proxy.ca_file", options.proxy.ca_file);
  return checked;
}

// Likewise. The one in the home directory need not exist.
Result<void> check_netrc(std::string path) {
  if (path.empty()) {
    const char* home = std::getenv("HOME");
    path = std::string(home == nullptr ? "" : home) + "/.netrc";
    if (::access(path.c_str(), R_OK) != 0) return {};
  }
  const auto why = cannot_read(path);
  if (why.empty()) return {};
  return unreadable("netrc file", path, why);
}

// Whether libcurl would resume a TLS session that was made with the certificate, which then counts,
// where the request has none. From 8.12 on it knows a certificate from memory only by a hash that
// is made where the server is verified; in 8.21 always.
bool would_share_session(const TransportOptions& options) {
  static const bool told_apart = curl_version_info(CURLVERSION_NOW)->version_num >= 0x081500;
  return !told_apart && !options.verify_tls && !options.client_certificate.pem.empty();
}

}  // namespace

SendPlan make_send_plan(const Request& request, const ExchangeLimits& limits, const Url& url,
                        const Call& call, const TransportOptions& options,
                        const OriginInfo& origin) {
  const auto& wanted = request.options();
  SendPlan plan;
  const bool own_origin = url.origin() == call.origin();
  plan.certificate = own_origin && present(options.client_certificate);
  plan.netrc = options.netrc && own_origin;
  plan.cookies = options.cookies && (own_origin || options.cookies_of_other_origins);
  plan.private_handle = url.has_userinfo() || wanted.credentials || plan.cookies || plan.netrc ||
                        wanted.on_connection || wanted.on_progress || wanted.upload_rate ||
                        (plan.certificate && would_share_session(options));
  plan.negotiates = is_digest(wanted.credentials);
  plan.asks_for_challenge = plan.negotiates || is_digest(options.proxy.credentials);
  plan.http_version = wanted.http_version;
  if (plan.negotiates && plan.http_version == HttpVersion::Any) {
    plan.http_version = HttpVersion::Http1;
  }
  plan.may_multiplex =
      plan.http_version != HttpVersion::Http1 &&
      (url.scheme() == "https" || plan.http_version == HttpVersion::Http2PriorKnowledge);
  const auto idle = idle_limit(request, options, origin);
  // A hedge must not wait for the connection that the other send may be stuck in.
  const auto* racing = Call::State::racing(call);
  const bool must_not_share =
      racing != nullptr && racing->is_hedge() && plan.may_multiplex && !origin.speaks_http1;
  plan.fresh_connection = limits.fresh_connection || idle < 0 || must_not_share;
  plan.max_idle_seconds = std::max(0L, idle);
  plan.http2 = origin.speaks_http2;
  plan.connect_timeout = limits.connect_timeout.value_or(options.connect_timeout);
  return plan;
}

Result<void> check_sendable(const Request& request, const TransportOptions& options,
                            const SendPlan& plan) {
  for (const auto* name : {"Content-Length", "Transfer-Encoding"}) {
    if (!request.headers().contains(name)) continue;
    return Error(Errc::InvalidRequest,
                 std::string("the header ") + name + " is made from the body and cannot be set");
  }
  if (const auto& credentials = request.options().credentials) {
    if (const char* why = unusable(*credentials)) return Error(Errc::InvalidRequest, why);
  }
  const bool tls = request.parsed_url()->scheme() == "https";
  if (auto checked = check_tls_files(options, tls); !checked) return checked;
  return plan.netrc ? check_netrc(*options.netrc) : Result<void>();
}

const char* unusable(const Credentials& credentials) {
  constexpr std::string_view kBad("\r\n\0", 3);
  if (credentials.user.find_first_of(kBad) != std::string::npos ||
      credentials.password.find_first_of(kBad) != std::string::npos) {
    return "a name or password with a line break or a NUL byte cannot be sent";
  }
  // RFC 7617 §2: the server takes the first colon for the end of the name.
  const bool basic = credentials.scheme == Credentials::Scheme::Basic;
  if (basic && credentials.user.find(':') != std::string::npos) {
    return "a name with a colon cannot be sent by the scheme Basic";
  }
  return nullptr;
}

void Easy::prepare(const Request& request, const Url& url, const SendPlan& plan) {
  const auto& options = request.options();
  set_url(url);
  set_shape(request, plan);
  set_headers(request, plan);
  // libcurl takes the addresses into the cache that all transfers of a loop share. It forgets after
  // each transfer that an entry is for any host.
  if (plan.addresses != nullptr || !addresses_.empty() || !options_.resolve.empty()) {
    addresses_.clear();
    for (const auto& fixed : options_.resolve) addresses_.add(fixed.c_str());
    if (plan.addresses != nullptr) addresses_.add(plan.addresses->c_str());
    set(CURLOPT_RESOLVE, addresses_.chained());
  }
  // What few requests have is never unset: see SendPlan::private_handle.
  if (const auto& credentials = options.credentials) {
    set_credentials(*credentials, CURLOPT_HTTPAUTH, CURLOPT_USERNAME, CURLOPT_PASSWORD);
  }
  if (present(options_.client_certificate)) set_certificate(plan.certificate);
  if (plan.netrc && !options.credentials) {
    set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_OPTIONAL));
    set_text(CURLOPT_NETRC_FILE, *options_.netrc);
  }
  if (plan.cookies) set_cookies(request, url);
  if (options.on_connection) set_if_known(CURLOPT_CERTINFO, 1L);
  if (options.on_progress) set(CURLOPT_NOPROGRESS, 0L);
  if (const auto rate = options.upload_rate) {
    set(CURLOPT_MAX_SEND_SPEED_LARGE, static_cast<curl_off_t>(*rate));
  }
  const bool tls = url.scheme() == "https";
  set_http_version(plan, tls, tls && options.on_connection);
  // libcurl reads so much at a time, and holds a buffer of this size while an exchange lasts.
  // Bodies of a megabyte take a sixth of the system calls with the large one. libcurl 7.88 refuses
  // another size while the handle still has a buffer. Then it uses that one.
  constexpr long kLarge = 512L * 1024;
  const long size = std::cmp_greater_equal(expected_body, kLarge) ? kLarge : 64L * 1024;
  const auto code = curl_easy_setopt(handle(), CURLOPT_BUFFERSIZE, size);
  if (code != CURLE_OK && code != CURLE_BAD_FUNCTION_ARGUMENT) refused(CURLOPT_BUFFERSIZE, code);
  set(CURLOPT_MAXAGE_CONN, plan.max_idle_seconds);
  set(CURLOPT_CONNECTTIMEOUT_MS, milliseconds(plan.connect_timeout));
  set(CURLOPT_EXPECT_100_TIMEOUT_MS, milliseconds(options.expect_timeout));
}

void Easy::set_http_version(const SendPlan& plan, bool tls, bool tells_tls) {
  const auto wanted = plan.http_version;
  // libcurl 7.88 fails with code 16 where it sends on such a connection for the second time.
  static const bool reusable = curl_version_info(CURLVERSION_NOW)->version_num >= 0x080000;
  static const bool has_http2 =
      (curl_version_info(CURLVERSION_NOW)->features & CURL_VERSION_HTTP2) != 0;
  closes_connection = false;
  long version = wanted == HttpVersion::Any && tls && has_http2 ? CURL_HTTP_VERSION_2TLS
                                                                : CURL_HTTP_VERSION_1_1;
  if (wanted == HttpVersion::Http2PriorKnowledge) {
    version = CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE;
    closes_connection = plan.negotiates || (!reusable && !tls);
  }
  set(CURLOPT_HTTP_VERSION, version);
  // What libcurl says costs 7 000 instructions an exchange. Before it sends, only the TLS is of
  // interest; then it is asked for where the connection may speak HTTP/2.
  set(CURLOPT_VERBOSE, tells_tls ? 1L : 0L);
  // Without TLS, libcurl would have the requests to a server wait until the first one is answered.
  set(CURLOPT_PIPEWAIT, tls ? 1L : 0L);
  set(CURLOPT_FORBID_REUSE, closes_connection ? 1L : 0L);
  set(CURLOPT_FRESH_CONNECT, plan.fresh_connection || closes_connection ? 1L : 0L);
}

void Easy::set_certificate(bool wanted) {
  const auto& certificate = options_.client_certificate;
  const auto text = [&](const std::string& value) {
    return wanted && !value.empty() ? value.c_str() : nullptr;
  };
  const bool pkcs12 = certificate.file.ends_with(".p12") || certificate.file.ends_with(".pfx");
  set(CURLOPT_SSLCERTTYPE, pkcs12 ? "P12" : "PEM");
  set(CURLOPT_SSLCERT, text(certificate.file));
  set(CURLOPT_SSLKEY, text(certificate.key_file));
  set(CURLOPT_KEYPASSWD, text(certificate.key_password));
  if (certificate.pem.empty()) return;
  // Never undone: see SendPlan::private_handle.
  if (wanted && would_share_session(options_)) set(CURLOPT_SSL_SESSIONID_CACHE, 0L);
  static const std::string none;
  const auto& key = certificate.key_pem.empty() ? certificate.pem : certificate.key_pem;
  set_pem(CURLOPT_SSLCERT_BLOB, wanted ? certificate.pem : none);
  set_pem(CURLOPT_SSLKEY_BLOB, wanted ? key : none);
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
  const Owned<curl_slist, curl_slist_free_all> list(
      info<curl_slist*>(handle(), CURLINFO_COOKIELIST));
  std::vector<std::string> lines;
  for (const auto* node = list.get(); node != nullptr; node = node->next)
    lines.emplace_back(node->data);
  return lines;
}

void Easy::return_cookies() { options_.cookies->learn(cookies_before_, cookie_lines()); }

void Easy::set_credentials(const Credentials& credentials, CURLoption scheme, CURLoption user,
                           CURLoption password) {
  const bool digest = credentials.scheme == Credentials::Scheme::Digest;
  set(scheme, digest ? CURLAUTH_DIGEST : CURLAUTH_BASIC);
  set(user, credentials.user.c_str());
  set(password, credentials.password.c_str());
}

void Easy::set_url(const Url& url) {
  const auto& parts = url.parts();
  // If only CURLU changes, libcurl 7.88 still reports the previous URL, and authenticates for it.
  // So URL is set too. With NULL libcurl makes the text by itself, with the userinfo; that takes a
  // tenth of all the instructions of a small exchange.
  set(CURLOPT_URL, url.has_userinfo() ? nullptr : parts.text.c_str());
  // Empty until all is changed: it may throw halfway.
  const auto before = std::exchange(url_, std::nullopt);
  if (parts.handle) {
    set(CURLOPT_CURLU, parts.handle.get());
    url_ = url;  // kept alive, as libcurl keeps the pointer
    return;
  }
  // A plain URL is set in a form of this handle, of which only path and query change while the
  // origin stays: libcurl parses a whole text with some thousand instructions.
  if (!plain_url_) plain_url_.reset(curl_url());
  auto* form = plain_url_.get();
  const auto change = [form](CURLUPart part, const char* text) {
    // It is known to be a good URL, so all that can be missing is memory.
    if (form == nullptr || curl_url_set(form, part, text, 0) != CURLUE_OK) throw std::bad_alloc();
  };
  if (!before || before->parts().handle || before->origin() != url.origin()) {
    change(CURLUPART_URL, parts.text.c_str());
  } else {
    if (before->path() != url.path()) change(CURLUPART_PATH, std::string(url.path()).c_str());
    // The query is at the end of the text, so it ends with NUL.
    const auto query = url.query();
    if (before->query() != query) change(CURLUPART_QUERY, query.empty() ? nullptr : query.data());
  }
  set(CURLOPT_CURLU, form);
  url_ = url;
}

// HTTPGET undoes what the last request has set.
void Easy::set_shape(const Request& request, const SendPlan& plan) {
  const auto& method = request.method();
  const bool body = plan.streamed_body || request.body().present();
  const bool wants_body = method == "POST" || method == "PUT" || method == "PATCH";
  // Where the body is empty, the request that asks for a challenge is the whole request. libcurl
  // would send it again if no challenge comes, so it gets it as one without a body.
  sends_length_0_ = plan.asks_for_challenge && (body || wants_body) && plan.body_size == 0;
  sends_body_ = (body || wants_body) && !sends_length_0_;
  set(CURLOPT_HTTPGET, 1L);
  if (sends_body_ && plan.streamed_body) {
    set(CURLOPT_UPLOAD, 1L);
    set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(plan.body_size));
  } else if (sends_body_) {
    set(CURLOPT_POST, 1L);
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(plan.body_size));
    set(CURLOPT_POSTFIELDS, request.body().present() ? request.body().bytes()->data() : "");
  } else if (method == "HEAD") {
    set(CURLOPT_NOBODY, 1L);
  }
  if (method_ == method) return;
  method_ = method;
  set(CURLOPT_CUSTOMREQUEST, method.c_str());
}

// libcurl adds Accept, Expect and Content-Type by itself. "Name:" has it leave the field out.
void Easy::set_headers(const Request& request, const SendPlan& plan) {
  const auto& headers = request.headers();
  const auto& options = request.options();
  lines_.clear();
  expects = false;
  for (std::size_t i = 0; i < headers.size(); ++i) {
    if (plan.cookies && equal_ignoring_case(headers[i].name, "Cookie")) continue;
    lines_.add(headers.line(i));
  }
  if (!headers.contains("Accept")) lines_.add("Accept:");
  if (sends_length_0_) lines_.add("Content-Length: 0");
  if (!user_agent_.empty() && !headers.contains("User-Agent")) lines_.add(user_agent_.c_str());
  if (sends_body_) {
    if (const auto own = headers.get("Expect")) {
      expects = equal_ignoring_case(*own, "100-continue");
    } else {
      const auto& from = options.expect_continue_from;
      expects =
          from && request.body().present() && static_cast<std::uint64_t>(plan.body_size) >= *from;
      lines_.add(expects ? "Expect: 100-continue" : "Expect:");
    }
    if (!headers.contains("Content-Type")) lines_.add("Content-Type:");
  }
  if (options.compressed && !headers.contains("Accept-Encoding"))
    lines_.add("Accept-Encoding: gzip");
  for (const auto* line : {plan.range, plan.if_range}) {
    if (line != nullptr) lines_.add(line);
  }
  set(CURLOPT_HTTPHEADER, lines_.chained());
}

}  // namespace httpretry
