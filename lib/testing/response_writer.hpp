// ResponseWriter: writes the response of one step, or performs its fault.
#pragma once

#include <httpretry/testing/testing.hpp>
#include <lib/testing/channel.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace httpretry::faults {

class ResponseWriter {
 public:
  // `persistent`: neither the request nor the server's options require closing the connection.
  ResponseWriter(Channel& channel, const Step& step, const SeenRequest& request, bool persistent,
                 std::optional<std::chrono::seconds> idle_timeout);

  // Waits for the step's delay and performs the step. True: the connection can serve another
  // request. False: it was reset, or the caller closes it.
  [[nodiscard]] bool send();

 private:
  [[nodiscard]] bool send_interims();
  void end_connection();
  [[nodiscard]] bool send_drip();
  [[nodiscard]] bool send_huge();
  [[nodiscard]] bool send_huge_headers();
  void send_endless_interim();

  [[nodiscard]] std::string framed_body() const;
  [[nodiscard]] std::string head() const;
  [[nodiscard]] std::string chunked_head() const;
  [[nodiscard]] std::string head_with(Headers headers) const;

  Channel& channel_;
  const Step& step_;
  const bool bodiless_;
  const bool interims_allowed_;
  const bool persistent_;
  const std::optional<std::chrono::seconds> idle_timeout_;
  const std::string body_;
};

// A complete response without a body that closes the connection, such as "400 Bad Request".
[[nodiscard]] std::string error_response(int status);
// "HTTP/1.1 503 Service Unavailable\r\n".
[[nodiscard]] std::string status_line(int status);
// The headers as lines.
[[nodiscard]] std::string header_lines(const Headers& headers);

}  // namespace httpretry::faults
