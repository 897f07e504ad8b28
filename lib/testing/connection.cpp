#include <lib/testing/connection.hpp>

#include <lib/testing/response_writer.hpp>
#include <lib/testing/tunnel.hpp>

#include <chrono>
#include <memory>
#include <utility>

namespace httpretry::faults {

using std::chrono::steady_clock;
using std::chrono::system_clock;

void Connection::run() {
  if (!begin()) return;
  while (serve_one()) {
  }
}

// Waits for the first byte before it takes a step: opening a connection takes none.
bool Connection::begin() {
  if (!shared_.certificates) return true;
  if (!channel_.wait_for_bytes()) return false;
  if (const auto* step = shared_.steps.take_unread()) {
    fail_unread(*step);
    return false;
  }
  return channel_.handshake(shared_.certificates->context());
}

bool Connection::wait_for_request() {
  if (reader_.buffered()) return true;
  const auto idle = shared_.options.idle_timeout;
  return channel_.wait_for_bytes(idle ? later(steady_clock::now(), *idle) : kNever);
}

bool Connection::serve_one() {
  if (!wait_for_request()) return false;
  SeenRequest request;
  request.arrived = steady_clock::now();
  request.arrived_wall = system_clock::now();
  request.connection = number_;

  // A stale connection takes no more steps.
  if (!stale_) {
    if (const auto* step = shared_.steps.take_unread()) {
      fail_unread(*step);
      return false;
    }
  }
  const auto status = reader_.read_head(request);
  if (!status) return false;
  if (*status != 0) return refuse(*status);
  if (stale_) {
    [[maybe_unused]] const bool whole = read_and_log(request, nullptr);
    return false;
  }
  if (request.method == "CONNECT" && !shared_.options.proxy) return refuse(405);

  const auto taken = shared_.steps.take(request.path);
  request.step = taken.index;
  if (!read_and_log(request, taken.step)) return false;
  return respond(request, *taken.step, !request.body_complete);
}

// `step` is null on a stale connection: no "100 Continue" is sent then, so the body never arrives.
// False: the body did not arrive whole, and no response can be sent.
bool Connection::read_and_log(SeenRequest& request, const Step* step) {
  const bool expects = reader_.expects_continue();
  const bool unread = step ? step->respond_early || (expects && step->status == 417) : expects;
  auto body = RequestReader::Body::Whole;
  if (!unread) {
    const bool invited =
        !expects || step->ignore_expect || channel_.write(status_line(100) + "\r\n");
    body = invited ? reader_.read_body(request) : RequestReader::Body::Broken;
  }
  if (shared_.options.on_request) shared_.options.on_request(request);
  shared_.log.add(request);
  if (body == RequestReader::Body::Malformed) return refuse(400);
  return body == RequestReader::Body::Whole;
}

bool Connection::respond(const SeenRequest& request, const Step& step, bool unread_body) {
  const bool success = step.status >= 200 && step.status <= 299;
  if (request.method == "CONNECT" && success && step.fault == Fault::None) {
    tunnel(request, step);
    return false;
  }
  const bool persistent = shared_.options.keep_alive && reader_.persistent() && !unread_body;
  ResponseWriter writer(channel_, step, request, persistent, shared_.options.idle_timeout);
  const bool keep_alive = writer.send();
  stale_ = step.fault == Fault::Stale;
  // Closing with unread bytes sends an RST, which could destroy our response on its way.
  if (unread_body) channel_.linger();
  return keep_alive;
}

void Connection::fail_unread(const Step& step) {
  if (!channel_.pause(step.delay)) return;
  if (step.fault == Fault::TlsStall) return channel_.hold();
  channel_.reset();
}

bool Connection::refuse(int status) {
  if (channel_.write(error_response(status))) channel_.linger();
  return false;
}

void Connection::tunnel(const SeenRequest& request, const Step& step) {
  if (!channel_.pause(step.delay)) return;
  int status = 0;
  const auto origin = connect_loopback(request.target, channel_.stop_fd(), status);
  if (!origin) {
    [[maybe_unused]] const bool refused = refuse(status);
    return;
  }
  if (channel_.write(status_line(step.status) + header_lines(step.headers) + "\r\n")) {
    relay(channel_, *origin, reader_.take_rest());
  }
}

}  // namespace httpretry::faults
