// Answer: writes what one step makes of one request.
#pragma once

#include <httpretry/testing/testing.hpp>
#include <lib/testing/channel.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace httpretry::faults {

class Answer {
 public:
  // `persistent`: as far as the request and the server go, the connection may serve another one.
  Answer(Channel& channel, const Step& step, const SeenRequest& request, bool persistent,
         std::optional<std::chrono::seconds> idle_timeout);

  // Waits as the step says and acts. True: the connection is good for another request. Otherwise
  // it is reset already, or ought to be finished.
  [[nodiscard]] bool send();

 private:
  [[nodiscard]] bool send_interims();
  void break_off();
  [[nodiscard]] bool send_drip();
  [[nodiscard]] bool send_huge();
  [[nodiscard]] bool send_huge_headers();
  void send_endless_interim();

  [[nodiscard]] std::string framed_content() const;
  [[nodiscard]] std::string head() const;
  [[nodiscard]] std::string chunked_head() const;
  [[nodiscard]] std::string finished_head(Headers fields) const;

  Channel& channel_;
  const Step& step_;
  const bool bodiless_;
  const bool interims_allowed_;
  const bool persistent_;
  const std::optional<std::chrono::seconds> idle_timeout_;
  const std::string content_;
};

// A whole answer of the server's own, for what no step is about: "400 Bad Request" and the like.
[[nodiscard]] std::string refusal(int status);
// "HTTP/1.1 503 Service Unavailable\r\n".
[[nodiscard]] std::string status_line(int status);
// The fields as lines.
[[nodiscard]] std::string field_lines(const Headers& headers);

}  // namespace httpretry::faults
