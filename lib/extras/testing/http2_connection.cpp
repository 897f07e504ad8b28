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
constexpr std::uint32_t kProtocolError = 1;
constexpr std::uint32_t kInitialWindow = 65'535;
constexpr char kSettingsInitialWindow = 4;

int choose_http2(SSL* /*tls*/, const unsigned char** chosen, unsigned char* size,
                 const unsigned char* offered, unsigned offered_size, void* /*user*/) {
  static constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  auto* name = const_cast<unsigned char*>(*chosen);
  const int found =
      SSL_select_next_proto(&name, size, kHttp2, sizeof kHttp2, offered, offered_size);
  *chosen = name;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

bool is_http1_only(std::string_view header) {
  return header == "connection" || header == "keep-alive" || header == "transfer-encoding";
}

// Returns nullopt if the request is malformed.
std::optional<SeenRequest> request_of(const std::vector<HpackField>& fields) {
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
    } else if (!name.starts_with(':') && !request.headers.try_add(name, value)) {
      return std::nullopt;
    }
  }
  if (request.method == "CONNECT") request.target = authority;
  if (!authority.empty() && !request.headers.contains("Host") &&
      !request.headers.try_add("Host", authority)) {
    return std::nullopt;
  }
  request.path = path_of(request.method, request.target);
  if (!valid_header_name(request.method) || request.target.empty()) return std::nullopt;
  return request;
}

struct Stream {
  SeenRequest request;
  std::int64_t window = kInitialWindow;
  std::string unsent;              // rest of the response body
  bool responds = false;           // the head was sent, and the body follows
  bool closes_connection = false;  // after the response
};

class Http2Connection {
 public:
  Http2Connection(Shared& shared, std::uint64_t number, Channel& channel, std::string rest)
      : shared_(shared), number_(number), channel_(channel), reader_(channel, std::move(rest)) {}

  void serve() {
    if (reader_.read(kPrefaceRest.size()) != kPrefaceRest ||
        !channel_.write(frame(FrameType::Settings, 0, 0)))
      return;
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

  bool handle(Frame& received) {
    const bool acknowledges = (received.flags & kAck) != 0;
    switch (received.type) {
      case FrameType::Headers: return begin_request(received);
      case FrameType::Data: return take_data(received);
      case FrameType::Settings: return acknowledges || take_settings(received.payload);
      case FrameType::WindowUpdate: return update_window(received);
      case FrameType::Reset: streams_.erase(received.stream); return true;
      case FrameType::Ping:
        return acknowledges || channel_.write(frame(FrameType::Ping, kAck, 0, received.payload));
      case FrameType::Goaway:
      case FrameType::Continuation: break;
    }
    return true;
  }

  bool begin_request(Frame& head) {
    if (!remove_padding(head)) return false;
    auto block = std::move(head.payload);
    for (auto flags = head.flags; (flags & kEndHeaders) == 0;) {
      const auto more = read_frame();
      if (!more || more->type != FrameType::Continuation) return false;
      flags = more->flags;
      block += more->payload;
      if (block.size() > kMaxBlock) return false;
    }
    const auto fields = decoder_.decode(block);
    if (!fields) return false;
    const bool trailers = streams_.contains(head.stream);
    auto& stream = streams_[head.stream];
    if (!trailers) {
      auto request = request_of(*fields);
      if (!request) return respond(head.stream, stream, Step(400));
      stream.request = *std::move(request);
      stream.request.arrived = steady_clock::now();
      stream.request.arrived_wall = system_clock::now();
      stream.request.connection = number_;
      stream.window = initial_window_;
    }
    return (head.flags & kEndStream) == 0 || answer(head.stream, stream);
  }

  bool take_data(Frame& data) {
    // The client's window counts padding as well.
    const auto size = static_cast<std::uint32_t>(data.payload.size());
    if (size > 0 &&
        !channel_.write(frame(FrameType::WindowUpdate, 0, 0, to_bytes(size)) +
                        frame(FrameType::WindowUpdate, 0, data.stream, to_bytes(size)))) {
      return false;
    }
    const auto found = streams_.find(data.stream);
    if (found == streams_.end()) return true;  // the stream was refused or has ended
    if (!remove_padding(data)) return false;
    keep_body(found->second.request, data.payload);
    return (data.flags & kEndStream) == 0 || answer(data.stream, found->second);
  }

  bool take_settings(std::string_view settings) {
    constexpr std::size_t kEntry = 6;  // two bytes for the name, four for the value
    for (; settings.size() >= kEntry; settings.remove_prefix(kEntry)) {
      if (settings[0] != 0 || settings[1] != kSettingsInitialWindow) continue;
      const std::int64_t window = number_at(settings.substr(2));
      for (auto& [id, stream] : streams_) stream.window += window - initial_window_;
      initial_window_ = window;
    }
    return channel_.write(frame(FrameType::Settings, kAck, 0)) && send_bodies();
  }

  bool update_window(const Frame& update) {
    const auto found = streams_.find(update.stream);
    if (update.stream == 0) {
      window_ += number_at(update.payload);
    } else if (found != streams_.end()) {
      found->second.window += number_at(update.payload);
    }
    return send_bodies();
  }

  bool answer(std::uint32_t id, Stream& stream) {
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

  bool respond(std::uint32_t id, Stream& stream, const Step& step) {
    switch (step.fault) {
      case Fault::None:
      case Fault::GzipCutShort: return send_response(id, stream, step);
      case Fault::Hang:
      case Fault::TlsStall: return true;
      case Fault::Close:
      case Fault::Refused:
      case Fault::Resolve: return false;
      case Fault::Reset:
      case Fault::ResetEarly:
      case Fault::TlsReset: return channel_.reset(), false;
      case Fault::ResetDuring:
        if (send_half(id, stream, step)) channel_.reset();
        return false;
      case Fault::Truncate: return send_half(id, stream, step) && false;
      case Fault::Http2EmptyData:
      case Fault::Http2GoawayFlood:
      case Fault::Http2ResetFlood: return flood(id, step), false;
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
    return send_response(id, stream, Step(505, "this fault is one of HTTP/1.1 only\n"));
  }

  // Returns the frames with the status and the headers of the response.
  std::string head(std::uint32_t id, const Step& step, std::optional<std::size_t> length,
                   unsigned flags = 0) const {
    std::string block = hpack_literal(":status", std::to_string(step.status));
    const auto headers = headers_now(step);
    for (const auto field : headers) {
      const auto name = to_lower(field.name);
      if (!is_http1_only(name)) block += hpack_literal(name, field.value);
    }
    const auto add = [&](bool wanted, const char* name, const std::string& value) {
      if (wanted && !headers.contains(name)) block += hpack_literal(name, value);
    };
    add(length.has_value(), "content-length", std::to_string(length.value_or(0)));
    add(step.gzip || step.fault == Fault::GzipCutShort, "content-encoding", "gzip");
    return header_frames(id, block, flags);
  }

  bool send_interims(std::uint32_t id, const Step& step) {
    return std::all_of(step.interims.begin(), step.interims.end(), [&](const Interim& interim) {
      return channel_.write(head(id, Step(interim.status, interim.headers), std::nullopt));
    });
  }

  bool send_response(std::uint32_t id, Stream& stream, const Step& step) {
    const bool unframed = step.status == 204 || step.status == 304;
    auto body = step_body(step);
    std::optional<std::size_t> length;
    if (!unframed) length = body.size();
    if (unframed || stream.request.method == "HEAD") body.clear();
    stream.closes_connection =
        !shared_.options.keep_alive ||
        equal_ignoring_case(step.headers.get("Connection").value_or(""), "close");
    stream.responds = !body.empty();
    if (!send_interims(id, step) ||
        !channel_.write(head(id, step, length, body.empty() ? kEndStream : 0))) {
      return false;
    }
    stream.unsent = std::move(body);
    return stream.responds ? send_bodies() : finish(id, stream);
  }

  // Sends as much of the response bodies as the client's windows allow.
  bool send_bodies() {
    for (auto next = streams_.begin(); next != streams_.end();) {
      const auto id = next->first;
      auto& stream = (next++)->second;
      if (!stream.responds) continue;
      while (!stream.unsent.empty()) {
        const auto room = std::min(window_, stream.window);
        if (room <= 0) break;
        const auto size =
            std::min({kMaxPayload, stream.unsent.size(), static_cast<std::size_t>(room)});
        const unsigned flags = size == stream.unsent.size() ? kEndStream : 0;
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

  // Ends a stream whose response was sent.
  bool finish(std::uint32_t id, const Stream& stream) {
    const bool closes_connection = stream.closes_connection;
    streams_.erase(id);
    if (!closes_connection) return true;
    return channel_.write(frame(FrameType::Goaway, 0, 0, to_bytes(id) + to_bytes(0))) && false;
  }

  // Sends the head and half of the body, but at most one frame, which fits into the initial window.
  bool send_half(std::uint32_t id, const Stream& stream, const Step& step) {
    const auto body = step_body(step);
    const bool known = step.fault != Fault::Http2NoEndStream;
    const bool bodiless = stream.request.method == "HEAD";
    const auto half = std::min(bodiless ? 0 : body.size() / 2, kMaxPayload);
    return send_interims(id, step) &&
           channel_.write(head(id, step, known ? std::optional(body.size()) : std::nullopt)) &&
           channel_.write(frame(FrameType::Data, 0, id, std::string_view(body).substr(0, half)));
  }

  // Sends `step.size` bytes of one kind of frame.
  void flood(std::uint32_t id, const Step& step) {
    std::string one = frame(FrameType::Data, 0, id);
    if (step.fault == Fault::Http2GoawayFlood) {
      one = frame(FrameType::Goaway, 0, 0, to_bytes(id) + to_bytes(kProtocolError));
    } else if (step.fault == Fault::Http2ResetFlood) {
      one = frame(FrameType::Reset, 0, id, to_bytes(kProtocolError));
    } else if (!channel_.write(head(id, step, std::nullopt))) {
      return;
    }
    std::string block;
    while (block.size() < kFloodBlock) block += one;
    // `pause` notices that the server stops. `write` does so only while it waits, and it never
    // waits if the client reads fast.
    for (std::uint64_t sent = 0; sent < step.size; sent += block.size()) {
      if (!channel_.pause({}) || !channel_.write(block)) return;
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
