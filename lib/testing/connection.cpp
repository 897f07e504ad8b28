#include <lib/testing/connection.hpp>

#include <lib/testing/answer.hpp>
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

// Nothing is done for a client that says nothing: opening a connection takes no step.
bool Connection::begin() {
  if (!shared_.certificates) return true;
  if (!channel_.wait_for_bytes()) return false;
  if (const auto* step = shared_.steps.take_unread()) {
    act_unread(*step);
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

  // A stale connection takes no steps any more.
  if (!stale_) {
    if (const auto* step = shared_.steps.take_unread()) {
      act_unread(*step);
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

  const auto turn = shared_.steps.take(request.path);
  request.step = turn.index;
  if (!read_and_log(request, turn.step)) return false;
  return answer(request, *turn.step, !request.body_complete);
}

// Without a step nothing is said, so that a body that waits for our "100 Continue" never comes.
// False: the body broke off, and there is nobody left to answer or nothing to say.
bool Connection::read_and_log(SeenRequest& request, const Step* step) {
  const bool expects = reader_.expects_continue();
  const bool unread = step ? step->answer_early || (expects && step->status == 417) : expects;
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

bool Connection::answer(const SeenRequest& request, const Step& step, bool unread_body) {
  const bool success = step.status >= 200 && step.status <= 299;
  if (request.method == "CONNECT" && success && step.fault == Fault::None) {
    tunnel(request, step);
    return false;
  }
  const bool persistent = shared_.options.keep_alive && reader_.persistent() && !unread_body;
  Answer answer(channel_, step, request, persistent, shared_.options.idle_timeout);
  const bool goes_on = answer.send();
  stale_ = step.fault == Fault::Stale;
  // Closing with bytes unread would be an RST, which could overtake our answer.
  if (unread_body) channel_.linger();
  return goes_on;
}

void Connection::act_unread(const Step& step) {
  if (!channel_.pause(step.delay)) return;
  if (step.fault == Fault::TlsStall) return channel_.hold();
  channel_.reset();
}

bool Connection::refuse(int status) {
  if (channel_.write(refusal(status))) channel_.linger();
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
  if (channel_.write(status_line(step.status) + field_lines(step.headers) + "\r\n")) {
    relay(channel_, *origin, reader_.take_rest());
  }
}

}  // namespace httpretry::faults
