// ResponseReader: makes a response of what a server sends. Header blocks come first, of which the
// last counts (before it: 1xx, a proxy's response to CONNECT, rounds of authentication), then the
// body: decoded, held to its limits, and kept in memory or written to the sink of the call.
#pragma once

#include "abort.hpp"
#include "gunzip.hpp"

#include "lib/flow/delivery.hpp"

#include <httpretry/http/request.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace httpretry {

class ResponseReader {
 public:
  struct Limits {
    std::uint64_t body;   // decoded bytes in memory
    std::size_t headers;  // all blocks and trailers
  };
  // `delivery`: where the body goes, if to a sink.
  ResponseReader(const Request& request, Limits limits, Delivery* delivery, AbortReason& abort)
      : request_(request), limits_(limits), delivery_(delivery), abort_(abort) {}

  // These are called from libcurl's callbacks. False: the exchange is to be aborted, and the reason
  // is set. They throw what the sink throws, or std::bad_alloc.

  bool header_line(std::string_view line);
  // After header_line: it was the empty line that ends a block.
  [[nodiscard]] bool block_ended() const { return block_ended_; }
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
  const Limits limits_;
  Delivery* const delivery_;
  AbortReason& abort_;

  std::size_t header_bytes_ = 0;
  int status_ = 0;           // of the last block
  bool in_headers_ = false;  // between a status line and the empty line after it
  bool block_ended_ = false;
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
