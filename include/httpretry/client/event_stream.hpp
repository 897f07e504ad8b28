// Server-sent events: a stream of small messages that a server sends over one long response. Not
// part of httpretry.hpp.
//
//   Client client;
//   auto ended = listen(client, Request::get("https://example.com/events"),
//                       [](const ServerEvent& event) {
//                         std::cout << event.type << ": " << event.data << "\n";
//                         return true;  // false: enough
//                       });
//   if (!ended) std::cerr << ended.error().message << "\n";
//
// A stream that ends, or breaks off, is requested again, with Last-Event-ID, after the time that
// the server asked for with "retry:". Whether a request that got no stream is retried, and how
// often, is the retry policy's matter, as for every other request.
//
// A stream may be quiet for any time: the policy's stall_timeout does not apply to it. TCP
// keepalive finds a server that has gone, after some minutes. If the server sends comments to keep
// the stream alive, EventStreamOptions::stall_timeout finds it sooner. The policy's
// response_timeout applies until the headers of the response. A policy with an attempt_timeout is
// not for streams: it ends a stream that works, again and again.
#pragma once

#include <httpretry/client/client.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace httpretry {

struct HTTPRETRY_API ServerEvent {
  ServerEvent() = default;

  std::string type = "message";
  std::string data;  // its lines are separated by "\n"
  std::string id;    // the last one that the server sent, perhaps with an earlier event
};

// False ends the stream.
using OnEvent = std::function<bool(const ServerEvent& event)>;

struct HTTPRETRY_API EventStreamOptions {
  EventStreamOptions() = default;

  // Events after this one are asked for.
  //
  // Default: empty, the server decides where to begin
  std::string last_id;

  // The longest time without a byte, comments included. A stream that is quiet for longer is
  // requested again. RequestOptions::stall_timeout does the same; the shorter one counts.
  //
  // Default: no limit
  Duration stall_timeout = kForever;

  // The wait before a stream that has ended is requested again, unless the server says otherwise.
  //
  // Default: 3 s
  Duration reconnect = std::chrono::seconds(3);

  // The longest such wait that a server may ask for.
  //
  // Default: 1 min
  Duration max_reconnect = std::chrono::minutes(1);

  // Called when the headers of a stream have arrived, before its first event.
  //
  // Default: none
  std::function<void(const Response& head)> on_open;

  // Called when an open stream has ended, once for each on_open: with a response if the server
  // ended it, otherwise with the error.
  //
  // Default: none
  std::function<void(const Outcome& outcome)> on_end;

  // Called after the wait, right before the stream is requested again.
  //
  // Default: none
  std::function<void(const Request& request)> on_reconnect;

  // The largest event. A larger one is Errc::TooLarge.
  //
  // Default: 1 MiB
  std::size_t max_event = std::size_t{1} << 20U;

  // For each request of the stream; `stop` and `deadline` are for all of them together.
  CallOptions call;
};

// Requests the stream again and again, until
//
//   on_event returns false, or the server responds 204    success
//   a request fails                                       its error; Errc::Status for a status
//   the response is not an event stream, or an event is
//   too large                                             Errc::Protocol, Errc::TooLarge
//   options.call.stop or its deadline                     Errc::Canceled, Errc::Timeout
//
// The callbacks are called on the thread that drives the call: they must not block for long. The
// request must not have a sink. `listen` waits as Client::send does: it drives the EventLoop, or
// the scheduler of a test, that the client runs on.
HTTPRETRY_API Result<void> listen(Client& client, const Request& request, OnEvent on_event,
                                  EventStreamOptions options = EventStreamOptions());
// The same in a coroutine. `scheduler` is where it waits between two streams. The client and the
// scheduler must outlive the task.
HTTPRETRY_API Task<Result<void>> co_listen(Client& client, Scheduler& scheduler, Request request,
                                           OnEvent on_event,
                                           EventStreamOptions options = EventStreamOptions());

// Parses the format by itself, for transports of your own (WHATWG HTML, 9.2).
class HTTPRETRY_API EventParser {
 public:
  explicit EventParser(std::size_t max_event = std::size_t{1} << 20U) : max_event_(max_event) {}

  // Takes the next bytes of the stream, wherever they are cut. False: `on_event` wants no more. An
  // event larger than the limit is Errc::TooLarge.
  Result<bool> parse(std::string_view bytes, const OnEvent& on_event);
  // A new stream begins: an incomplete event is dropped, with its id. The last id stays.
  void restart();

  // An id counts from the blank line on that ends its event, even one without data.
  [[nodiscard]] const std::string& last_id() const { return last_id_; }
  void set_last_id(std::string id) { next_id_ = last_id_ = std::move(id); }
  // What the server asked for with "retry:".
  [[nodiscard]] std::optional<Duration> reconnect() const { return reconnect_; }

 private:
  Result<bool> take_line(const OnEvent& on_event);
  void take_field(std::string_view name, std::string_view value);

  std::size_t max_event_;
  std::string line_;  // without its end
  bool after_cr_ = false;
  bool first_line_ = true;
  ServerEvent event_;
  bool has_data_ = false;
  std::string last_id_;
  std::string next_id_;  // counts from the next blank line on
  std::optional<Duration> reconnect_;
};

}  // namespace httpretry
