#include "send_plan.hpp"

#include "origins.hpp"

#include <curl/curl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace httpretry {
namespace {

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

}  // namespace

SendPlan make_send_plan(const Request& request, const Url& url, const Call& call,
                        const TransportOptions& options, const OriginInfo& origin, Time now) {
  const auto& wanted = request.options();
  SendPlan plan;
  const bool has_certificate = !options.client_certificate.file.empty();
  if (options.netrc || options.cookies || has_certificate) {
    plan.own_origin = url.origin() == call.origin();
    plan.certificate = has_certificate && plan.own_origin;
    plan.netrc = options.netrc && plan.own_origin;
    plan.cookies = options.cookies && (plan.own_origin || options.cookies_of_other_origins);
  }
  plan.private_handle = url.has_userinfo() || wanted.credentials || plan.cookies || plan.netrc ||
                        wanted.on_connection;
  const auto idle = idle_limit(request, options, origin);
  plan.fresh_connection = wanted.fresh_connection || idle < 0;
  plan.max_idle_seconds = std::max(0L, idle);
  plan.http2 = origin.speaks_http2;
  plan.connect_timeout = wanted.connect_timeout.value_or(options.connect_timeout);
  if (call.deadline() != kNever) plan.time_left = call.deadline() - now;
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
  if (plan.netrc && !options.netrc->empty() && ::access(options.netrc->c_str(), R_OK) != 0) {
    Error error(Errc::InvalidRequest, "cannot read netrc file " + *options.netrc + ": " +
                                          std::generic_category().message(errno));
    error.curl_code = CURLE_READ_ERROR;
    return error;
  }
  return {};
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

}  // namespace httpretry
