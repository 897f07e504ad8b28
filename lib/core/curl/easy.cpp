// Easy: what each exchange sets on its libcurl handle.
#include "easy.hpp"

#include "lib/core/base/text.hpp"

#include <httpretry/curl/cookies.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

namespace httpretry {
namespace {

// Converts for an option of which 0 means "the default" or "no limit": the result is rounded up and
// never 0. A distant limit, or none, becomes 24 days, which fit a 32-bit long.
long to_ms(Duration time) {
  constexpr Duration kMost = std::chrono::hours(24 * 24);
  const auto bounded = std::chrono::ceil<std::chrono::milliseconds>(std::min(time, kMost));
  return std::max(1L, static_cast<long>(bounded.count()));
}

// Returns libcurl's bits for a scheme.
unsigned long auth_bits(Credentials::Scheme scheme) {
  using enum Credentials::Scheme;
  switch (scheme) {
    case Basic: return CURLAUTH_BASIC;
    case Digest: return CURLAUTH_DIGEST;
    case Ntlm: return CURLAUTH_NTLM;
    case Any: return CURLAUTH_BASIC | CURLAUTH_DIGEST | CURLAUTH_NTLM;
    case AwsSigV4: return CURLAUTH_AWS_SIGV4;
  }
  return CURLAUTH_NONE;
}

// Returns the host whose cookies libcurl sends: that of the Host header, without its port, or that
// of the URL. An IPv6 address is returned without brackets.
std::string_view cookie_host(const Request& request, const Url& url) {
  auto host = request.headers().get("Host").value_or(std::string_view());
  if (host.empty()) host = url.host();
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

}  // namespace

// Sets all options for the next exchange that may differ from those of the previous exchange on
// this handle. Throws if libcurl refuses one.
void Easy::prepare(const Request& request, const Url& url, const SendPlan& plan) {
  const auto& options = request.options();  // `options_` are those of the client

  // The options that are set for each exchange.
  set_url(url);
  set_method_and_body(request, plan);
  set_headers(request, plan);
  set_addresses(plan);
  // `plan.certificate`: this request may use the client's certificate. If not, it is unset.
  if (has_certificate(options_.client_certificate)) set_certificate(plan.certificate);
  const bool tls = url.scheme() == "https";
  set_http_version(plan, tls);
  set_pooling(plan, tls);
  set_buffer_size();
  // The user's callback gets the TLS version and the cipher, which only libcurl's log contains.
  // Otherwise the log is off, because it costs 7 000 instructions per exchange. If the connection
  // may speak HTTP/2, Transfer::about_to_send turns the log on to observe the connection.
  set(CURLOPT_VERBOSE, tls && options.on_connection ? 1L : 0L);
  set(CURLOPT_MAXAGE_CONN, plan.max_idle_seconds);
  set(CURLOPT_CONNECTTIMEOUT_MS, to_ms(plan.connect_timeout));
  set(CURLOPT_EXPECT_100_TIMEOUT_MS, to_ms(options.expect_timeout));

  // The options that are set only if the exchange needs them, and never unset. For an exchange that
  // needs one of them, `plan.private_handle` is true: the handle is destroyed after the exchange.
  if (const auto& credentials = options.credentials) {
    set_credentials(*credentials, CURLOPT_HTTPAUTH, CURLOPT_USERNAME, CURLOPT_PASSWORD);
  }
  if (plan.netrc && !options.credentials) {
    // "Optional": a name and password in the URL take precedence over the file.
    set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_OPTIONAL));
    set_text(CURLOPT_NETRC_FILE, *options_.netrc);
  }
  if (plan.cookies) set_cookies(request, url);
  if (options.on_connection) set_if_known(CURLOPT_CERTINFO, 1L);
  if (options.on_progress) set(CURLOPT_NOPROGRESS, 0L);  // 0: libcurl reports the progress
  if (const auto rate = options.upload_rate) {
    constexpr auto kFastest = std::uint64_t{std::numeric_limits<curl_off_t>::max()};
    set(CURLOPT_MAX_SEND_SPEED_LARGE, static_cast<curl_off_t>(std::min(*rate, kFastest)));
  }
}

// Gives libcurl the addresses of hosts that it must not look up: those of TransportOptions::resolve
// and those that the loop has found. libcurl copies them to a cache that all transfers of a loop
// share. They are set again each time, because libcurl drops those for the host "*" after each
// transfer.
void Easy::set_addresses(const SendPlan& plan) {
  // If the list is empty now but was not for the previous exchange, it must be unset.
  if (plan.addresses == nullptr && options_.resolve.empty() && addresses_.empty()) return;
  addresses_.clear();
  for (const auto& entry : options_.resolve) addresses_.add(entry.c_str());
  if (plan.addresses != nullptr) addresses_.add(plan.addresses->c_str());
  set(CURLOPT_RESOLVE, addresses_.chained());
}

// Sets how many bytes libcurl reads at a time. It holds a buffer of this size during an exchange,
// so the buffer is large only if a large body is expected: bodies of a megabyte then take a sixth
// of the system calls.
void Easy::set_buffer_size() {
  constexpr long kSmall = 64L * 1024;
  constexpr long kLarge = 512L * 1024;
  const bool large = std::cmp_greater_equal(expected_body, kLarge);
  const auto code = curl_easy_setopt(handle(), CURLOPT_BUFFERSIZE, large ? kLarge : kSmall);
  // libcurl 7.88 returns BAD_FUNCTION_ARGUMENT for a new size while the handle still has a buffer,
  // and goes on using that buffer.
  if (code != CURLE_OK && code != CURLE_BAD_FUNCTION_ARGUMENT) fail(CURLOPT_BUFFERSIZE, code);
}

// Sets the HTTP version, and whether the request may wait to share a connection that another
// request opens.
void Easy::set_http_version(const SendPlan& plan, bool tls) {
  static const bool has_http2 = (libcurl().features & CURL_VERSION_HTTP2) != 0;
  long version = CURL_HTTP_VERSION_1_1;
  if (plan.version == HttpVersion::Any && tls && has_http2) version = CURL_HTTP_VERSION_2TLS;
  // "Prior knowledge": the server is known to speak HTTP/2, so the version is not negotiated.
  if (plan.only_http2()) version = CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE;
  set(CURLOPT_HTTP_VERSION, version);
  // The request waits until it is known whether the new connection can carry both. With TLS, the
  // handshake shows that. Without TLS, only the first response would, and libcurl would hold back
  // all other requests to the server until then.
  set(CURLOPT_PIPEWAIT, tls ? 1L : 0L);
}

// Sets whether the exchange may take a connection from libcurl's pool, and leave it there. Three
// cases need a connection that no other request uses before or after:
// * NTLM (`own_connection`), which authenticates the connection, not the request.
// * Digest (`negotiates`) over HTTP/2. libcurl 7.88 stores in the connection that a body is left
//   out, and then leaves out the bodies of later requests.
// * HTTP/2 without TLS. libcurl 7.88 fails (CURLE_HTTP2) at the second request on the connection.
void Easy::set_pooling(const SendPlan& plan, bool tls) {
  static const bool can_reuse_without_tls = libcurl().version_num >= CURL_VERSION_BITS(8, 0, 0);
  const bool fails_if_reused = !tls && !can_reuse_without_tls;
  closes_connection =
      plan.own_connection || (plan.only_http2() && (plan.negotiates || fails_if_reused));
  // libcurl ignores both options while it authenticates, so all steps of NTLM use one connection.
  set(CURLOPT_FORBID_REUSE, closes_connection ? 1L : 0L);  // closes it after the exchange
  set(CURLOPT_FRESH_CONNECT, plan.fresh_connection || closes_connection ? 1L : 0L);
}

// Sets the client's certificate and key, from files or from PEM texts in memory. If the request
// must not use them (`use` is false), unsets them, because an earlier request on this handle may
// have used them.
void Easy::set_certificate(bool use) {
  const auto& certificate = options_.client_certificate;
  const auto text_to_set = [&](const std::string& text) {  // nullptr unsets the option
    return use && !text.empty() ? text.c_str() : nullptr;
  };
  // Without a type in the options, the name of the file shows its type.
  const bool is_pkcs12 = certificate.file.ends_with(".p12") || certificate.file.ends_with(".pfx");
  const char* const type_of_file = is_pkcs12 ? "P12" : "PEM";
  set(CURLOPT_SSLCERTTYPE, certificate.type.empty() ? type_of_file : certificate.type.c_str());
  set_text(CURLOPT_SSLKEYTYPE, certificate.key_type);
  set(CURLOPT_SSLCERT, text_to_set(certificate.file));
  set(CURLOPT_SSLKEY, text_to_set(certificate.key_file));
  set(CURLOPT_KEYPASSWD, text_to_set(certificate.key_password));
  if (certificate.pem.empty()) return;  // the rest is for a certificate in memory
  // If libcurl could resume the TLS session for a request without the certificate, the session is
  // not stored. This option need not be unset: in this case, SendPlan::private_handle is true, so
  // the handle serves no other request.
  if (use && would_share_session(options_)) set(CURLOPT_SSL_SESSIONID_CACHE, 0L);
  // A single PEM text may hold both the certificate and the key.
  const auto& key_pem = certificate.key_pem.empty() ? certificate.pem : certificate.key_pem;
  static const std::string none;  // unsets the option
  set_pem(CURLOPT_SSLCERT_BLOB, use ? certificate.pem : none);
  set_pem(CURLOPT_SSLKEY_BLOB, use ? key_pem : none);
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
  for (auto* node = list.get(); node != nullptr; node = node->next) lines.emplace_back(node->data);
  return lines;
}

void Easy::return_cookies() { options_.cookies->learn(cookies_before_, cookie_lines()); }

void Easy::set_credentials(const Credentials& credentials, CURLoption scheme, CURLoption user,
                           CURLoption password) {
  using enum Credentials::Scheme;
  // This also changes CURLOPT_HTTPAUTH, to the value that the next statement sets.
  if (credentials.scheme == AwsSigV4) {
    set(CURLOPT_AWS_SIGV4, credentials.signer.c_str());
    set(CURLOPT_PATH_AS_IS, 0L);  // libcurl 8.14 and later would refuse to sign
  }
  set(scheme, auth_bits(credentials.scheme));
  set(user, credentials.user.c_str());
  set(password, credentials.password.c_str());
}

// Gives libcurl the URL in both forms that it takes: parsed (CURLU), which it sends to, and as a
// text, by which libcurl 7.88 reports the URL and authenticates. Throws std::bad_alloc if memory is
// lacking.
void Easy::set_url(const Url& url) {
  const auto& parts = url.parts();
  // `parts.text` never contains a name and password. For a URL that has them, nullptr makes libcurl
  // build the text from CURLU. Other URLs give the text, because building it takes a tenth of the
  // instructions of a small exchange.
  set(CURLOPT_URL, url.has_userinfo() ? nullptr : parts.text.c_str());
  // `url_` stays empty until both forms are set, because the calls below may throw.
  const auto previous = std::exchange(url_, std::nullopt);
  // `parts.handle` is set if libcurl has parsed the URL. libcurl stores only the pointer to it, so
  // `url_` keeps it alive.
  set(CURLOPT_CURLU, parts.handle ? parts.handle.get() : updated_plain_url(url, previous));
  url_ = url;
}

// Returns the CURLU for a plain URL, which the library has parsed itself. All plain URLs of this
// Easy use the same CURLU. Only its path and query are changed if the previous URL has the same
// origin, because parsing a whole text takes libcurl some thousand instructions.
CURLU* Easy::updated_plain_url(const Url& url, const std::optional<Url>& previous) {
  if (!plain_url_) plain_url_.reset(curl_url());
  auto* curlu = plain_url_.get();
  const auto change = [curlu](CURLUPart part, const char* text) {  // nullptr removes the part
    // The URL is known to be valid, so only memory can be lacking.
    if (curlu == nullptr || curl_url_set(curlu, part, text, 0) != CURLUE_OK) throw std::bad_alloc();
  };
  // The CURLU contains the previous URL, unless libcurl has parsed that one, which has a handle.
  const bool contains_previous = previous && !previous->parts().handle;
  if (!contains_previous || previous->origin() != url.origin()) {
    change(CURLUPART_URL, url.parts().text.c_str());
  } else {
    if (previous->path() != url.path()) change(CURLUPART_PATH, std::string(url.path()).c_str());
    const auto query = url.query();  // the end of `text`, so it is followed by a NUL
    if (previous->query() != query) change(CURLUPART_QUERY, query.empty() ? nullptr : query.data());
  }
  return curlu;
}

// Sets the method, and whether and how libcurl sends a body: from memory, or piece by piece from
// Transfer::send_bytes if the plan says `streamed_body`.
void Easy::set_method_and_body(const Request& request, const SendPlan& plan) {
  const auto& method = request.method();
  // Requests with these methods announce the length 0 if they have no body.
  const bool has_body = plan.streamed_body || request.body().present() || method == "POST" ||
                        method == "PUT" || method == "PATCH";
  // With digest, libcurl sends a request with a body twice, even if the server does not ask for
  // credentials: first without the body, to get a challenge, and then with it. If the body is
  // empty, the server would execute both. So the options for an empty body are not set, and
  // set_headers adds "Content-Length: 0" instead.
  sends_length_0_ = plan.asks_for_challenge && has_body && plan.body_size == 0;
  sends_body_ = has_body && !sends_length_0_;
  set(CURLOPT_HTTPGET, 1L);  // undoes UPLOAD, POST and NOBODY of the previous exchange
  if (sends_body_ && plan.streamed_body) {
    set(CURLOPT_UPLOAD, 1L);
    set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(plan.body_size));
  } else if (sends_body_) {
    set(CURLOPT_POST, 1L);
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(plan.body_size));
    set(CURLOPT_POSTFIELDS, request.body().present() ? request.body().bytes()->data() : "");
  } else if (method == "HEAD") {
    // The response has no body. With NOBODY, libcurl could not send a body either, so a HEAD with a
    // body does not get here, and its transfer ends libcurl's wait for the body of the response.
    set(CURLOPT_NOBODY, 1L);
  }
  // The options above choose only how libcurl treats the bodies. CUSTOMREQUEST names the method. It
  // keeps its value from one exchange to the next, so it is set only if the method differs.
  if (method_ == method) return;
  method_ = method;
  set(CURLOPT_CUSTOMREQUEST, method.c_str());
}

// Sets the header lines of the request, and those that the library adds. A line such as "Accept:",
// without a value, keeps libcurl from adding its own Accept, Expect or Content-Type. A signed
// request must have no such line, because libcurl 7.88 would sign it but not send it. It gets
// explicit values instead.
void Easy::set_headers(const Request& request, const SendPlan& plan) {
  const auto& headers = request.headers();
  const auto& options = request.options();
  lines_.clear();
  expects = false;  // add_expect() may set it
  for (std::size_t i = 0; i < headers.size(); ++i) {
    // set_cookies joins the request's cookies with those of the client's jar.
    if (plan.cookies && equal_ignoring_case(headers[i].name, "Cookie")) continue;
    lines_.add(headers.line(i));
  }
  const auto& credentials = options.credentials;
  const bool is_signed = credentials && credentials->scheme == Credentials::Scheme::AwsSigV4;
  if (!headers.contains("Accept")) lines_.add(is_signed ? "Accept: */*" : "Accept:");
  // An empty body, without libcurl's options for bodies: see set_method_and_body.
  if (sends_length_0_) lines_.add("Content-Length: 0");
  // `user_agent_` is a whole line, "User-Agent: ...".
  if (!user_agent_.empty() && !headers.contains("User-Agent")) lines_.add(user_agent_.c_str());
  if (sends_body_) {
    add_expect(request, plan, is_signed);
    if (!headers.contains("Content-Type")) {
      lines_.add(is_signed ? "Content-Type: application/octet-stream" : "Content-Type:");
    }
  }
  if (options.compressed && !headers.contains("Accept-Encoding"))
    lines_.add(accept_encoding_.c_str());
  // If the sink already has the beginning of the body, these lines request only the rest.
  if (plan.range != nullptr) lines_.add(plan.range);
  if (plan.if_range != nullptr) lines_.add(plan.if_range);
  set(CURLOPT_HTTPHEADER, lines_.chained());
}

// Adds the line "Expect: 100-continue" if the request must wait with it before it sends its body,
// and the caller's headers do not have it. Sets `expects`, whether the request or its options ask
// for that.
void Easy::add_expect(const Request& request, const SendPlan& plan, bool is_signed) {
  if (const auto callers_value = request.headers().get("Expect")) {
    expects = equal_ignoring_case(*callers_value, "100-continue");
    return;
  }
  const auto& min_size = request.options().expect_continue_from;
  const auto size = static_cast<std::uint64_t>(plan.body_size);  // if unknown (-1), the largest
  // A POST, PUT or PATCH without a body sends an empty one, for which it need not wait.
  expects = request.body().present() && min_size && size >= *min_size;
  // From a megabyte on, libcurl itself adds the header if there is no line for it, and a line that
  // keeps it from that cannot be signed.
  const bool must_wait = expects || (is_signed && size >= 1024 * 1024);
  // A small signed request needs no line, because libcurl adds none.
  if (must_wait || !is_signed) lines_.add(must_wait ? "Expect: 100-continue" : "Expect:");
}

// Checks that this libcurl accepts the options that requests of the client will need: prepares a
// handle for a GET, for a HEAD, and for a PUT with a body from memory and with a streamed one, but
// sends nothing. Throws std::runtime_error, with the name of the option, if libcurl refuses one.
void try_out(const TransportOptions& options) {
  Easy easy(options, may_use_proxy(options.proxy));
  SendPlan plan;
  plan.certificate = has_certificate(options.client_certificate);
  plan.netrc = options.netrc.has_value();
  plan.cookies = options.cookies != nullptr;
  const auto prepare = [&](const Request& request) {
    easy.prepare(request, *request.parsed_url(), plan);
  };
  const std::string url = "https://localhost/";  // never contacted
  const auto put = Request::put(url, std::string("body"));
  for (const auto& request : {Request::get(url), Request::head(url), put}) prepare(request);
  plan.streamed_body = true;
  prepare(put);
}

}  // namespace httpretry
