// Server-sent events: small messages that a server sends over one long response. httpretry.hpp does
// not include this header.
//
//   Client client;
//   auto ended = listen(client, Request::get("https://example.com/events"),
//                       [](const ServerEvent& event) {
//                         std::cout << event.type << ": " << event.data << "\n";
//                         return true;  // false: enough
//                       });
//   if (!ended) std::cerr << ended.error().message << "\n";
//
// A stream that ends or breaks off is requested again, with Last-Event-ID, after the delay that the
// server set with "retry:". The retry policy decides whether a request that got no stream is
// retried, as for any other request.
//
// A stream in response to a request that is not Request::repeatable(), such as the POST that asks a
// language model, is not requested again. `listen` succeeds if the server ends it, and otherwise
// returns the error.
//
// A stream may be silent for any length of time, because the policy's stall_timeout does not apply
// to it. TCP keepalive detects a server that has disappeared, after some minutes. If the server
// sends comments to keep the stream alive, EventStreamOptions::stall_timeout detects it sooner. The
// policy's response_timeout applies until the headers of the response have arrived. Do not use a
// policy with an attempt_timeout: it would end a healthy stream again and again.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/client/client.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace httpretry {

// One event of a stream.
struct HTTPRETRY_API ServerEvent {
  ServerEvent() = default;

  std::string type = "message";  // from the line "event:"
  std::string data;              // lines are separated by "\n"
  std::string id;                // the last ID that the server sent, possibly with an earlier event
};

// Handles one event. Returns false to end the stream, or an Error to end it with that error. The
// exchange that is ended by false counts as canceled in metrics and traces, so return true at an
// event after which the server ends the stream itself, such as "[DONE]".
using OnEvent = std::function<Result<bool>(const ServerEvent& event)>;

// The options of `listen` and `co_listen`.
struct HTTPRETRY_API EventStreamOptions {
  EventStreamOptions() = default;

  // The ID of the last event that the program has. The client requests the events after it.
  //
  // Default: empty, the server decides where to begin
  std::string last_id;

  // The longest time without a byte (comments count as bytes). A stream that is silent for longer
  // is requested again. If RequestOptions::stall_timeout is set as well, the shorter one applies.
  //
  // Default: no limit
  Duration stall_timeout = kForever;

  // The wait before a stream that has ended is requested again. The server can change it with
  // "retry:", but not to less than 100 ms.
  //
  // Default: 3 s
  Duration reconnect = std::chrono::seconds(3);

  // The longest wait that the server may set.
  //
  // Default: 1 min
  Duration max_reconnect = std::chrono::minutes(1);

  // Called when the headers of a stream have arrived, before its first event.
  //
  // Default: none
  std::function<void(const Response& head)> on_open;

  // Called when an open stream has ended, once for each on_open. The outcome is a response if the
  // server ended the stream, and otherwise an error.
  //
  // Default: none
  std::function<void(const Outcome& outcome)> on_end;

  // Called if a request ends with the status of a failure. The body of the response may say why.
  //
  // Default: none
  std::function<void(const Response& response)> on_failure;

  // Called after the wait, just before the stream is requested again.
  //
  // Default: none
  std::function<void(const Request& request)> on_reconnect;

  // The maximum size of an event. A larger one ends the stream with Errc::TooLarge.
  //
  // Default: 1 MiB
  std::size_t max_event = std::size_t{1} << 20U;

  // Options for each request of the stream. `stop`, `timeout` and `deadline` apply to all of them
  // together.
  CallOptions call;
};

// Requests the stream again and again. Ends when
//
//   on_event returns false, or the server responds 204    success
//   the stream of a request that is not repeatable ends   success; the error if it breaks off
//   on_event returns an error                             that error
//   on_event, on_open or another function throws          Errc::Internal
//   a request fails                                       its error; Errc::Status for a status,
//                                                         after on_failure
//   the response is not an event stream                   Errc::Protocol
//   an event is too large                                 Errc::TooLarge
//   options.call.stop or the deadline ends it             Errc::Canceled, Errc::Timeout
//
// The callbacks run on the thread that drives the call and must not block for long. The request
// must not have a sink. `listen` blocks as Client::send does. If the client runs on an EventLoop or
// on the scheduler of a test, `listen` drives it.
HTTPRETRY_API Result<void> listen(Client& client, const Request& request, OnEvent on_event,
                                  EventStreamOptions options = EventStreamOptions());
// The same as a coroutine, which waits between two streams on `scheduler`. The client and the
// scheduler must outlive the task.
HTTPRETRY_API Task<Result<void>> co_listen(Client& client, Scheduler& scheduler, Request request,
                                           OnEvent on_event,
                                           EventStreamOptions options = EventStreamOptions());

// Parses the event stream format (WHATWG HTML, 9.2). Useful on its own for other transports.
class HTTPRETRY_API EventParser {
 public:
  explicit EventParser(std::size_t max_event = std::size_t{1} << 20U) : max_event_(max_event) {}

  // Parses the next bytes of the stream, which may be split anywhere. Returns false or an error if
  // `on_event` did, and Errc::TooLarge if an event exceeds the limit.
  Result<bool> parse(std::string_view bytes, const OnEvent& on_event);
  // Prepares for a new stream: drops an incomplete event together with its ID, and keeps last_id().
  void restart();

  // The ID of the last complete event. An event is complete at the blank line that ends it, even if
  // it has no data.
  [[nodiscard]] const std::string& last_id() const { return last_id_; }
  // Sets that ID, for a parser that continues an earlier stream.
  void set_last_id(std::string id) { next_id_ = last_id_ = std::move(id); }
  // The delay that the server set with "retry:".
  [[nodiscard]] std::optional<Duration> reconnect() const { return reconnect_; }

 private:
  Result<bool> take_line(const OnEvent& on_event);
  void take_field(std::string_view name, std::string_view value);

  std::size_t max_event_;
  std::string line_;  // without its line end
  bool after_cr_ = false;
  bool first_line_ = true;
  ServerEvent event_;
  bool has_data_ = false;
  std::string last_id_;
  std::string next_id_;  // becomes last_id_ at the next blank line
  std::optional<Duration> reconnect_;
};

}  // namespace httpretry
