// How a request is sent: the plan for it, and the checks that it can be sent.
#include "loop.hpp"

#include "lib/core/base/regular_file.hpp"
#include "lib/core/chain/detail/call_state.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace httpretry {
namespace {

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
  const auto announced = origin.keep_alive_seconds;  // -1 if the server has announced no time
  // One second less than announced, for the way to the server.
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

bool has_scheme(const std::optional<Credentials>& credentials,
                std::initializer_list<Credentials::Scheme> schemes) {
  return credentials && std::ranges::find(schemes, credentials->scheme) != schemes.end();
}

// Returns an error if a certificate or key file that libcurl reads for this request is a pipe or a
// device: libcurl reads it on the loop's thread, and would block forever. libcurl has its own
// errors for missing files. Without TLS to the server (`tls` is false), only the connection to an
// https proxy needs a file.
Result<void> check_tls_files(const TransportOptions& options, bool tls) {
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
  // The pinned keys are given as hashes, or as the name of a file with a key.
  if (checked && !pins.starts_with("sha256//")) checked = check_file("pinned_keys", pins);
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

}  // namespace

// Returns whether libcurl might resume a TLS session that was made with the client certificate for
// a request without it; the certificate would still count. libcurl 8.12 to 8.20 identify a
// certificate from memory only by a hash that they compute when they verify the server. From 8.21
// on the hash is always computed.
bool would_share_session(const TransportOptions& options) {
  static const bool always_hashed = libcurl().version_num >= CURL_VERSION_BITS(8, 21, 0);
  return !always_hashed && !options.verify_tls && !options.client_certificate.pem.empty();
}

// Decides how to send a request to `url`: which of the client's secrets the request may use, its
// HTTP version, and its connection. A redirect may have led to another origin than that of the
// call: such an origin gets neither the client certificate nor the password of the netrc file, and
// cookies only if `cookies_of_other_origins` is set. `origin` is what earlier responses have shown
// about the origin of `url`. What depends on the body and on the host's addresses is left to the
// caller.
SendPlan plan_send(const Request& request, const ExchangeLimits& limits, const Url& url,
                   const Call& call, const TransportOptions& options, const OriginInfo& origin) {
  const auto& request_options = request.options();
  SendPlan plan;
  const bool at_calls_origin = url.origin() == call.origin();
  plan.certificate = at_calls_origin && has_certificate(options.client_certificate);
  plan.netrc = options.netrc && at_calls_origin;
  plan.cookies = options.cookies && (at_calls_origin || options.cookies_of_other_origins);
  // Each of these leaves something on the libcurl handle that the next request must not get, so the
  // handle is destroyed after this one.
  plan.private_handle = url.has_userinfo() || request_options.credentials || plan.cookies ||
                        plan.netrc || request_options.on_connection ||
                        request_options.on_progress || request_options.upload_rate ||
                        (plan.certificate && would_share_session(options));
  // For digest and NTLM, libcurl first sends the request without its body, to get a challenge: from
  // the server (`negotiates`), or also from a proxy.
  using enum Credentials::Scheme;
  plan.negotiates = has_scheme(request_options.credentials, {Digest, Ntlm, Any});
  plan.own_connection = has_scheme(request_options.credentials, {Ntlm, Any});
  plan.asks_for_challenge = plan.negotiates || has_scheme(options.proxy.credentials, {Digest});
  plan.version = request_options.http_version;
  // libcurl 7.88 stores in the connection that a body is left out. With HTTP/2, it would then leave
  // out the bodies of parallel requests.
  if (plan.negotiates && plan.version == HttpVersion::Any) plan.version = HttpVersion::Http1;
  // The connection may turn out to speak HTTP/2, which carries several requests at a time.
  plan.may_multiplex =
      plan.version != HttpVersion::Http1 &&
      (url.scheme() == "https" || plan.version == HttpVersion::Http2PriorKnowledge);
  // How long a connection for this request may have been idle. If negative, none may be reused.
  const auto idle_seconds = max_idle(request, options, origin);
  // A hedge is a second send of an attempt whose first send has no response yet. It must not share
  // the connection on which the first may be stuck.
  const auto* racing = Call::State::racing(call);  // nullptr if the attempt has a single send
  const bool must_not_share =
      racing != nullptr && racing->is_hedge() && plan.may_multiplex && !origin.speaks_http1;
  plan.fresh_connection = limits.fresh_connection || idle_seconds < 0 || must_not_share;
  plan.max_idle_seconds = std::max(0L, idle_seconds);
  plan.http2 = origin.speaks_http2;  // known from an earlier response
  plan.connect_timeout = limits.connect_timeout.value_or(options.connect_timeout);
  return plan;
}

// Checks the headers, the credentials, and the files that libcurl will read.
Result<void> check_sendable(const Request& request, const TransportOptions& options,
                            const SendPlan& plan) {
  for (const auto* name : {"Content-Length", "Transfer-Encoding"}) {
    if (!request.headers().contains(name)) continue;
    return Error(Errc::InvalidRequest, std::string("the header ") + name +
                                           " is generated from the body and cannot be set");
  }
  if (const auto& credentials = request.options().credentials) {
    if (const char* why = problem_of(*credentials)) return Error(Errc::InvalidRequest, why);
    const bool is_streamed = request.body().present() && request.body().bytes() == nullptr;
    if (credentials->scheme == Credentials::Scheme::AwsSigV4 && is_streamed &&
        !request.headers().contains("x-amz-content-sha256")) {
      return Error(Errc::InvalidRequest,
                   "a body that is signed must be in memory, or the header x-amz-content-sha256 "
                   "must contain its hash");
    }
  }
  const bool tls = request.parsed_url()->scheme() == "https";
  if (auto checked = check_tls_files(options, tls); !checked) return checked;
  return plan.netrc ? check_netrc(*options.netrc) : Result<void>();
}

// Returns why the credentials cannot be sent, or nullptr if they can.
const char* problem_of(const Credentials& credentials) {
  constexpr std::string_view kForbidden("\r\n\0", 3);  // with the NUL
  if (credentials.user.find_first_of(kForbidden) != std::string::npos ||
      credentials.password.find_first_of(kForbidden) != std::string::npos ||
      credentials.signer.find_first_of(kForbidden) != std::string::npos) {
    return "a name or password with a line break or a NUL byte cannot be sent";
  }
  // RFC 7617 §2: the first colon ends the name.
  using enum Credentials::Scheme;
  const bool may_be_basic = credentials.scheme == Basic || credentials.scheme == Any;
  if (may_be_basic && credentials.user.find(':') != std::string::npos) {
    return "a name with a colon cannot be sent with the scheme Basic";
  }
  return nullptr;
}

}  // namespace httpretry
