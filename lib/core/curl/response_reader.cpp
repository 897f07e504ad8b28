#include "response_reader.hpp"

#include "lib/core/base/text.hpp"

#include <algorithm>
#include <array>

namespace httpretry {
namespace {

// The most memory that is reserved at once, because a server may announce more than it sends.
constexpr std::uint64_t kMaxReserved = 1U << 30U;

// Enough for the headers of a typical response, so that they need no second allocation.
constexpr std::size_t kUsualHeaderLines = 12;
constexpr std::size_t kUsualHeaderBytes = 384;

// Returns the codings of the body, in the order in which they were applied.
std::vector<std::string_view> codings_of(const Headers& headers) {
  std::vector<std::string_view> codings;
  for (auto list : headers.get_all("Content-Encoding")) {
    while (!list.empty()) {
      const auto coding = trimmed(take_until(list, ','));
      if (!coding.empty() && !equal_ignoring_case(coding, "identity")) codings.push_back(coding);
    }
  }
  return codings;
}

using Length = std::optional<std::uint64_t>;

// Reads the value of one Content-Length, which may be a list of equal numbers. Sets `length`, or
// compares with it if an earlier field has set it. Returns "" or what is wrong.
std::string read_lengths(std::string_view list, Length& length) {
  for (;;) {
    const auto comma = list.find(',');
    const auto text = trimmed(list.substr(0, comma));
    const auto number = to_number<std::uint64_t>(text);
    if (!number) return "its Content-Length \"" + printable(text) + "\" is not a number";
    if (length && length != number) {
      return "its Content-Length is " + std::to_string(*length) + " and also " +
             std::to_string(*number);
    }
    length = number;
    if (comma == std::string_view::npos) return {};
    list.remove_prefix(comma + 1);
  }
}

// Returns the URL for Response::url, which is never one with a name or password.
std::string url_of(const Request& request) {
  const auto& url = *request.parsed_url();
  return url.has_userinfo() ? url.to_string() : request.url();
}

}  // namespace

// Returns why the headers do not say where the body ends, or "" if they do.
std::string length_problem(const Headers& headers) {
  Length length;
  bool has_transfer_encoding = false;
  for (const auto field : headers) {
    if (equal_ignoring_case(field.name, "Transfer-Encoding")) has_transfer_encoding = true;
    if (!equal_ignoring_case(field.name, "Content-Length")) continue;
    if (auto problem = read_lengths(field.value, length); !problem.empty()) return problem;
  }
  if (!has_transfer_encoding || !length) return {};
  return "it has both Content-Length and Transfer-Encoding; expected one";
}

ResponseReader::ResponseReader(const Request& request, const TransportOptions& options,
                               Delivery* delivery, const CurrentAttempt* attempt,
                               RacingSend* racing, AbortReason& abort)
    : request_(request),
      codings_(options.content_codings),
      max_body_(request.options().max_body.value_or(options.max_body)),
      max_headers_(options.max_headers),
      delivery_(delivery),
      attempt_(attempt),
      racing_(racing),
      abort_(abort) {}

// Begins a header block with this status line, such as "HTTP/1.1 404 Not Found", and drops the head
// of an earlier block. Reads the version, the status and the reason phrase. Leaves the status 0 if
// it finds none; `check_block` then refuses the response.
void ResponseReader::begin_block(std::string_view line) {
  received = 0;                    // bytes of the body
  checked_need_for_rest_ = false;  // check_need_for_rest checks once per response
  response.headers.clear();
  response.headers.reserve(kUsualHeaderLines, kUsualHeaderBytes);
  in_headers = true;  // until the empty line that ends the block
  last_line_ = LastLine::Status;
  location_left_out_ = false;
  awaits_block = false;  // check_block sets it again after a 1xx
  response.status = 0;
  response.reason.clear();
  if (!line.starts_with("HTTP/")) return;  // for example "http/1.1", which libcurl accepts
  take_until(line, '/');                   // removes "HTTP/"
  line = line.substr(0, line.find_last_not_of("\r\n ") + 1);
  const auto version = take_until(line, ' ');
  // libcurl refuses all versions but these three.
  response.http_version = version == "2" || version == "1.0" ? version : "1.1";
  if (line.starts_with(' ')) return;  // libcurl 8 does not accept two spaces in a status line
  const char* end = line.data() + line.size();
  // Without a number, `response.status` stays 0, and `after_status` is the start of `line`.
  const auto [after_status, problem] = std::from_chars(line.data(), end, response.status);
  if (after_status == end) return;  // there is no reason phrase
  // Skips the character after the status, which is a space in a valid status line.
  const std::string_view reason(after_status + 1, end);
  if (valid_header_value(reason)) response.reason = reason;
}

// Notes that a header line was dropped: libcurl accepts it, but RFC 9110 forbids it.
void ResponseReader::leave_out(bool is_location) {
  last_line_ = LastLine::LeftOut;
  location_left_out_ = location_left_out_ || is_location;
}

// Joins a line that begins with a space to the previous header, as libcurl does from 8.18 on.
// Earlier versions use only the first line, so a header that says where the body ends must not have
// a second one. Returns false to abort.
bool ResponseReader::folded_line(std::string_view line) {
  if (last_line_ == LastLine::Status) {
    return bad_response("begins with a header line that is not NAME: VALUE");
  }
  if (last_line_ == LastLine::LeftOut) return true;
  const auto name = response.headers[response.headers.size() - 1].name;
  for (const std::string_view framing : {"Content-Length", "Transfer-Encoding"}) {
    if (!equal_ignoring_case(name, framing)) continue;
    return bad_response("does not say where it ends: " + std::string(framing) +
                        " continues on a second line");
  }
  const bool is_location = equal_ignoring_case(name, "Location");
  if (!response.headers.try_continue(line)) leave_out(is_location);
  return true;
}

bool ResponseReader::refuse(CURLcode code, std::string text) {
  return abort_.set_error(CURLE_WEIRD_SERVER_REPLY, failure_of(code, std::move(text)));
}

bool ResponseReader::refuse_size(const char* subject_and_verb, std::uint64_t limit) {
  return refuse(CURLE_FILESIZE_EXCEEDED, "the response " + std::string(subject_and_verb) +
                                             " larger than " + std::to_string(limit) + " bytes");
}

bool ResponseReader::keep_proxy_block() {
  awaits_block = true;
  if (response.status >= 300 && !check_lengths()) return false;
  proxy_status = response.status;
  proxy_headers = std::move(response.headers);
  response.headers.clear();
  return true;
}

bool ResponseReader::check_block(long libcurls_status) {
  const int status = response.status;
  if (status < 100 || status > 999 || status != libcurls_status) {
    return bad_response("has no valid status line; expected HTTP/1.1 and three digits");
  }
  if (status == 101) return bad_response("switches to another protocol, which was not requested");
  awaits_block = status < 200;
  return !has_body() || check_lengths();
}

bool ResponseReader::has_body() const {
  const int status = response.status;
  return status >= 200 && status != 204 && status != 304 && request_.method() != "HEAD";
}

bool ResponseReader::check_lengths() {
  const auto problem = length_problem(response.headers);
  return problem.empty() || bad_response("does not say where it ends: " + problem);
}

bool ResponseReader::bad_response(const std::string& why) {
  return refuse(CURLE_WEIRD_SERVER_REPLY, "the response " + why);
}

// Decides whether the body of a final response goes to the sink or stays in memory. Returns false
// to abort, if the response is a redirect without a usable target or a part that was not asked for,
// or if the sink refuses it.
bool ResponseReader::begin_response() {
  // Without this error, the call would end with the redirect as if it had no target.
  if (location_left_out_ && response.status / 100 == 3 && response.status != 304) {
    return abort_.set_error(
        CURLE_URL_MALFORMAT,
        permanent_error(Errc::Protocol,
                        "the Location of the redirect contains a control character"));
  }
  in_memory_ = racing_ != nullptr && racing_->headers_came(response) == RacingSend::Use::No;
  if (in_memory_) return true;
  if (delivery_ == nullptr) {
    if (!has_body()) return true;
    auto error = unasked_part(request_, response);
    return !error || abort_.set_error(CURLE_WEIRD_SERVER_REPLY, *std::move(error));
  }
  response.url = url_of(request_);
  auto begun = delivery_->begin(request_, response);
  if (!begun) return sink_failed(std::move(begun).error());
  to_sink = *begun;
  return true;
}

// Called before the first bytes of the body. Prepares to decode it, or reserves memory for it.
// `announced` is its size (Content-Length), or -1 if the server did not announce it. Returns false
// to abort, with the reason in `abort_`.
bool ResponseReader::begin_body(std::int64_t announced) {
  body_begun = true;
  if (request_.options().compressed && !begin_decoding()) return false;
  // With `to_sink`, the sink gets the body from now on. With holds_back(), the beginning waits in
  // memory until the policy's rules have judged it. A sink takes a body of any size.
  const bool may_go_to_sink = to_sink || (delivery_ != nullptr && delivery_->holds_back());
  // The size of a decoded body is not announced.
  if (decoding_ || may_go_to_sink || announced <= 0) return true;
  return reserve_body(static_cast<std::uint64_t>(announced));
}

// Prepares to decode the body if it is encoded. Returns false to abort if the body of a success has
// several codings or one that was not requested.
bool ResponseReader::begin_decoding() {
  const auto codings = codings_of(response.headers);
  if (codings.empty()) return true;  // the body is not encoded
  const auto* coding = codings.size() == 1 ? find_coding(codings[0], codings_) : nullptr;
  if (coding != nullptr) {
    decoding_.emplace(*coding);
    // The body of a failure or a redirect may not be encoded at all, whatever its headers say. So
    // it is also kept as it came.
    decoding_->keeps_undecoded = head_suffices();
    return true;
  }
  // The body cannot be decoded. That of a failure or a redirect is not essential, so it is used as
  // it came.
  if (head_suffices()) return true;
  return refuse(CURLE_BAD_CONTENT_ENCODING,
                "the response body has a coding that was not requested; expected one of " +
                    names_of_codings(codings_));
}

// Reserves memory for a body of the announced size. Returns false to abort if the body is too large
// to be kept in memory.
bool ResponseReader::reserve_body(std::uint64_t announced) {
  if (announced > max_body_) {
    // If the response will be retried, that is the reason to abort, and not the size.
    if (!check_need_for_rest()) return false;
    return refuse_size("body is", max_body_);
  }
  // The policy's rules read at most kClassifiedBody of a failure, and usually little more arrives.
  response.body.reserve(std::min(announced, head_suffices() ? kClassifiedBody : kMaxReserved));
  return true;
}

// Delivers bytes of the body to the sink or the body in memory, after decoding them if the body is
// encoded. Decodes `budget` bytes at most, reduces it by their number, and keeps the input that is
// left. Call it only if no earlier input is left (`has_rest` returns false). Returns false to
// abort; the reason is then in `abort_`.
bool ResponseReader::body_bytes(std::string_view bytes, std::size_t& budget) {
  received += bytes.size();
  if (!decoding_) return deliver_decoded(bytes);
  if (decoding_->keeps_undecoded && !keep_undecoded(bytes)) return use_undecoded();
  decoding_->input = bytes;
  const bool delivered = decode_rest(budget);
  if (!decoding_) return delivered;    // decode_rest has used the body as it came
  decoding_->rest = decoding_->input;  // a copy, because libcurl reuses the memory of `bytes`
  decoding_->input = decoding_->rest;
  return delivered;
}

// Keeps bytes of a failure's body as they came, because some servers name a coding for a body that
// is not encoded. Returns false if the body turns out to be such a body: the decoder got nothing
// out of more than kClassifiedBody (as much as the retry rules read).
bool ResponseReader::keep_undecoded(std::string_view bytes) {
  // Tested before the new bytes are added, because the decoder has not seen these yet.
  const bool seen_enough = decoding_->undecoded.size() > kClassifiedBody;
  decoding_->undecoded += bytes;
  if (!seen_enough) return true;
  if (!decoding_->decoded_any) return false;
  decoding_->keeps_undecoded = false;  // a part could be decoded, so the body is encoded
  decoding_->undecoded = std::string();
  return true;
}

// Decodes the input, and delivers the result to the sink or the body in memory. Stops when no input
// is left, when `budget` more bytes were decoded (it is reduced by their number), or when the sink
// must be drained (`paused`). Returns false to abort the exchange if the bytes are corrupt or
// cannot be delivered; the reason is then in `abort_`.
bool ResponseReader::decode_rest(std::size_t& budget) {
  using State = ContentCoder::State;
  std::array<char, 16384> decoded;
  while (has_rest() && budget > 0 && !paused) {
    // A body may consist of several compressed parts, one behind the other. `inside_part` is true
    // until the decoder finds the end of a part. If the body ends before that, it was cut short.
    decoding_->inside_part = true;
    const auto out = std::span(decoded).first(std::min(decoded.size(), budget));
    const auto step = decoding_->decoder.run(decoding_->input, out, /*last=*/false);
    if (const char* problem = decoding_->decoder.problem()) {
      return refuse(CURLE_BAD_CONTENT_ENCODING,
                    "the coding " + decoding_->coding.name + " of the response body " + problem);
    }
    if (step.state == State::Corrupt) {
      // The body of a failure may not be encoded at all, and is then used as it came. But the sink
      // cannot give back what it has.
      const bool can_start_over = !to_sink || !decoding_->decoded_any;
      if (decoding_->keeps_undecoded && can_start_over) return use_undecoded();
      return refuse(CURLE_BAD_CONTENT_ENCODING,
                    "the " + decoding_->coding.name + " body of the response is corrupt");
    }
    budget -= step.written;
    // An empty part that is valid also proves that the body is encoded.
    if (step.written > 0 || step.state == State::End) decoding_->decoded_any = true;
    decoding_->more_output = step.state == State::MoreOutput;  // `out` was too small for all
    if (step.state == State::End) decoding_->inside_part = false;
    if (step.written > 0 && !deliver_decoded({decoded.data(), step.written})) return false;
  }
  return true;
}

// Ends the decoding of a failure's body, and delivers the body as it came, because it is not
// encoded as its headers say. Returns false to abort.
bool ResponseReader::use_undecoded() {
  const std::string bytes = std::move(decoding_->undecoded);
  decoding_.reset();
  response.body.clear();
  return deliver_decoded(bytes);
}

// Writes bytes of the body to the sink or appends them to the body in memory. When enough is in
// memory for the policy's rules to judge the response, the body of a success may go to the sink
// after all, and a failure that will be retried is aborted, because the rest of its body is of no
// use. Returns false to abort, with the reason in `abort_`: that one, a failure of the sink, or a
// body that is too large for memory.
bool ResponseReader::deliver_decoded(std::string_view bytes) {
  if (to_sink) return write_to_sink(bytes);
  auto& body = response.body;
  // The rules read at most this much of a failure's body. Before more of it is kept, checks once
  // whether the response will be retried.
  const auto most_read = std::min<std::uint64_t>(kClassifiedBody, max_body_);
  if (head_suffices() && body.size() + bytes.size() > most_read && !checked_need_for_rest_) {
    const auto missing = most_read - body.size();
    body.append(bytes.substr(0, missing));
    bytes.remove_prefix(missing);
    if (!check_need_for_rest()) return false;
  }
  if (bytes.size() > max_body_ - body.size()) return refuse_size("body is", max_body_);
  body.append(bytes);
  // A success may have been held back from the sink until the rules can judge it. With
  // `in_memory_`, its body stays in memory, because only another send of the attempt, such as a
  // hedge, may use the sink.
  const bool can_judge = delivery_ != nullptr && !in_memory_ && delivery_->can_judge(body.size());
  return !can_judge || release_to_sink();
}

bool ResponseReader::check_need_for_rest() {
  const bool checked_before = std::exchange(checked_need_for_rest_, true);
  const bool asks = !checked_before && head_suffices() && !to_sink && attempt_ != nullptr;
  if (!asks || !attempt_->will_retry || !attempt_->will_retry(response)) return true;
  return abort_.set(Abort::RestUnneeded);
}

bool ResponseReader::write_to_sink(std::string_view bytes) {
  auto wish = delivery_->write(bytes);
  if (!wish) return sink_failed(std::move(wish).error());
  if (*wish == BodyWriter::Wish::Stop) return sink_failed(reader_stopped());
  paused = paused || *wish == BodyWriter::Wish::Pause;
  return true;
}

// Gives the sink the part of the body that was held back in memory, unless the response is a
// failure or another send's response is used.
bool ResponseReader::release_to_sink() {
  in_memory_ = racing_ != nullptr && !racing_->uses(response);
  if (in_memory_) return true;
  auto released = delivery_->release(request_, response);
  if (!released) return sink_failed(std::move(released).error());
  to_sink = *released;
  return !to_sink || write_to_sink(std::exchange(response.body, {}));
}

bool ResponseReader::sink_failed(Error error) {
  return abort_.set_error(CURLE_WRITE_ERROR, std::move(error));
}

Outcome ResponseReader::take_response() {
  if (decoding_ && !decoding_->decoded_any && decoding_->keeps_undecoded) {
    response.body = std::move(decoding_->undecoded);  // too short for the coding
  } else if (decoding_) {                             // these headers describe the encoded body
    response.headers.remove("Content-Encoding");
    response.headers.remove("Content-Length");
  }
  response.url = url_of(request_);
  return Outcome(std::in_place, std::move(response));
}

}  // namespace httpretry
