// RequestReader: reads HTTP/1 requests from a channel.
#pragma once

#include <httpretry/testing/testing.hpp>
#include <lib/extras/testing/channel.hpp>

namespace httpretry::faults {

// Returns the path of a request's target, as SeenRequest describes it.
[[nodiscard]] std::string path_of(std::string_view method, std::string_view target);
// Counts these bytes of the body, and stores them if they are within the first MiB.
void keep_body(SeenRequest& request, std::string_view bytes);

// Reads the requests of one connection, one after the other.
class RequestReader {
 public:
  explicit RequestReader(Channel& channel) : channel_(channel) {}

  // Whether bytes of the next request arrived together with the previous request.
  [[nodiscard]] bool has_buffered() const { return !buffer_.empty(); }

  // Both return 0 on success, the status of the response if the request is malformed, and nullopt
  // if the connection ends first.
  [[nodiscard]] std::optional<int> read_head(SeenRequest& request);
  [[nodiscard]] std::optional<int> read_body(SeenRequest& request);

  // Facts from the head that was read last.
  [[nodiscard]] bool is_persistent() const { return persistent_; }
  [[nodiscard]] bool expects_continue() const { return expects_continue_; }

  // Takes the bytes that were read beyond the last request. They begin the traffic of a tunnel.
  [[nodiscard]] std::string take_rest() { return std::move(buffer_); }

 private:
  bool fill();
  bool read_framing(const SeenRequest& request);
  bool take_body(std::uint64_t bytes, SeenRequest& request);
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
