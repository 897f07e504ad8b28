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

// Converts for an option of which 0 means "the default" or "no limit": the result is rounded up and
// never 0. A distant limit, or none, becomes 24 days, which fit a 32-bit long.
long milliseconds(Duration time) {
  constexpr Duration kMost = std::chrono::hours(24 * 24);
  const auto bounded = std::chrono::ceil<std::chrono::milliseconds>(std::min(time, kMost));
  return std::max(1L, static_cast<long>(bounded.count()));
}

// Returns the host whose cookies libcurl sends: that of the Host header, without its port, or that
// of the URL. An IPv6 address is returned without brackets.
std::string_view cookie_host(const Request& request, const Url& url) {
  auto host = request.headers().get("Host").value_or(std::string_view());
  if (host.empty()) host = url.host();
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

// A server closes a connection that was idle for some time, perhaps just when we use it. A request
// that must not be sent twice therefore uses only connections that were idle for less than the time
// that the server has announced, or for less than this. Common servers keep idle connections for at
// least 5 s.
constexpr long kIdleSecondsIfUnsafe = 2;

// Returns the value for CURLOPT_MAXAGE_CONN, in seconds. A negative result allows no pooled
// connection.
long max_idle(const Request& request, const TransportOptions& options, const OriginInfo& origin) {
  using std::chrono::seconds;
  const auto usual = static_cast<long>(std::chrono::floor<seconds>(options.max_idle).count());
  if (request.repeatable()) return usual;
  const auto announced = origin.keep_alive_seconds;  // less a second, for the way to the server
  const auto idle_for_less_than = announced >= 0 ? announced - 1 : kIdleSecondsIfUnsafe;
  // libcurl compares whole seconds: N allows connections that were idle for less than N + 1.
  return std::min(usual, idle_for_less_than - 1);
}

// `option` is the option that names the file.
Error unreadable(const std::string& option, const std::string& path, const std::string& why) {
  Error error(Errc::InvalidRequest, "cannot read " + option + " " + path + ": " + why);
  error.curl_code = CURLE_READ_ERROR;
  return error;
}

bool is_digest(const std::optional<Credentials>& credentials) {
  return credentials && credentials->scheme == Credentials::Scheme::Digest;
}

// Returns an error if a file that libcurl reads for this request is a pipe or a device: libcurl
// reads it on the loop's thread, and would block forever. It has its own errors for missing files.
Result<void> check_tls_files(const TransportOptions& options, bool tls) {
  constexpr std::string_view kHash = "sha256//";
  const auto& certificate = options.client_certificate;
  const auto& pins = options.pinned_keys;
  const auto check_file = [](const char* option, const std::string& path) -> Result<void> {
    if (path.empty() || !could_block(path)) return {};
    return unreadable(option, path, kCouldBlock);
  };
  if (!tls) return check_file("proxy.ca_file", options.proxy.ca_file);
  auto checked = check_file("ca_file", options.ca_file);
  if (checked) checked = check_file("client_certificate.file", certificate.file);
  if (checked) checked = check_file("client_certificate.key_file", certificate.key_file);
  if (checked && !pins.starts_with(kHash)) checked = check_file("pinned_keys", pins);
  if (checked) checked = check_file("proxy.ca_file", options.proxy.ca_file);
  return checked;
}

// Returns an error if libcurl could not read the netrc file, or would block on it. "" stands for
// the default file in the home directory, which need not exist.
Result<void> check_netrc(std::string path) {
  if (path.empty()) {
    const char* home = std::getenv("HOME");
    path = std::string(home == nullptr ? "" : home) + "/.netrc";
    if (::access(path.c_str(), R_OK) != 0) return {};
  }
  const auto why = read_problem(path);
  if (why.empty()) return {};
  return unreadable("netrc file", path, why);
}

// Returns whether libcurl might resume a TLS session that was made with the client certificate for
// a request without it; the certificate would still count. libcurl 8.12 to 8.20 identify a
// certificate from memory only by a hash that they compute when they verify the server. From 8.21
// on the hash is always computed.
bool would_share_session(const TransportOptions& options) {
  static const bool always_hashed = libcurl().version_num >= CURL_VERSION_BITS(8, 21, 0);
  return !always_hashed && !options.verify_tls && !options.client_certificate.pem.empty();
}

}  // namespace

// Makes the plan from the options of the client and the request. The certificate, the netrc file
// and usually the cookies are only for the origin to which the call was made, not for redirects.
SendPlan make_send_plan(const Request& request, const ExchangeLimits& limits, const Url& url,
                        const Call& call, const TransportOptions& options,
                        const OriginInfo& origin) {
  const auto& request_options = request.options();
  SendPlan plan;
  const bool at_calls_origin = url.origin() == call.origin();
  plan.certificate = at_calls_origin && has_certificate(options.client_certificate);
  plan.netrc = options.netrc && at_calls_origin;
  plan.cookies = options.cookies && (at_calls_origin || options.cookies_of_other_origins);
  plan.private_handle = url.has_userinfo() || request_options.credentials || plan.cookies ||
                        plan.netrc || request_options.on_connection ||
                        request_options.on_progress || request_options.upload_rate ||
                        (plan.certificate && would_share_session(options));
  plan.negotiates = is_digest(request_options.credentials);
  plan.asks_for_challenge = plan.negotiates || is_digest(options.proxy.credentials);
  plan.version = request_options.http_version;
  if (plan.negotiates && plan.version == HttpVersion::Any) plan.version = HttpVersion::Http1;
  plan.may_multiplex =
      plan.version != HttpVersion::Http1 &&
      (url.scheme() == "https" || plan.version == HttpVersion::Http2PriorKnowledge);
  const auto idle_seconds = max_idle(request, options, origin);
  // A hedge must not wait for the connection on which the other send may be stuck.
  const auto* racing = Call::State::racing(call);
  const bool must_not_share =
      racing != nullptr && racing->is_hedge() && plan.may_multiplex && !origin.speaks_http1;
  plan.fresh_connection = limits.fresh_connection || idle_seconds < 0 || must_not_share;
  plan.max_idle_seconds = std::max(0L, idle_seconds);
  plan.http2 = origin.speaks_http2;
  plan.connect_timeout = limits.connect_timeout.value_or(options.connect_timeout);
  return plan;
}

// Checks the headers, the credentials, and the files that libcurl will read.
Result<void> check_sendable(const Request& request, const TransportOptions& options,
                            const SendPlan& plan) {
  for (const auto* name : {"Content-Length", "Transfer-Encoding"}) {
    if (!request.headers().contains(name)) continue;
    return Error(Errc::InvalidRequest,
                 std::string("the header ") + name + " is made from the body and cannot be set");
  }
  if (const auto& credentials = request.options().credentials) {
    if (const char* why = problem_of(*credentials)) return Error(Errc::InvalidRequest, why);
  }
  const bool tls = request.parsed_url()->scheme() == "https";
  if (auto checked = check_tls_files(options, tls); !checked) return checked;
  return plan.netrc ? check_netrc(*options.netrc) : Result<void>();
}

// Returns why the credentials cannot be sent, or nullptr if they can.
const char* problem_of(const Credentials& credentials) {
  constexpr std::string_view kForbidden("\r\n\0", 3);  // with the NUL
  if (credentials.user.find_first_of(kForbidden) != std::string::npos ||
      credentials.password.find_first_of(kForbidden) != std::string::npos) {
    return "a name or password with a line break or a NUL byte cannot be sent";
  }
  // RFC 7617 §2: the first colon ends the name.
  const bool basic = credentials.scheme == Credentials::Scheme::Basic;
  if (basic && credentials.user.find(':') != std::string::npos) {
    return "a name with a colon cannot be sent by the scheme Basic";
  }
  return nullptr;
}

// Sets all options that may differ from those of the previous exchange on this handle.
void Easy::prepare(const Request& request, const Url& url, const SendPlan& plan) {
  const auto& options = request.options();
  set_url(url);
  set_method_and_body(request, plan);
  set_headers(request, plan);
  // libcurl adds the addresses to the cache that all transfers of a loop share. After each transfer
  // it forgets the entries with the host "*", so TransportOptions::resolve is set again each time.
  if (plan.addresses != nullptr || !addresses_.empty() || !options_.resolve.empty()) {
    addresses_.clear();
    for (const auto& fixed : options_.resolve) addresses_.add(fixed.c_str());
    if (plan.addresses != nullptr) addresses_.add(plan.addresses->c_str());
    set(CURLOPT_RESOLVE, addresses_.chained());
  }
  // The options below that are rarely used are never unset: see SendPlan::private_handle.
  if (const auto& credentials = options.credentials) {
    set_credentials(*credentials, CURLOPT_HTTPAUTH, CURLOPT_USERNAME, CURLOPT_PASSWORD);
  }
  if (has_certificate(options_.client_certificate)) set_certificate(plan.certificate);
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
  // libcurl reads up to this many bytes at a time, and holds a buffer of this size during an
  // exchange. With the large buffer, bodies of a megabyte take a sixth of the system calls.
  // libcurl 7.88 returns BAD_FUNCTION_ARGUMENT for a new size while the handle still has a buffer,
  // and goes on using that buffer.
  constexpr long kLarge = 512L * 1024;
  const long size = std::cmp_greater_equal(expected_body, kLarge) ? kLarge : 64L * 1024;
  const auto code = curl_easy_setopt(handle(), CURLOPT_BUFFERSIZE, size);
  if (code != CURLE_OK && code != CURLE_BAD_FUNCTION_ARGUMENT) fail(CURLOPT_BUFFERSIZE, code);
  set(CURLOPT_MAXAGE_CONN, plan.max_idle_seconds);
  set(CURLOPT_CONNECTTIMEOUT_MS, milliseconds(plan.connect_timeout));
  set(CURLOPT_EXPECT_100_TIMEOUT_MS, milliseconds(options.expect_timeout));
}

// Sets the HTTP version and which connections the exchange may use. `report_tls`: the library needs
// libcurl's log line about the TLS connection.
void Easy::set_http_version(const SendPlan& plan, bool tls, bool report_tls) {
  const auto wanted = plan.version;

  // With HTTP/2 without TLS, libcurl 7.88 fails with code 16 (CURLE_HTTP2) when it sends the second
  // request on a connection. So each connection is used once.
  static const bool reuses_http2_without_tls = libcurl().version_num >= CURL_VERSION_BITS(8, 0, 0);
  static const bool has_http2 = (libcurl().features & CURL_VERSION_HTTP2) != 0;
  closes_connection = false;
  long version = wanted == HttpVersion::Any && tls && has_http2 ? CURL_HTTP_VERSION_2TLS
                                                                : CURL_HTTP_VERSION_1_1;
  if (wanted == HttpVersion::Http2PriorKnowledge) {
    version = CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE;
    closes_connection = plan.negotiates || (!reuses_http2_without_tls && !tls);
  }
  set(CURLOPT_HTTP_VERSION, version);
  // libcurl's log costs 7 000 instructions per exchange. Before the send only its line about TLS
  // matters. `about_to_send` turns the log on if the connection may speak HTTP/2.
  set(CURLOPT_VERBOSE, report_tls ? 1L : 0L);
  // Waits until a new connection shows whether it can be shared. Without TLS only the first
  // response shows that, so libcurl would hold back all other requests to the server until then.
  set(CURLOPT_PIPEWAIT, tls ? 1L : 0L);
  set(CURLOPT_FORBID_REUSE, closes_connection ? 1L : 0L);
  set(CURLOPT_FRESH_CONNECT, plan.fresh_connection || closes_connection ? 1L : 0L);
}

// Sets the client's certificate, or unsets it if the request must not use it.
void Easy::set_certificate(bool use) {
  const auto& certificate = options_.client_certificate;
  const auto text = [&](const std::string& value) {  // nullptr unsets the option
    return use && !value.empty() ? value.c_str() : nullptr;
  };
  const bool pkcs12 = certificate.file.ends_with(".p12") || certificate.file.ends_with(".pfx");
  set(CURLOPT_SSLCERTTYPE, pkcs12 ? "P12" : "PEM");
  set(CURLOPT_SSLCERT, text(certificate.file));
  set(CURLOPT_SSLKEY, text(certificate.key_file));
  set(CURLOPT_KEYPASSWD, text(certificate.key_password));
  if (certificate.pem.empty()) return;
  // Never unset: see SendPlan::private_handle.
  if (use && would_share_session(options_)) set(CURLOPT_SSL_SESSIONID_CACHE, 0L);
  static const std::string none;
  const auto& key = certificate.key_pem.empty() ? certificate.pem : certificate.key_pem;
  set_pem(CURLOPT_SSLCERT_BLOB, use ? certificate.pem : none);
  set_pem(CURLOPT_SSLKEY_BLOB, use ? key : none);
}

// Uses libcurl's cookie engine, with a list for this exchange only. So libcurl decides which
// cookies are sent, and for which domains a server may set them, with its list of public suffixes.
// Never unset: see SendPlan::private_handle.
void Easy::set_cookies(const Request& request, const Url& url) {
  set(CURLOPT_COOKIEFILE, "");
  for (const auto& line : options_.cookies->lines_for(cookie_host(request, url))) {
    set(CURLOPT_COOKIELIST, line.c_str());
  }
  // Reads them back, because libcurl may write a cookie differently from the line it was given.
  cookies_before_ = cookie_lines();
  // The request's own cookies are joined, because a request may have only one Cookie field.
  std::string joined;
  for (const auto value : request.headers().get_all("Cookie")) {
    joined.append(joined.empty() ? "" : "; ").append(value);
  }
  if (!joined.empty()) set(CURLOPT_COOKIE, joined.c_str());
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

// Sets the URL as a text and as libcurl's parsed form (CURLU).
void Easy::set_url(const Url& url) {
  const auto& parts = url.parts();
  // If only CURLU changes, libcurl 7.88 still reports the previous URL and authenticates for it, so
  // URL is set as well. With NULL libcurl makes the text from CURLU, including the userinfo, but
  // that takes a tenth of all instructions of a small exchange.
  set(CURLOPT_URL, url.has_userinfo() ? nullptr : parts.text.c_str());
  // `url_` stays empty until everything is changed, because the calls below may throw.
  const auto previous = std::exchange(url_, std::nullopt);
  if (parts.handle) {
    set(CURLOPT_CURLU, parts.handle.get());
    url_ = url;  // keeps the handle alive, because libcurl stores only the pointer
    return;
  }
  // A plain URL is set in a CURLU of this handle. While the origin stays the same, only path and
  // query are changed, because parsing a whole text takes libcurl some thousand instructions.
  if (!plain_url_) plain_url_.reset(curl_url());
  auto* curlu = plain_url_.get();
  const auto change = [curlu](CURLUPart part, const char* text) {  // nullptr removes the part
    // The URL is known to be valid, so only memory can be lacking.
    if (curlu == nullptr || curl_url_set(curlu, part, text, 0) != CURLUE_OK) throw std::bad_alloc();
  };
  if (!previous || previous->parts().handle || previous->origin() != url.origin()) {
    change(CURLUPART_URL, parts.text.c_str());
  } else {
    if (previous->path() != url.path()) change(CURLUPART_PATH, std::string(url.path()).c_str());
    // The query ends the text, so it ends with NUL.
    const auto query = url.query();
    if (previous->query() != query) change(CURLUPART_QUERY, query.empty() ? nullptr : query.data());
  }
  set(CURLOPT_CURLU, curlu);
  url_ = url;
}

// Sets the method, and whether and how libcurl sends a body.
void Easy::set_method_and_body(const Request& request, const SendPlan& plan) {
  const auto& method = request.method();
  // Requests with these methods announce even an absent body, with the length 0.
  const bool has_body = plan.streamed_body || request.body().present() || method == "POST" ||
                        method == "PUT" || method == "PATCH";
  // For an empty body, the request that gets a challenge is already the whole request. If no
  // challenge came, libcurl would send it again. So libcurl sends it as a request without a body.
  sends_length_0_ = plan.asks_for_challenge && has_body && plan.body_size == 0;
  sends_body_ = has_body && !sends_length_0_;
  set(CURLOPT_HTTPGET, 1L);  // undoes what the previous request has set
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

// Sets the header lines of the request, and those that the library adds. libcurl adds Accept,
// Expect and Content-Type by itself; a line "Name:" makes it omit the field.
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
    if (const auto callers_value = headers.get("Expect")) {
      expects = equal_ignoring_case(*callers_value, "100-continue");
    } else {
      const auto& min_size = options.expect_continue_from;
      // A body of unknown size, -1, counts as a large one.
      expects = min_size && request.body().present() &&
                static_cast<std::uint64_t>(plan.body_size) >= *min_size;
      lines_.add(expects ? "Expect: 100-continue" : "Expect:");
    }
    if (!headers.contains("Content-Type")) lines_.add("Content-Type:");
  }
  if (options.compressed && !headers.contains("Accept-Encoding"))
    lines_.add("Accept-Encoding: gzip");
  if (plan.range != nullptr) lines_.add(plan.range);
  if (plan.if_range != nullptr) lines_.add(plan.if_range);
  set(CURLOPT_HTTPHEADER, lines_.chained());
}

}  // namespace httpretry
