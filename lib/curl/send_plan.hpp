// SendPlan: how one request goes out, where its own fields do not say it: what of the client's
// secrets it may use, which connections, and how long.
#pragma once

#include <httpretry/curl/transport_options.hpp>
#include <httpretry/flow/call.hpp>
#include <httpretry/http/request.hpp>

#include <string>

namespace httpretry {

struct OriginInfo;

struct SendPlan {
  bool own_origin = false;  // where the call was addressed to; looked up only if it matters
  bool certificate = false;
  bool netrc = false;
  bool cookies = false;
  // Something is set on the handle that must not serve another request: it is destroyed after this.
  bool private_handle = false;

  bool streamed_body = false;   // the read callback gives the body
  std::int64_t body_size = -1;  // of a streamed body; -1 is unknown
  const char* range = nullptr;  // header lines that ask for the rest of a body
  const char* if_range = nullptr;

  bool fresh_connection = false;
  long max_idle_seconds = 0;  // use no connection that was idle for longer
  bool http2 = false;         // the origin is known to speak it
  Duration connect_timeout{};
  Duration time_left = kForever;
  const std::string* addresses = nullptr;  // of the host, as CURLOPT_RESOLVE takes them
};

// `origin`: what is known of the URL's.
SendPlan make_send_plan(const Request& request, const Url& url, const Call& call,
                        const TransportOptions& options, const OriginInfo& origin, Time now);

// The error where the request cannot be sent as it stands.
Result<void> check_sendable(const Request& request, const TransportOptions& options,
                            const SendPlan& plan);

// Why these cannot be sent; nullptr where they can.
const char* unusable(const Credentials& credentials);

}  // namespace httpretry
