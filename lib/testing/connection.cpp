#include <lib/testing/connection.hpp>

#include <lib/testing/request_reader.hpp>
#include <lib/testing/response_writer.hpp>
#include <lib/testing/tunnel.hpp>

namespace httpretry::faults {
namespace {

using std::chrono::steady_clock;
using std::chrono::system_clock;

class Connection {
 public:
  Connection(Shared& shared, std::uint64_t number, Descriptor socket, int stop_fd)
      : shared_(shared), number_(number), channel_(std::move(socket), stop_fd) {}

  // Waits for the first byte before it takes a step: opening a connection takes none.
  bool begin() {
    if (!shared_.certificates) return true;
    if (!channel_.wait_for_bytes() || fail_unread()) return false;
    return channel_.handshake(shared_.certificates->context());
  }

  // Serves a request. True: the connection can serve another one.
  bool serve_one() {
    const auto idle = shared_.options.idle_timeout;
    const auto deadline = idle ? later(steady_clock::now(), *idle) : kNever;
    if (!reader_.buffered() && !channel_.wait_for_bytes(deadline)) return false;
    SeenRequest request;
    request.arrived = steady_clock::now();
    request.arrived_wall = system_clock::now();
    request.connection = number_;

    // A stale connection takes no more steps.
    if (!stale_ && fail_unread()) return false;
    const auto status = reader_.read_head(request);
    if (!status) return false;
    if (*status != 0) return refuse(*status);
    if (stale_) return read_and_log(request, nullptr) && false;
    if (request.method == "CONNECT" && !shared_.options.proxy) return refuse(405);

    const auto taken = shared_.steps.take(request.path);
    request.step = taken.index;
    return read_and_log(request, taken.step) && respond(request, *taken.step);
  }

 private:
  // Performs the next step if its fault happens before a request is read.
  bool fail_unread() {
    const auto* step = shared_.steps.take_unread();
    if (!step) return false;
    if (!channel_.pause(step->delay)) return true;
    if (step->fault == Fault::TlsStall) {
      channel_.hold();
    } else {
      channel_.reset();
    }
    return true;
  }

  // `step` is null on a stale connection: no "100 Continue" is sent then, so the body never
  // arrives. False: the body did not arrive whole, and no response can be sent.
  bool read_and_log(SeenRequest& request, const Step* step) {
    const bool expects = reader_.expects_continue();
    const bool unread = step ? step->respond_early || (expects && step->status == 417) : expects;
    std::optional<int> status = 0;
    if (!unread) {
      const bool invited =
          !expects || step->ignore_expect || channel_.write(status_line(100) + "\r\n");
      status = invited ? reader_.read_body(request) : std::nullopt;
    }
    if (shared_.options.on_request) shared_.options.on_request(request);
    shared_.log.add(request);
    return status == 400 ? refuse(400) : status == 0;
  }

  bool respond(const SeenRequest& request, const Step& step) {
    const bool success = step.status >= 200 && step.status <= 299;
    if (request.method == "CONNECT" && success && step.fault == Fault::None) {
      return tunnel(request, step);
    }
    const auto& options = shared_.options;
    const bool unread_body = !request.body_complete;
    const bool persistent = options.keep_alive && reader_.persistent() && !unread_body;
    const bool keep_alive =
        send_response(channel_, step, request, persistent, options.idle_timeout);
    stale_ = step.fault == Fault::Stale;
    // Closing with unread bytes sends an RST, which could destroy our response on its way.
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
    int status = 0;
    const auto origin = connect_loopback(request.target, channel_.stop_fd(), status);
    if (!origin) return refuse(status);
    if (channel_.write(status_line(step.status) + header_lines(step.headers) + "\r\n")) {
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

void serve_connection(Shared& shared, std::uint64_t number, Descriptor socket, int stop_fd) {
  Connection connection(shared, number, std::move(socket), stop_fd);
  bool open = connection.begin();
  while (open) open = connection.serve_one();
}

}  // namespace httpretry::faults
