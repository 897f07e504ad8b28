// RequestReader: reads HTTP/1 requests from a channel.
#pragma once

#include <httpretry/testing/testing.hpp>
#include <lib/extras/testing/channel.hpp>

namespace httpretry::faults {

// The path of a request's target, as in SeenRequest.
[[nodiscard]] std::string path_of(std::string_view method, std::string_view target);
// Counts these bytes of the body, and keeps the first MiB.
void keep_body(SeenRequest& request, std::string_view bytes);

class RequestReader {
 public:
  explicit RequestReader(Channel& channel) : channel_(channel) {}

  // Whether bytes of the next request have arrived together with the previous one.
  [[nodiscard]] bool buffered() const { return !buffer_.empty(); }

  // Both return 0 on success, the status to respond with if the request is malformed, and nothing
  // if the connection ended first.
  [[nodiscard]] std::optional<int> read_head(SeenRequest& request);
  [[nodiscard]] std::optional<int> read_body(SeenRequest& request);

  // From the head that was read last.
  [[nodiscard]] bool persistent() const { return persistent_; }
  [[nodiscard]] bool expects_continue() const { return expects_continue_; }

  // Bytes read beyond the last request: the start of a tunnel's traffic.
  [[nodiscard]] std::string take_rest() { return std::move(buffer_); }

 private:
  bool fill();
  bool read_framing(const SeenRequest& request);
  bool take(std::uint64_t bytes, SeenRequest& request);
  std::optional<std::string> take_line();
  std::optional<int> read_chunks(SeenRequest& request);

  Channel& channel_;
  std::string buffer_;
  bool persistent_ = false;
  bool expects_continue_ = false;
  bool chunked_ = false;
  std::uint64_t length_ = 0;
};

}  // namespace httpretry::faults
