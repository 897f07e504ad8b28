#include <lib/extras/testing/response_writer.hpp>

#include <zlib.h>

#include <array>
#include <charconv>
#include <limits>
#include <stdexcept>

namespace httpretry::faults {
namespace {

constexpr std::size_t kBlock = 65536;  // the chunk size of Huge: one write, little memory
constexpr std::size_t kGzipBlock = std::size_t{1} << 24;  // 16 MiB, which are compressed to 16 KiB
constexpr std::string_view kLineEnd = "\r\n";
constexpr const char* kLastChunk = "0\r\n\r\n";
// Begins with two bytes that look like TLS, but is neither TLS nor HTTP.
constexpr std::string_view kGarbage = "\x16\xFF not \r\n\r\n HTTP at all \x01\x02\r\n\r\n";

// Each entry is "CODE PHRASE|". Only the codes have digits, so a search for a code finds its entry.
constexpr std::string_view kReasons =
    "100 Continue|102 Processing|103 Early Hints|200 OK|201 Created|202 Accepted|"
    "204 No Content|206 Partial Content|301 Moved Permanently|302 Found|303 See Other|"
    "304 Not Modified|307 Temporary Redirect|308 Permanent Redirect|400 Bad Request|"
    "401 Unauthorized|403 Forbidden|404 Not Found|405 Method Not Allowed|"
    "407 Proxy Authentication Required|408 Request Timeout|409 Conflict|"
    "412 Precondition Failed|413 Content Too Large|416 Range Not Satisfiable|"
    "417 Expectation Failed|425 Too Early|429 Too Many Requests|"
    "431 Request Header Fields Too Large|500 Internal Server Error|502 Bad Gateway|"
    "503 Service Unavailable|504 Gateway Timeout|505 HTTP Version Not Supported|";

std::string_view reason(int status) {
  const auto code = kReasons.find(std::to_string(status));
  if (code == std::string_view::npos) return "";
  const auto phrase = kReasons.substr(code + 4);
  return phrase.substr(0, phrase.find('|'));
}

// Returns the text, compressed as a complete gzip file. Throws std::runtime_error if the text is
// too large for one call of zlib (4 GiB), or zlib fails.
std::string gzip(std::string_view text) {
  constexpr int kGzipWindow = 15 + 16;  // the largest window; adding 16 selects a gzip wrapper
  constexpr int kDefaultMemLevel = 8;   // zlib's default, for which its header has no name
  z_stream stream{};
  if (text.size() > std::numeric_limits<uInt>::max() ||
      deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, kDefaultMemLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("cannot compress the body");
  }
  // The bound is large enough to compress everything in one call.
  std::string compressed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));  // only read
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(compressed.data());
  stream.avail_out = static_cast<uInt>(compressed.size());
  const int result = deflate(&stream, Z_FINISH);
  compressed.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) throw std::runtime_error("cannot compress the body");
  return compressed;
}

std::string_view first_half(const std::string& text) {
  return std::string_view(text).substr(0, text.size() / 2);
}

std::string chunk(std::string_view bytes) {
  std::array<char, 16> size{};
  char* const end = std::to_chars(size.data(), size.data() + size.size(), bytes.size(), 16).ptr;
  std::string whole(size.data(), end);
  whole.append("\r\n").append(bytes).append("\r\n");
  return whole;
}

// Performs one step on a channel.
struct ResponseWriter {
  Channel& channel;
  const Step& step;
  const SeenRequest& request;
  const bool persistent;
  const std::optional<std::chrono::seconds> idle_timeout;
  const bool has_no_body = is_bodiless(step.status) || request.method == "HEAD";
  const std::string body = step_body(step);

  bool send() const {
    return send_interims() && channel.pause(step.delay) && perform() && persistent;
  }

  bool send_interims() const {
    std::string blocks;
    for (const auto& interim : step.interims) {
      blocks += status_line(interim.status) + header_lines(interim.headers) + "\r\n";
    }
    return request.http_version == "1.0" || channel.write(blocks);
  }

  // Sends the response of the step, or performs its fault, such as a body that breaks off. Returns
  // true if everything was written and the connection may stay open. Returns false if it must end:
  // the caller then closes it with a FIN, unless reset() has already sent an RST.
  bool perform() const {
    switch (step.fault) {
      case Fault::None:
      case Fault::Stale:         // the next request on this connection fails
      case Fault::GzipCutShort:  // `body` is cut already
        return channel.write(head() + framed_body());
      case Fault::Drip: return send_drip();
      case Fault::Huge: return send_huge(kBlock);
      case Fault::GzipBomb: return send_huge(kGzipBlock);
      case Fault::HugeHeaders: return send_huge_headers();
      // fail_unread() performs ResetEarly and the TLS faults before a request is read. In a step
      // that a path selects or a callback computes, they come too late, and act like Reset or Hang.
      case Fault::Reset:
      case Fault::ResetEarly:
      case Fault::TlsReset: channel.reset(); break;
      case Fault::Hang:
      case Fault::TlsStall: channel.wait_for_disconnect(); break;
      case Fault::ResetDuring:
        write_last(head().append(first_half(framed_body())));
        channel.reset();
        break;
      case Fault::Truncate: write_last(head().append(first_half(framed_body()))); break;
      case Fault::Garbage:
        write_last(step.body.empty() ? kGarbage : std::string_view(step.body));
        break;
      case Fault::BadChunk:
        write_last(head(Framing::Chunked) +
                   (has_no_body ? "" : chunk(first_half(body)) + "no number\r\n"));
        break;
      case Fault::EndlessInterim: send_repeatedly(status_line(103) + "X-Filler: x\r\n\r\n"); break;
      case Fault::Http2EmptyData:
      case Fault::Http2GoawayFlood:
      case Fault::Http2ResetFlood:
      case Fault::Http2NoEndStream:
        write_last(error_response(505, "this fault exists only in HTTP/2\n"));
        break;
      case Fault::Close:    // no response; the caller closes the connection
      case Fault::Refused:  // StepQueue rejects steps with Refused or Resolve
      case Fault::Resolve: break;
    }
    return false;
  }

  // Writes the last bytes of a connection. An error makes no difference.
  void write_last(std::string_view bytes) const { static_cast<void>(channel.write(bytes)); }

  // Repeats the block until `step.size` bytes have been written.
  bool send_repeatedly(std::string_view block) const {
    for (std::uint64_t sent = 0; sent < step.size; sent += block.size()) {
      if (!channel.write(block)) return false;
    }
    return true;
  }

  // Sends the head, then one byte of the body after each `step.interval`.
  bool send_drip() const {
    const auto bytes = framed_body();
    bool alive = channel.write(head());
    for (std::size_t i = 0; alive && i < bytes.size(); ++i) {
      alive = channel.pause(step.interval) && channel.write({&bytes[i], 1});
    }
    return alive;
  }

  // Sends `step.size` bytes of filler in chunks of `chunk_size`. Returns false if the client has
  // closed the connection.
  bool send_huge(std::size_t chunk_size) const {
    const auto filler_chunk = [this](std::uint64_t size) -> std::string {
      if (size == 0) return "";
      const std::string filler(static_cast<std::size_t>(size), 'x');
      return chunk(step.fault == Fault::GzipBomb ? gzip(filler) : filler);
    };
    if (!channel.write(head(Framing::Chunked))) return false;
    if (has_no_body) return true;
    const auto full_chunk = filler_chunk(chunk_size);
    for (auto left = step.size; left >= chunk_size; left -= chunk_size) {
      if (!channel.write(full_chunk)) return false;
    }
    return channel.write(filler_chunk(step.size % chunk_size) + kLastChunk);
  }

  // Sends a head with `step.size` bytes of filler headers, in lines of 1 KiB, and then the body.
  bool send_huge_headers() const {
    std::string line = "X-Filler: ";
    line.append(1024 - line.size() - kLineEnd.size(), 'x').append(kLineEnd);
    auto bytes = head();
    bytes.resize(bytes.size() - kLineEnd.size());  // without the empty line at the end
    return channel.write(bytes) && send_repeatedly(line) &&
           channel.write(std::string(kLineEnd) + framed_body());
  }

  std::string framed_body() const {
    if (has_no_body) return {};
    if (!step.headers.contains("Transfer-Encoding")) return body;
    return (body.empty() ? "" : chunk(body)) + kLastChunk;
  }

  enum class Framing { OfStep, Chunked };

  // Returns the head of the response: the status line, the headers of the step, and the usual
  // headers that the step lacks. Framing::Chunked, for faults that send a chunked body, sets
  // "Transfer-Encoding: chunked" and adds no Content-Length.
  std::string head(Framing framing = Framing::OfStep) const {
    auto headers = headers_now(step);  // with the times of headers such as Date
    if (framing == Framing::Chunked) headers.set("Transfer-Encoding", "chunked");
    const auto add_default = [&](const char* name, const std::string& value) {
      if (!headers.contains(name)) headers.add(name, value);
    };
    // A status such as 204 has no length, and a chunked body must not have one.
    if (!is_bodiless(step.status) && !headers.contains("Transfer-Encoding")) {
      add_default("Content-Length", std::to_string(body.size()));
    }
    const bool is_gzip =
        step.gzip || step.fault == Fault::GzipCutShort || step.fault == Fault::GzipBomb;
    if (is_gzip) add_default("Content-Encoding", "gzip");
    if (!persistent) add_default("Connection", "close");
    if (persistent && idle_timeout) {  // the server closes an idle connection after that time
      add_default("Keep-Alive", "timeout=" + std::to_string(idle_timeout->count()));
    }
    return status_line(step.status) + header_lines(headers) + "\r\n";
  }
};

}  // namespace

bool is_bodiless(int status) { return status == 204 || status == 304; }

std::string step_body(const Step& step) {
  constexpr std::size_t kFiller = 1024;  // documented for Fault
  const bool plain =
      step.fault == Fault::None || step.fault == Fault::Stale || step.fault == Fault::HugeHeaders;
  const auto text = step.body.empty() && !plain ? std::string(kFiller, 'x') : step.body;
  if (step.fault == Fault::GzipCutShort) return std::string(first_half(gzip(text)));
  return step.gzip ? gzip(text) : text;
}

std::string status_line(int status) {
  std::string line = "HTTP/1.1 " + std::to_string(status) + ' ';
  return line.append(reason(status)).append("\r\n");
}

Headers headers_now(const Step& step) {
  auto headers = step.headers;
  add_times(headers, step.time_headers, std::chrono::system_clock::now());
  return headers;
}

std::string header_lines(const Headers& headers) {
  std::string lines;
  for (const auto field : headers) {
    lines.append(field.name).append(": ").append(field.value).append("\r\n");
  }
  return lines;
}

std::string error_response(int status, std::string_view body) {
  std::string response = status_line(status) + "Connection: close\r\nContent-Length: ";
  return response.append(std::to_string(body.size())).append("\r\n\r\n").append(body);
}

bool send_response(Channel& channel, const Step& step, const SeenRequest& request, bool persistent,
                   std::optional<std::chrono::seconds> idle_timeout) {
  const bool closes = equal_ignoring_case(step.headers.get("Connection").value_or(""), "close");
  return ResponseWriter{channel, step, request, persistent && !closes, idle_timeout}.send();
}

}  // namespace httpretry::faults
