// Writes the response of one step, or performs its fault.
#pragma once

#include <httpretry/testing/testing.hpp>
#include <lib/extras/testing/channel.hpp>

namespace httpretry::faults {

// Waits for the step's delay and performs the step. `persistent` means that neither the request nor
// the server's options require closing the connection. Returns true if the connection can serve
// another request, false if it was reset or the caller must close it.
[[nodiscard]] bool send_response(Channel& channel, const Step& step, const SeenRequest& request,
                                 bool persistent, std::optional<std::chrono::seconds> idle_timeout);

// Returns whether responses with this status have neither a body nor a length.
[[nodiscard]] bool is_bodiless(int status);
// Returns the body of a step before framing. Adds filler if the fault needs a body.
[[nodiscard]] std::string step_body(const Step& step);
// Returns a complete response that closes the connection, such as "400 Bad Request".
[[nodiscard]] std::string error_response(int status, std::string_view body = {});
// Returns "HTTP/1.1 503 Service Unavailable\r\n", for example.
[[nodiscard]] std::string status_line(int status);
// Returns the headers of a response that is sent now.
[[nodiscard]] Headers headers_now(const Step& step);
// Returns the headers as lines.
[[nodiscard]] std::string header_lines(const Headers& headers);

}  // namespace httpretry::faults
