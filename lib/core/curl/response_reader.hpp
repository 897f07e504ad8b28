// ResponseReader: turns the bytes of a server into a response. Header blocks come first; the last
// one counts, after any 1xx, a proxy's response to CONNECT and rounds of authentication. Then comes
// the body, which is decoded, limited in size, and kept in memory or written to the call's sink.
#pragma once

#include "content_codings.hpp"
#include "errors.hpp"

#include "lib/core/body/detail/delivery.hpp"
#include "lib/core/chain/current_attempt.hpp"
#include "lib/core/chain/racing_send.hpp"

#include <httpretry/curl/transport_options.hpp>

namespace httpretry {

// Returns why the headers do not say where the body ends (RFC 9112 §6.3), or "" if they do. libcurl
// uses the last of several lengths. A proxy that uses another one would see a different body or
// next response.
std::string length_problem(const Headers& headers);

class ResponseReader {
 public:
  // `delivery` receives the body, or is nullptr to keep it in memory. `attempt` is nullptr without
  // the middleware `retry`. `racing` is set if other sends of the attempt may have responses as
  // well.
  ResponseReader(const Request& request, const TransportOptions& options, Delivery* delivery,
                 const CurrentAttempt* attempt, RacingSend* racing, AbortReason& abort);

  // These functions are called from libcurl's callbacks. False aborts the exchange, and the reason
  // is set. They throw what the sink throws, or std::bad_alloc.

  bool header_line(std::string_view line) {  // inline, because it is called for each line
    header_bytes_ += line.size();
    if (header_bytes_ > max_headers_) return refuse_size("headers are", max_headers_);
    if (!in_headers) {
      // Lines outside a block are trailers. libcurl ignores the case of this prefix.
      if (awaits_block && equal_ignoring_case(line.substr(0, 5), "HTTP/")) begin_block(line);
    } else if (line == "\r\n" || line == "\n") {
      in_headers = false;
    } else if (line.starts_with(' ') || line.starts_with('\t')) {
      return folded_line(line);
    } else if (response.headers.size() == kMaxHeaders) {
      return refuse(CURLE_FILESIZE_EXCEEDED, kTooManyHeaders);
    } else if (response.headers.try_add_line(line)) {
      last_line_ = LastLine::Kept;
    } else {
      leave_out(/*is_location=*/equal_ignoring_case(line.substr(0, 9), "Location:"));
    }
    return true;
  }
  // Called if the block is a proxy's response to CONNECT.
  bool keep_proxy_block();
  // Checks that the block can be trusted: libcurl must have read the same status, and the headers
  // must say where the body ends.
  bool check_block(long libcurls_status);
  // Called if the block belongs to a final response. Decides whether its body goes to the sink.
  bool begin_response();
  // Called before the first bytes of a body. `announced` is the Content-Length, or -1.
  bool begin_body(std::int64_t announced);
  // Decode the bytes, or more of those that were kept, and deliver them. Both functions stop when
  // the sink must be drained, or when `budget`, the number of bytes that may be decoded now, is
  // used up; they reduce it. What cannot be decoded yet is kept.
  bool body_bytes(std::string_view bytes, std::size_t& budget);
  bool decode_rest(std::size_t& budget);
  [[nodiscard]] bool has_rest() const {
    return decoding_ && (!decoding_->input.empty() || decoding_->more_output);
  }
  bool sink_failed(Error error);

  // Returns whether a response of this kind can have a body (RFC 9112 §6.3).
  [[nodiscard]] bool has_body() const;
  // Returns whether the status and the headers of the response say enough without its body: those
  // of a failure, and of a redirect.
  [[nodiscard]] bool head_suffices() const {
    return response.status >= 400 ||
           (response.status >= 300 && response.headers.contains("Location"));
  }
  // Sets the reason to abort if the response will be retried, because the rest of its body is then
  // of no use. Finds that out only once, because a final response needs its whole body. Returns
  // false to abort.
  bool check_need_for_rest();
  // Returns the name of the body's coding if the body is incomplete, otherwise nullptr.
  [[nodiscard]] const std::string* cut_short() const {
    return decoding_ && decoding_->inside_part ? &decoding_->coding.name : nullptr;
  }
  // Returns the complete response.
  Outcome take_response();
  static constexpr char kTooManyHeaders[] = "the response has more than 5000 headers";

  Response response;        // as far as received: the last block and the body
  bool in_headers = false;  // between a status line and the empty line that ends the block
  // A status line may come. False after a final response until the request is sent again.
  bool awaits_block = true;
  bool body_begun = false;
  std::uint64_t received = 0;  // bytes of the body, before decoding
  bool to_sink = false;
  bool paused = false;  // the sink must be drained before it gets more
  int proxy_status = 0;
  Headers proxy_headers;

 private:
  // Decodes a body as it arrives. libcurl could do it, but treats a gzip body that ends early as
  // complete if its Content-Length is correct.
  struct Decoding {
    explicit Decoding(const ContentCoding& used) : coding(used), decoder(used.decoder()) {}

    const ContentCoding& coding;
    CheckedCoder decoder;
    // A failure's body as it came, while it is small. Some codings have no signature, so a body
    // that is not encoded may decode to some bytes before it turns out to be corrupt.
    std::string undecoded;
    bool keeps_undecoded = true;
    std::string rest;        // received but not decoded
    std::string_view input;  // the part of `rest`, or of libcurl's buffer, that is not decoded yet
    bool decoded_any = false;  // at least one byte, or a whole part that is empty
    bool inside_part = false;  // a compressed part has begun but not ended
    bool more_output = false;  // the decoder may hold bytes that did not fit into the buffer
  };
  enum class LastLine : std::uint8_t { Status, Kept, LeftOut };
  // The number in kTooManyHeaders, and libcurl 8's own limit.
  static constexpr std::size_t kMaxHeaders = 5000;
  void begin_block(std::string_view status_line);
  void leave_out(bool is_location);
  bool folded_line(std::string_view line);
  bool refuse(CURLcode code, std::string text);
  // Aborts with "the response SUBJECT_AND_VERB larger than LIMIT bytes".
  bool refuse_size(const char* subject_and_verb, std::uint64_t limit);
  bool bad_response(const std::string& why);
  bool check_lengths();
  bool begin_decoding();
  bool reserve_body(std::uint64_t announced);
  bool keep_undecoded(std::string_view bytes);
  bool use_undecoded();
  bool deliver_decoded(std::string_view bytes);
  bool write_to_sink(std::string_view bytes);
  bool release_to_sink();

  const Request& request_;
  const std::vector<ContentCoding>& codings_;  // in addition to gzip
  const std::uint64_t max_body_;               // decoded bytes in memory
  const std::size_t max_headers_;              // for all blocks and trailers together
  Delivery* const delivery_;
  const CurrentAttempt* const attempt_;
  RacingSend* const racing_;
  bool checked_need_for_rest_ = false;
  bool in_memory_ = false;  // the body stays there: the response of another send is used
  AbortReason& abort_;
  std::size_t header_bytes_ = 0;
  LastLine last_line_ = LastLine::Status;  // the kind of the last line of the block
  bool location_left_out_ = false;         // a Location of the block was not valid
  std::optional<Decoding> decoding_;
};

}  // namespace httpretry
