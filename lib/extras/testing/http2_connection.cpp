#include <lib/extras/testing/http2_connection.hpp>

#include <lib/core/base/text.hpp>
#include <lib/extras/testing/hpack.hpp>
#include <lib/extras/testing/http2_frames.hpp>
#include <lib/extras/testing/request_reader.hpp>
#include <lib/extras/testing/response_writer.hpp>

#include <algorithm>

namespace httpretry::faults {
namespace {

using std::chrono::steady_clock;
using std::chrono::system_clock;

// The connection preface after its head, "PRI * HTTP/2.0\r\n\r\n".
constexpr std::string_view kPrefaceRest = "SM\r\n\r\n";
constexpr std::size_t kMaxBlock = 64 * 1024;  // of headers, as for HTTP/1
constexpr std::size_t kFloodBlock = 64 * 1024;
constexpr std::uint32_t kNoError = 0;
constexpr std::uint32_t kProtocolError = 1;
constexpr std::uint32_t kInitialWindow = 65'535;
constexpr char kSettingsInitialWindow = 4;

// OpenSSL calls this with the protocols that the client offers. Chooses HTTP/2 if it is among them,
// and otherwise no protocol, so that the connection uses HTTP/1.1.
int choose_http2(SSL* /*tls*/, const unsigned char** chosen, unsigned char* size,
                 const unsigned char* offered, unsigned offered_size, void* /*user*/) {
  static constexpr unsigned char kHttp2[] = {2, 'h', '2'};  // each name follows its length
  auto* name = const_cast<unsigned char*>(*chosen);
  const int result =
      SSL_select_next_proto(&name, size, kHttp2, sizeof kHttp2, offered, offered_size);
  *chosen = name;
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

bool is_http1_only(std::string_view header) {
  return header == "connection" || header == "keep-alive" || header == "transfer-encoding";
}

// Returns the request in the decoded fields of an HTTP/2 header block, or nullopt if it is
// malformed. The fields ":method" and ":path" stand for the request line, and ":authority" for the
// header Host. Other fields that begin with ":" are ignored.
std::optional<SeenRequest> request_from(const std::vector<HpackField>& fields) {
  SeenRequest request;
  request.http_version = "2";
  std::string authority;
  for (const auto& [name, value] : fields) {
    if (name == ":method") {
      request.method = value;
    } else if (name == ":path") {
      request.target = value;
    } else if (name == ":authority") {
      authority = value;
    } else if (name.starts_with(':')) {
      continue;
    } else if (!request.headers.try_add(name, value)) {
      return std::nullopt;
    }
  }
  if (request.method == "CONNECT") request.target = authority;  // such a request has no ":path"
  if (!authority.empty() && !request.headers.contains("Host")) {
    if (!request.headers.try_add("Host", authority)) return std::nullopt;
  }
  request.path = path_of(request.method, request.target);
  // A method is a token, as the name of a header is.
  if (!valid_header_name(request.method) || request.target.empty()) return std::nullopt;
  return request;
}

struct Stream {
  SeenRequest request;
  std::int64_t window = kInitialWindow;  // bytes that the client allows us to send
  std::string unsent;                    // rest of the response body
  bool has_body_to_send = false;         // the head was sent, and the body follows
  bool closes_connection = false;        // after the response
};

class Http2Connection {
 public:
  Http2Connection(Shared& shared, std::uint64_t number, Channel& channel, std::string rest)
      : shared_(shared), number_(number), channel_(channel), reader_(channel, std::move(rest)) {}

  // Handles frames until the connection ends.
  void serve() {
    if (reader_.read(kPrefaceRest.size()) != kPrefaceRest) return;
    if (!channel_.write(frame(FrameType::Settings, kNoFlags, kWholeConnection))) return;
    auto received = read_frame();
    while (received && handle(*received)) received = read_frame();
    // Unread bytes would turn the FIN into an RST.
    channel_.linger();
  }

 private:
  std::optional<Frame> read_frame() {
    const auto idle = shared_.options.idle_timeout;
    return reader_.read_frame(idle ? later(steady_clock::now(), *idle) : kNever);
  }

  // The functions below return false if the connection must end.

  // Acts on a frame of the client by its type. Returns false if the connection must end.
  bool handle(Frame& received) {
    const bool acknowledges = (received.flags & kAck) != 0;  // needs no action
    switch (received.type) {
      case FrameType::Headers: return begin_request(received);
      case FrameType::Data: return take_data(received);
      case FrameType::Settings: return acknowledges || take_settings(received.payload);
      case FrameType::WindowUpdate: return update_window(received);
      case FrameType::Reset: streams_.erase(received.stream); return true;
      case FrameType::Ping:
        return acknowledges ||
               channel_.write(frame(FrameType::Ping, kAck, kWholeConnection, received.payload));
      case FrameType::Continuation: return false;  // begin_request() reads those after HEADERS
      case FrameType::Goaway: break;               // the client closes the connection itself
    }
    return true;  // ignores GOAWAY, and frames of other types
  }

  // Reads the headers of a request from a HEADERS frame and the CONTINUATION frames after it, and
  // responds if the request ends with them. A second HEADERS frame of a stream has trailers. They
  // are ignored, but must be decoded to keep the state of HPACK. Returns false if the frames are
  // malformed, or the connection ends.
  bool begin_request(Frame& head) {
    if (!remove_padding(head)) return false;
    auto block = std::move(head.payload);  // the compressed headers
    for (auto flags = head.flags; (flags & kEndHeaders) == 0;) {
      const auto more = read_frame();
      if (!more || more->type != FrameType::Continuation) return false;
      if (more->stream != head.stream) return false;
      flags = more->flags;
      block += more->payload;
      if (block.size() > kMaxBlock) return false;
    }
    const auto fields = decoder_.decode(block);
    if (!fields) return false;
    const bool are_trailers = streams_.contains(head.stream);
    auto& stream = streams_[head.stream];
    if (!are_trailers) {
      auto request = request_from(*fields);
      if (!request) return respond(head.stream, stream, Step(400));
      stream.request = *std::move(request);
      stream.request.arrived = steady_clock::now();
      stream.request.arrived_wall = system_clock::now();
      stream.request.connection = number_;
      stream.window = initial_window_;
    }
    const bool body_follows = (head.flags & kEndStream) == 0;
    return body_follows || perform_next_step(head.stream, stream);
  }

  // Reads a part of a request's body, and responds after the last part.
  bool take_data(Frame& data) {
    // Lets the client send as much again. Its window counts padding as well.
    const auto size = static_cast<std::uint32_t>(data.payload.size());
    const auto update = [size](std::uint32_t stream) {
      return frame(FrameType::WindowUpdate, kNoFlags, stream, to_bytes(size));
    };
    if (size > 0 && !channel_.write(update(kWholeConnection) + update(data.stream))) return false;
    const auto found = streams_.find(data.stream);
    if (found == streams_.end()) return true;  // the stream was refused or has ended
    if (!remove_padding(data)) return false;
    keep_body(found->second.request, data.payload);
    return (data.flags & kEndStream) == 0 || perform_next_step(data.stream, found->second);
  }

  // Applies the client's initial window, which changes the windows of open streams by the same
  // amount. Ignores the other settings.
  bool take_settings(std::string_view settings) {
    constexpr std::size_t kEntry = 6;  // two bytes for the name, four for the value
    for (; settings.size() >= kEntry; settings.remove_prefix(kEntry)) {
      if (settings[0] != 0 || settings[1] != kSettingsInitialWindow) continue;
      const std::int64_t window = number_at(settings.substr(2));
      for (auto& [id, stream] : streams_) stream.window += window - initial_window_;
      initial_window_ = window;
    }
    return channel_.write(frame(FrameType::Settings, kAck, kWholeConnection)) && send_bodies();
  }

  bool update_window(const Frame& update) {
    const auto found = streams_.find(update.stream);
    if (update.stream == kWholeConnection) {
      window_ += number_at(update.payload);
    } else if (found != streams_.end()) {
      found->second.window += number_at(update.payload);
    }
    return send_bodies();
  }

  // Takes the step for a complete request, and performs it.
  bool perform_next_step(std::uint32_t id, Stream& stream) {
    auto& request = stream.request;
    request.body_complete = true;
    if (request.method == "CONNECT") return respond(id, stream, Step(405));
    const auto taken = shared_.steps.take(request.path);
    request.step = taken.index;
    shared_.record(request);
    return taken.step->respond ? perform(id, stream, compute_step(*taken.step, request))
                               : perform(id, stream, *taken.step);
  }

  bool perform(std::uint32_t id, Stream& stream, const Step& step) {
    return channel_.pause(step.delay) && respond(id, stream, step);
  }

  // Sends the response of a step on the stream `id`, or performs the step's fault. Returns false if
  // the caller must end the connection, because the fault requires it or writing failed. Faults
  // during the TLS handshake come too late here, so the nearest possible fault replaces them.
  // Faults that exist only in HTTP/1.1 result in a response that says so.
  bool respond(std::uint32_t id, Stream& stream, const Step& step) {
    switch (step.fault) {
      case Fault::None:
      case Fault::GzipCutShort: return send_response(id, stream, step);
      case Fault::Hang:
      case Fault::TlsStall: return true;  // no response; other streams go on
      case Fault::Close:
      case Fault::Refused:
      case Fault::Resolve: return false;
      case Fault::Reset:
      case Fault::ResetEarly:
      case Fault::TlsReset: channel_.reset(); return false;  // ends the connection with an RST
      case Fault::ResetDuring:
        if (send_half(id, stream, step)) channel_.reset();
        return false;
      case Fault::Truncate: send_half(id, stream, step); return false;
      case Fault::Http2EmptyData:
      case Fault::Http2GoawayFlood:
      case Fault::Http2ResetFlood: flood(id, step); return false;
      case Fault::Http2NoEndStream:
        // The frame claims 32 bytes of padding, but has only one byte after the length.
        return send_half(id, stream, step) &&
               channel_.write(frame(FrameType::Data, kPadded, id, "\x20x"));
      case Fault::Drip:
      case Fault::Garbage:
      case Fault::Stale:
      case Fault::Huge:
      case Fault::BadChunk:
      case Fault::HugeHeaders:
      case Fault::EndlessInterim:
      case Fault::GzipBomb: break;
    }
    return send_response(id, stream, Step(505, "this fault exists only in HTTP/1.1\n"));
  }

  // Returns the frames with the status and the headers of the response. Without `length`, or if the
  // status allows no body, there is no Content-Length.
  std::string head(std::uint32_t id, const Step& step, std::optional<std::size_t> length,
                   unsigned flags = kNoFlags) const {
    std::string block = hpack_literal(":status", std::to_string(step.status));
    const auto headers = headers_now(step);
    for (const auto field : headers) {
      const auto name = to_lower(field.name);
      if (!is_http1_only(name)) block += hpack_literal(name, field.value);
    }
    const auto add_default = [&](const char* name, const std::string& value) {
      if (!headers.contains(name)) block += hpack_literal(name, value);
    };
    if (length && !is_bodiless(step.status)) add_default("content-length", std::to_string(*length));
    if (step.gzip || step.fault == Fault::GzipCutShort) add_default("content-encoding", "gzip");
    return header_frames(id, block, flags);
  }

  bool send_interims(std::uint32_t id, const Step& step) {
    return std::all_of(step.interims.begin(), step.interims.end(), [&](const Interim& interim) {
      return channel_.write(head(id, Step(interim.status, interim.headers), std::nullopt));
    });
  }

  // Sends the interim responses of a step (1xx), the head of its response, and as much of the body
  // as the client's windows allow. The rest follows when they grow. Returns false if the connection
  // must end: writing failed, or the response is complete and closes the connection.
  bool send_response(std::uint32_t id, Stream& stream, const Step& step) {
    // The response to a HEAD has the length of the body, but not the body.
    const bool has_no_body = is_bodiless(step.status) || stream.request.method == "HEAD";
    auto body = step_body(step);
    const auto length = body.size();  // for the header Content-Length
    if (has_no_body) body.clear();
    // HTTP/2 has no Connection header. head() leaves it out, and finish() sends a GOAWAY instead.
    stream.closes_connection =
        !shared_.options.keep_alive ||
        equal_ignoring_case(step.headers.get("Connection").value_or(""), "close");
    stream.has_body_to_send = !body.empty();
    const unsigned flags = body.empty() ? kEndStream : kNoFlags;
    if (!send_interims(id, step)) return false;
    if (!channel_.write(head(id, step, length, flags))) return false;
    stream.unsent = std::move(body);
    return stream.has_body_to_send ? send_bodies() : finish(id, stream);
  }

  // Sends as much of the bodies of all responses as the client allows, and ends the streams whose
  // body is complete. A window is the number of bytes that may be sent: `window_` on the whole
  // connection, `stream.window` on one stream. Returns false if the connection must end.
  bool send_bodies() {
    for (auto next = streams_.begin(); next != streams_.end();) {
      const auto id = next->first;
      auto& stream = (next++)->second;  // moves on first, because finish() erases the stream
      if (!stream.has_body_to_send) continue;
      while (!stream.unsent.empty()) {
        const auto window = std::min(window_, stream.window);
        if (window <= 0) break;
        const auto size =
            std::min({kMaxPayload, stream.unsent.size(), static_cast<std::size_t>(window)});
        const unsigned flags = size == stream.unsent.size() ? kEndStream : kNoFlags;
        const auto piece = std::string_view(stream.unsent).substr(0, size);
        if (!channel_.write(frame(FrameType::Data, flags, id, piece))) return false;
        window_ -= static_cast<std::int64_t>(size);
        stream.window -= static_cast<std::int64_t>(size);
        stream.unsent.erase(0, size);
      }
      if (stream.unsent.empty() && !finish(id, stream)) return false;
    }
    return true;
  }

  // Ends a stream whose response was sent, and the connection if its response closes it.
  bool finish(std::uint32_t id, const Stream& stream) {
    const bool closes_connection = stream.closes_connection;
    streams_.erase(id);
    if (!closes_connection) return true;
    static_cast<void>(channel_.write(goaway(id, kNoError)));  // an error makes no difference
    return false;
  }

  // Sends the head and half of the body, but at most one frame, which fits into the initial window.
  bool send_half(std::uint32_t id, const Stream& stream, const Step& step) {
    const auto body = step_body(step);
    std::optional<std::size_t> length;
    if (step.fault != Fault::Http2NoEndStream) length = body.size();
    const bool has_body = !is_bodiless(step.status) && stream.request.method != "HEAD";
    const auto size = std::min(has_body ? body.size() / 2 : 0, kMaxPayload);
    const auto half = std::string_view(body).substr(0, size);
    return send_interims(id, step) && channel_.write(head(id, step, length)) &&
           channel_.write(frame(FrameType::Data, kNoFlags, id, half));
  }

  // Returns a GOAWAY frame: the last stream that was handled, and the error.
  static std::string goaway(std::uint32_t id, std::uint32_t error) {
    return frame(FrameType::Goaway, kNoFlags, kWholeConnection, to_bytes(id) + to_bytes(error));
  }

  // Floods the client with at least `step.size` bytes of one kind of frame, as a malicious server
  // does: GOAWAY or RST_STREAM, or empty DATA frames after the head of a response. Ends early if
  // the connection breaks or the server stops.
  void flood(std::uint32_t id, const Step& step) {
    std::string repeated = frame(FrameType::Data, kNoFlags, id);
    if (step.fault == Fault::Http2GoawayFlood) {
      repeated = goaway(id, kProtocolError);
    } else if (step.fault == Fault::Http2ResetFlood) {
      repeated = frame(FrameType::Reset, kNoFlags, id, to_bytes(kProtocolError));
    } else if (!channel_.write(head(id, step, std::nullopt))) {
      return;
    }
    std::string block;
    while (block.size() < kFloodBlock) block += repeated;  // many frames per write
    for (std::uint64_t sent = 0; sent < step.size; sent += block.size()) {
      // A pause of no length notices that the server stops. write() does so only while it waits,
      // and it never waits if the client reads fast.
      if (!channel_.pause(/*time=*/{}) || !channel_.write(block)) return;
    }
  }

  Shared& shared_;
  const std::uint64_t number_;
  Channel& channel_;
  FrameReader reader_;
  HpackDecoder decoder_;
  std::map<std::uint32_t, Stream> streams_;  // without a complete response
  std::int64_t window_ = kInitialWindow;
  std::int64_t initial_window_ = kInitialWindow;
};

}  // namespace

void offer_http2(SSL_CTX& context) { SSL_CTX_set_alpn_select_cb(&context, choose_http2, nullptr); }

bool begins_http2(const SeenRequest& head) {
  return head.method == "PRI" && head.target == "*" && head.http_version == "2.0";
}

void serve_http2(Shared& shared, std::uint64_t number, Channel& channel, std::string rest) {
  Http2Connection(shared, number, channel, std::move(rest)).serve();
}

}  // namespace httpretry::faults
