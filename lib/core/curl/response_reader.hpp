// ResponseReader: makes a response of what a server sends. Header blocks come first, of which the
// last counts (before it: 1xx, a proxy's response to CONNECT, rounds of authentication), then the
// body: decoded, held to its limits, and kept in memory or written to the sink of the call.
#pragma once

#include "errors.hpp"

#include "lib/core/body/detail/delivery.hpp"
#include "lib/core/chain/racing_send.hpp"

#include <httpretry/curl/transport_options.hpp>

#include <zlib.h>

#include <new>

namespace httpretry {

// Why the headers do not say where the body ends (RFC 9112 §6.3); empty where they do. libcurl
// takes the last of several lengths: what another program on the way takes for the body, or for the
// next response, would then be something else.
std::string length_problem(const Headers& headers);

class ResponseReader {
 public:
  // `delivery`: where the body goes, if to a sink; `racing`: if there may be other responses.
  ResponseReader(const Request& request, const TransportOptions& options, Delivery* delivery,
                 RacingSend* racing, AbortReason& abort);

  // These are called from libcurl's callbacks. False: the exchange is to be aborted, and the reason
  // is set. They throw what the sink throws, or std::bad_alloc.

  bool header_line(std::string_view line) {  // here, since it is called for each line
    header_bytes_ += line.size();
    if (header_bytes_ > max_headers_) return over_limit("headers are", max_headers_);
    if (!in_headers) {
      // Other lines outside a block are trailers. libcurl takes this prefix in any case.
      if (awaits_block && equal_ignoring_case(line.substr(0, 5), "HTTP/")) begin_block(line);
    } else if (line == "\r\n" || line == "\n") {
      in_headers = false;
    } else if (line.starts_with(' ') || line.starts_with('\t')) {
      return folded_line(line);
    } else if (response.headers.size() == kMaxHeaders) {
      return refuse(CURLE_FILESIZE_EXCEEDED, kTooManyHeaders);
    } else {
      // Lines that libcurl accepts but RFC 9110 forbids are left out.
      last_line_ = response.headers.try_add_line(line) ? LastLine::Kept : LastLine::LeftOut;
    }
    return true;
  }
  // The block is a proxy's response to CONNECT.
  bool keep_proxy_block();
  // Whether the block can be trusted: its status, which is what libcurl took it for, and where the
  // body ends.
  bool check_block(long libcurls_status);
  // The block is that of a final response.
  bool begin_response();
  // Before the first bytes of a body; `announced`: its Content-Length, or -1.
  bool begin_body(std::int64_t announced);
  // Both stop where the sink must be drained. `budget`: how many bytes may be decoded now; it is
  // lowered. What is left over is kept.
  bool body_bytes(std::string_view bytes, std::size_t& budget);
  bool decode_rest(std::size_t& budget);
  [[nodiscard]] bool has_rest() const {
    return gunzip_ && (gunzip_->stream.avail_in > 0 || gunzip_->more_output);
  }
  bool sink_failed(Error error);

  // Whether a response of this kind can have a body (RFC 9112 §6.3).
  [[nodiscard]] bool has_body() const;
  // The gzip body has ended before its end.
  [[nodiscard]] bool cut_short() const { return gunzip_ && gunzip_->inside; }
  // The response, when it is complete.
  Outcome take();
  static constexpr char kTooManyHeaders[] = "the response has more than 5000 headers";

  Response response;        // as far as it has come: the last block, and the body
  bool in_headers = false;  // between a status line and the empty line after it
  // A status line may come: not after a final response, until the request is sent again.
  bool awaits_block = true;
  bool body_begun = false;
  std::uint64_t received = 0;  // bytes of the body, before they are decoded
  bool to_sink = false;
  bool paused = false;  // the sink must be drained before it is given more
  int proxy_status = 0;
  Headers proxy_headers;

 private:
  // Decodes a gzip body as it arrives. libcurl could do it, but takes a gzip body that ends early,
  // inside a correct Content-Length, for complete.
  struct Gunzip {
    Gunzip() {
      constexpr int kGzipOnly = 16 + MAX_WBITS;
      if (inflateInit2(&stream, kGzipOnly) != Z_OK) throw std::bad_alloc();
    }
    ~Gunzip() { inflateEnd(&stream); }
    Gunzip(const Gunzip&) = delete;
    Gunzip& operator=(const Gunzip&) = delete;

    z_stream stream{};
    std::string rest;          // of what was received
    bool inside = false;       // a gzip member that began has not ended
    bool more_output = false;  // zlib may hold decoded bytes for which there was no room
  };
  enum class LastLine : std::uint8_t { Status, Kept, LeftOut };
  // As in kTooManyHeaders. libcurl 8 takes no more, either.
  static constexpr std::size_t kMaxHeaders = 5000;
  void begin_block(std::string_view status_line);
  bool folded_line(std::string_view line);
  bool refuse(CURLcode code, std::string text);
  // `what`: with its verb.
  bool over_limit(const char* what, std::uint64_t limit);
  bool bad_response(const std::string& why);
  bool check_lengths();
  bool decoded_bytes(std::string_view bytes);
  bool write_to_sink(std::string_view bytes);
  bool release_to_sink();

  const Request& request_;
  const std::uint64_t max_body_;   // decoded bytes in memory
  const std::size_t max_headers_;  // all blocks and trailers
  Delivery* const delivery_;
  RacingSend* const racing_;
  bool kept_ = false;  // in memory, since it is not the response that is used
  AbortReason& abort_;
  std::size_t header_bytes_ = 0;
  LastLine last_line_ = LastLine::Status;  // of the block
  std::optional<Gunzip> gunzip_;
};

}  // namespace httpretry
