#include <lib/extras/testing/connection.hpp>

#include <lib/extras/testing/http2_connection.hpp>
#include <lib/extras/testing/request_reader.hpp>
#include <lib/extras/testing/response_writer.hpp>
#include <lib/extras/testing/sockets.hpp>

#include <poll.h>

#include <array>

namespace httpretry::faults {
namespace {

using std::chrono::steady_clock;
using std::chrono::system_clock;

// The functions up to `relay` implement CONNECT: a proxy that forwards bytes in both directions.

// Returns the numeric address of a loopback host; empty for any other host. It does not look up
// names, because a test proxy must not reach the network.
std::string loopback_address(std::string_view host) {
  if (host == "localhost") return "127.0.0.1";
  if (host == "[::1]") return "::1";
  return host.starts_with("127.") ? std::string(host) : std::string();
}

// One direction of a tunnel. It reads only after it has written everything that it read before, so
// that a slow receiver slows down the sender.
struct Direction {
  Channel& from;
  Channel& to;
  std::string pending = {};    // read, but not yet written
  bool ended = false;          // `from` has finished sending
  bool end_passed_on = false;  // the writing side of `to` has been ended

  // Forwards bytes until reading or writing would block, or until `from` has finished sending. Then
  // ends the writing side of `to`. Returns false if a connection is broken. Otherwise returns true,
  // and the caller calls it again when the sockets are ready.
  [[nodiscard]] bool pump() {
    std::array<char, 16 * 1024> bytes{};
    while (!ended) {
      while (!pending.empty()) {
        const auto written = to.try_write(pending);
        if (written.io == Io::WouldBlock) return true;
        if (written.io != Io::Done) return false;
        pending.erase(0, written.bytes);
      }
      const auto read = from.try_read(bytes);
      if (read.io == Io::WouldBlock) return true;
      if (read.io == Io::Broken) return false;
      pending.assign(bytes.data(), read.bytes);
      ended = read.io == Io::End;  // comes without bytes
    }
    if (!end_passed_on) to.end_writing();
    end_passed_on = true;
    return true;
  }
  [[nodiscard]] bool wants_read() const { return !ended && pending.empty(); }
  [[nodiscard]] bool wants_write() const { return !pending.empty(); }
};

// Returns the poll events to wait for at the connection that `reader` reads and `writer` writes.
short awaited_events(const Direction& reader, const Direction& writer) {
  const int events = (reader.wants_read() ? POLLIN : 0) | (writer.wants_write() ? POLLOUT : 0);
  return static_cast<short>(events);
}

// Returns a negative number if there is nothing to wait for, so that poll ignores the entry.
// Otherwise poll would report a hang-up even without requested events.
int poll_descriptor(const Channel& channel, short awaited) {
  return awaited == 0 ? -1 : channel.fd();
}

// Connects to "host:port"; the host must be this machine's loopback. On failure, returns null and
// sets `error_status` to the status of the proxy's response: 403 for an address that is not
// allowed, 502 if no server listens there.
std::unique_ptr<Channel> connect_loopback(std::string_view authority, int stop_fd,
                                          int& error_status) {
  error_status = 403;
  const auto colon = authority.rfind(':');
  const auto host = loopback_address(authority.substr(0, colon));
  if (host.empty() || colon == std::string_view::npos) return nullptr;
  auto socket = connect_to(host, std::string(authority.substr(colon + 1)));
  if (!socket) return nullptr;  // the port is not a number
  error_status = 502;
  if (!socket->is_open()) return nullptr;
  return std::make_unique<Channel>(*std::move(socket), stop_fd);
}

// Forwards the bytes of a CONNECT tunnel between a client and an origin in both directions, until
// both have finished sending, or the proxy stops. `client_bytes` were already read from the client.
void relay(Channel& client, Channel& origin, std::string client_bytes) {
  Direction to_origin{.from = client, .to = origin, .pending = std::move(client_bytes)};
  Direction to_client{.from = origin, .to = client};
  for (;;) {
    // pump() forwards what it can without blocking. It returns false if a connection is broken, for
    // example by an RST; both connections then end with an RST.
    if (!to_origin.pump() || !to_client.pump()) {
      client.reset();
      origin.reset();
      return;
    }
    if (to_origin.ended && to_client.ended) return;

    // At the client, `to_origin` reads and `to_client` writes; at the origin, the reverse is true.
    const auto client_events = awaited_events(/*reader=*/to_origin, /*writer=*/to_client);
    const auto origin_events = awaited_events(/*reader=*/to_client, /*writer=*/to_origin);
    // poll_descriptor() hides a connection from poll while no event is awaited there. The last
    // descriptor becomes readable when the proxy stops.
    std::array<pollfd, 3> polled{{{poll_descriptor(client, client_events), client_events, 0},
                                  {poll_descriptor(origin, origin_events), origin_events, 0},
                                  {client.stop_fd(), POLLIN, 0}}};
    const auto& stop_events = polled[2];
    if (::poll(polled.data(), polled.size(), /*timeout=*/-1) < 0 && errno != EINTR) return;
    if (stop_events.revents != 0) return;
  }
}

class Connection {
 public:
  Connection(Shared& shared, std::uint64_t number, Descriptor socket, int stop_fd)
      : shared_(shared), number_(number), channel_(std::move(socket), stop_fd) {}

  // Performs the TLS handshake, or a fault before it. Waits for the first byte before it takes a
  // step, because opening a connection must not take one. Returns false if the connection ends.
  bool begin() {
    if (!shared_.certificates) return true;
    if (!channel_.wait_for_bytes() || fail_unread()) return false;
    return channel_.handshake(shared_.certificates->context());
  }

  // Serves one request: reads it, takes the next step of the scenario for its path, and performs
  // the step, which is a response or a fault. Returns true if the connection can serve another
  // request, and false if it must end, or has switched to HTTP/2 and ended.
  bool serve_one() {
    const auto idle = shared_.options.idle_timeout;
    const auto deadline = idle ? later(steady_clock::now(), *idle) : kNever;
    if (!reader_.has_buffered() && !channel_.wait_for_bytes(deadline)) return false;
    SeenRequest request;
    request.arrived = steady_clock::now();
    request.arrived_wall = system_clock::now();
    request.connection = number_;

    // Performs the next step if its fault comes before reading, such as Fault::ResetEarly. On a
    // stale connection (after Fault::Stale), a request takes no step.
    const bool failed_before_reading = !stale_ && fail_unread();
    if (failed_before_reading) return false;
    const auto error_status = reader_.read_head(request);  // 0 if the head is valid
    if (!error_status) return false;                       // the client closed the connection
    if (shared_.speaks_http2 && begins_http2(request)) {
      serve_http2(shared_, number_, channel_, reader_.take_rest());
      return false;
    }
    if (*error_status != 0) return refuse(*error_status);  // responds with it, and returns false
    if (stale_) {  // reads the request, but does not respond
      read_and_record(request, /*step=*/nullptr);
      return false;
    }
    if (request.method == "CONNECT" && !shared_.options.proxy) return refuse(405);

    const auto taken = shared_.steps.take(request.path);
    request.step = taken.index;
    if (!read_and_record(request, taken.step)) return false;  // the body is incomplete
    // A step with a callback, `respond`, only computes the step to perform.
    return taken.step->respond ? respond(request, compute_step(*taken.step, request))
                               : respond(request, *taken.step);
  }

 private:
  // Performs the next step if its fault happens before a request is read. Returns true if it did;
  // the connection then ends.
  bool fail_unread() {
    const auto* step = shared_.steps.take_unread();
    if (!step) return false;
    if (!channel_.pause(step->delay)) return true;
    if (step->fault == Fault::TlsStall) {
      channel_.wait_for_disconnect();
    } else {
      channel_.reset();
    }
    return true;
  }

  // Reads the body of a request, unless the step responds before that, and records the request for
  // the test. If the client waits for "100 Continue" before it sends the body, sends that first. A
  // stale connection has no step (nullptr) and sends nothing, so such a body would never arrive.
  // Returns false if the body is not complete; the connection then ends.
  bool read_and_record(SeenRequest& request, const Step* step) {
    const bool expects_continue = reader_.expects_continue();
    const bool refuses_expect = step == nullptr || step->status == 417;  // Expectation Failed
    const bool responds_early = step != nullptr && step->respond_early;
    std::optional<int> error_status = 0;  // 0: no error; nullopt: the connection has ended
    if (!responds_early && !(expects_continue && refuses_expect)) {
      // With ignore_expect, the client sends the body after waiting in vain.
      const bool may_send =
          !expects_continue || step->ignore_expect || channel_.write(status_line(100) + "\r\n");
      error_status = may_send ? reader_.read_body(request) : std::nullopt;
    }
    shared_.record(request);
    if (error_status == 400) return refuse(400);
    return error_status == 0;
  }

  // Performs a step, or opens a tunnel if it accepts a CONNECT. Returns true if the connection can
  // serve another request.
  bool respond(const SeenRequest& request, const Step& step) {
    const bool success = step.status >= 200 && step.status <= 299;
    if (request.method == "CONNECT" && success && step.fault == Fault::None) {
      return tunnel(request, step);
    }
    const auto& options = shared_.options;
    const bool unread_body = !request.body_complete;
    const bool persistent = options.keep_alive && reader_.is_persistent() && !unread_body;
    const bool keep_alive =
        send_response(channel_, step, request, persistent, options.idle_timeout);
    stale_ = step.fault == Fault::Stale;
    // Closing with unread bytes sends an RST, which could make the client lose the response.
    if (unread_body) channel_.linger();
    return keep_alive;
  }

  // The functions below end the connection and return false.
  bool refuse(int status) {
    if (channel_.write(error_response(status))) channel_.linger();
    return false;
  }

  bool tunnel(const SeenRequest& request, const Step& step) {
    if (!channel_.pause(step.delay)) return false;
    int error_status = 0;
    const auto origin = connect_loopback(request.target, channel_.stop_fd(), error_status);
    if (!origin) return refuse(error_status);
    if (channel_.write(status_line(step.status) + header_lines(headers_now(step)) + "\r\n")) {
      relay(channel_, *origin, reader_.take_rest());
    }
    return false;
  }

  Shared& shared_;
  const std::uint64_t number_;
  Channel channel_;
  RequestReader reader_{channel_};
  bool stale_ = false;  // after Fault::Stale: the next request gets a FIN
};

}  // namespace

Shared::Shared(Scenario scenario, const FaultServerOptions& chosen)
    : options(chosen), steps(std::move(scenario)), speaks_http2(steps.needs_http2()) {
  if (options.tls == Tls::Off) return;
  certificates.emplace(options.tls);
  if (speaks_http2) offer_http2(certificates->context());
}

void serve_connection(Shared& shared, std::uint64_t number, Descriptor socket, int stop_fd) {
  Connection connection(shared, number, std::move(socket), stop_fd);
  bool open = connection.begin();
  while (open) open = connection.serve_one();
}

}  // namespace httpretry::faults
