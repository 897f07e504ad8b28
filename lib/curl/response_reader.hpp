// ResponseReader: makes a response of what a server sends. Header blocks come first, of which the
// last counts (before it: 1xx, a proxy's response to CONNECT, rounds of authentication), then the
// body: decoded, held to its limits, and kept in memory or written to the sink of the call.
#pragma once

#include "abort.hpp"
#include "gunzip.hpp"

#include "lib/flow/delivery.hpp"

#include <httpretry/curl/transport_options.hpp>
#include <httpretry/http/request.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace httpretry {

class ResponseReader {
 public:
  // `delivery`: where the body goes, if to a sink.
  ResponseReader(const Request& request, const TransportOptions& options, Delivery* delivery,
                 AbortReason& abort)
      : request_(request),
        wanted_(request.options()),
        max_body_(wanted_.max_body.value_or(options.max_body)),
        max_headers_(options.max_headers),
        delivery_(delivery),
        abort_(abort) {}

  // These are called from libcurl's callbacks. False (or Refused): the exchange is to be aborted,
  // and the reason is set. They throw what the sink throws, or std::bad_alloc.

  enum class Line { Taken, EndsBlock, Refused };
  Line header_line(std::string_view line) {  // here, since it is called for each line
    header_bytes_ += line.size();
    if (header_bytes_ > max_headers_) {
      abort_.set_limit(Abort::HeadersTooLarge, max_headers_);
      return Line::Refused;
    }
    if (!in_headers_) {
      // Other lines outside a block are trailers.
      if (line.starts_with("HTTP/")) begin_block(line);
      return Line::Taken;
    }
    if (line == "\r\n" || line == "\n") {
      in_headers_ = false;
      return Line::EndsBlock;
    }
    // Lines that libcurl accepts but RFC 9110 forbids are left out.
    static_cast<void>(headers_.try_add_line(line));
    return Line::Taken;
  }
  // The block is a proxy's response to CONNECT.
  void keep_proxy_block();
  // The block is that of a final response.
  bool begin_response();
  // Before the first bytes of a body; `announced`: its Content-Length, or -1.
  bool begin_body(std::int64_t announced);
  [[nodiscard]] bool body_begun() const { return body_begun_; }
  bool body_bytes(std::string_view bytes);

  // The sink must be drained before it is given more.
  [[nodiscard]] bool paused() const { return paused_; }
  void resume() { paused_ = false; }
  bool sink_failed(Error error);

  [[nodiscard]] int status() const { return status_; }
  [[nodiscard]] bool in_headers() const { return in_headers_; }
  [[nodiscard]] const Headers& headers() const { return headers_; }
  [[nodiscard]] bool is_http2() const { return version_ == "2"; }
  [[nodiscard]] int proxy_status() const { return proxy_status_; }
  [[nodiscard]] bool to_sink() const { return to_sink_; }
  // The gzip body has ended before its end.
  [[nodiscard]] bool cut_short() const { return gunzip_ && !gunzip_->complete(); }

  // These move the headers and the body out.
  void take(Response& response);
  Headers take_headers() { return std::move(headers_); }
  Headers take_proxy_headers() { return std::move(proxy_headers_); }

 private:
  void begin_block(std::string_view status_line);
  [[nodiscard]] Response head() const;
  bool decoded_bytes(std::string_view bytes);
  bool write_to_sink(std::string_view bytes);
  bool release_to_sink();

  const Request& request_;
  const RequestOptions& wanted_;
  const std::uint64_t max_body_;   // decoded bytes in memory
  const std::size_t max_headers_;  // all blocks and trailers
  Delivery* const delivery_;
  AbortReason& abort_;

  std::size_t header_bytes_ = 0;
  int status_ = 0;           // of the last block
  bool in_headers_ = false;  // between a status line and the empty line after it
  bool body_begun_ = false;
  bool to_sink_ = false;
  bool paused_ = false;
  int proxy_status_ = 0;
  std::string_view version_ = "1.1";
  std::string reason_;
  Headers headers_;
  Headers proxy_headers_;
  std::string body_;
  std::unique_ptr<Gunzip> gunzip_;
};

}  // namespace httpretry
