// Writes the response of one step, or performs its fault.
#pragma once

#include <httpretry/testing/testing.hpp>
#include <lib/extras/testing/channel.hpp>

namespace httpretry::faults {

// Waits for the step's delay and performs the step. `persistent`: neither the request nor the
// server's options require closing the connection. True: the connection can serve another request.
// False: it was reset, or the caller closes it.
[[nodiscard]] bool send_response(Channel& channel, const Step& step, const SeenRequest& request,
                                 bool persistent, std::optional<std::chrono::seconds> idle_timeout);

// The body of a step before framing; filler for a fault that needs a body.
[[nodiscard]] std::string step_body(const Step& step);
// A complete response that closes the connection, such as "400 Bad Request".
[[nodiscard]] std::string error_response(int status, std::string_view body = {});
// "HTTP/1.1 503 Service Unavailable\r\n".
[[nodiscard]] std::string status_line(int status);
// The headers of a response that is sent now.
[[nodiscard]] Headers headers_now(const Step& step);
// The headers as lines.
[[nodiscard]] std::string header_lines(const Headers& headers);

}  // namespace httpretry::faults
