#include <httpretry/client/event_stream.hpp>

#include "core.hpp"

#include "lib/core/base/text.hpp"
#include "lib/core/body/endless_body.hpp"
#include "lib/core/curl/errors.hpp"

#include <httpretry/body/sink.hpp>

#include <algorithm>

namespace httpretry {

// Parses the next bytes of the stream, which may begin and end in the middle of a line, and calls
// `on_event` for each event that they complete. Returns false if `on_event` wants no more events,
// and an error if `on_event` returns one or an event is larger than max_event. A line may end with
// CR, LF, or CR and LF.
Result<bool> EventParser::parse(std::string_view bytes, const OnEvent& on_event) {
  if (bytes.empty()) return true;
  // If the last bytes ended with CR, an LF that follows belongs to the same line end.
  if (std::exchange(after_cr_, false) && bytes.starts_with('\n')) bytes.remove_prefix(1);
  while (!bytes.empty()) {
    const auto line_end = bytes.find_first_of("\r\n");
    const auto part_of_line = bytes.substr(0, line_end);  // what precedes it is in `line_`
    // Before anything is stored, so that a server cannot fill the memory.
    if (line_.size() + event_.data.size() + part_of_line.size() > max_event_) {
      return Error(Errc::TooLarge, "an event of the stream is larger than max_event");
    }
    line_ += part_of_line;
    if (line_end == std::string_view::npos) break;  // the next bytes continue the line
    // The LF of "CR LF" may be the first of the next bytes.
    after_cr_ = bytes[line_end] == '\r' && line_end + 1 == bytes.size();
    bytes.remove_prefix(line_end + (bytes.substr(line_end).starts_with("\r\n") ? 2 : 1));
    Result<bool> wants_more = take_line(on_event);       // clears `line_`
    if (!wants_more || !*wants_more) return wants_more;  // an error, or no more events are wanted
  }
  return true;
}

void EventParser::restart() {
  line_.clear();
  event_ = ServerEvent();
  next_id_ = last_id_;
  after_cr_ = has_data_ = false;
  first_line_ = true;
}

// Handles the complete line in `line_`, and clears it. A line such as "data: text" is a field of
// the current event; an empty line ends the event and passes it to `on_event`. Returns what
// `on_event` returned, or true if it was not called.
Result<bool> EventParser::take_line(const OnEvent& on_event) {
  const auto line_text = std::exchange(line_, std::string());
  std::string_view line = line_text;
  // The first line of a stream may begin with a byte order mark.
  if (std::exchange(first_line_, false) && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  if (!line.empty()) {  // "name: value", "name:value", or only "name"
    const auto colon = line.find(':');
    auto value = colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
    if (value.starts_with(' ')) value.remove_prefix(1);
    take_field(line.substr(0, colon), value);
    return true;
  }
  // The event is complete. Its ID counts even if the event is dropped, because it has no data.
  last_id_ = next_id_;
  auto event = std::exchange(event_, ServerEvent());
  const bool had_data = std::exchange(has_data_, false);
  if (!had_data) return true;
  event.id = last_id_;
  return on_event(event);
}

// Ignores unknown names. A comment has an empty name.
void EventParser::take_field(std::string_view name, std::string_view value) {
  if (name == "data") {
    if (std::exchange(has_data_, true)) event_.data += '\n';
    event_.data += value;
  } else if (name == "event") {
    event_.type = value.empty() ? "message" : value;
  } else if (name == "id") {
    // The id of the last event becomes a header of the next request.
    if (valid_header_value(value)) next_id_ = value;
  } else if (name == "retry") {
    const bool digits = value.find_first_not_of("0123456789") == std::string_view::npos;
    const auto milliseconds = digits ? to_number<std::int32_t>(value) : std::nullopt;
    if (milliseconds) reconnect_ = std::chrono::milliseconds(*milliseconds);
  }
}

namespace {

constexpr std::string_view kType = "text/event-stream";

// The shortest wait that a server may set. With "retry: 0", a server that ends each stream at once
// would otherwise make the client request it in a loop.
constexpr Duration kMinReconnect = std::chrono::milliseconds(100);

// The state of an event stream across its requests. It is the sink of each of them.
class Stream final : public Sink, public std::enable_shared_from_this<Stream> {
 public:
  Stream(const Request& request, OnEvent on_event, EventStreamOptions options, Time now)
      : request_(request),
        on_event_(std::move(on_event)),
        options_(std::move(options)),
        parser_(options_.max_event) {
    parser_.set_last_id(options_.last_id);
    request_.set_header("Accept", kType).set_header("Cache-Control", "no-store");
    auto& settings = request_.edit_options();
    settings.stall_timeout = std::min(settings.stall_timeout, options_.stall_timeout);
    settings.context.set(EndlessBody());
    auto& call = options_.call;  // one deadline for all requests
    call.deadline = std::min(call.deadline, later(now, call.timeout));
    call.timeout = kForever;
  }
  [[nodiscard]] const CallOptions& call() const { return options_.call; }
  Result<std::unique_ptr<BodyWriter>> open(const Request& /*request*/) override {
    return std::unique_ptr<BodyWriter>(std::make_unique<Writer>(shared_from_this()));
  }

  // Returns the request that begins or continues the stream. To continue, it names the last event.
  // Returns an error if `last_id` of the options cannot be sent, or if on_reconnect threw.
  Result<Request> next() {
    // The parser starts with this ID. Later it takes only valid IDs from the server.
    if (!valid_header_value(options_.last_id)) {
      return Error(Errc::InvalidRequest,
                   "EventStreamOptions::last_id contains a control byte (CR, LF, NUL or another)");
    }
    stream_ok_ = false;
    parser_.restart();
    auto request = request_;
    request.remove_header("Last-Event-ID");
    if (!parser_.last_id().empty()) request.set_header("Last-Event-ID", parser_.last_id());
    request.edit_options().sink = shared_from_this();
    const bool reconnects = std::exchange(requested_, true);
    if (!reconnects) return request;
    if (auto thrown = notify("on_reconnect", options_.on_reconnect, request)) {
      return *std::move(thrown);
    }
    return request;
  }

  // Checks that the response is an event stream. A 204 is no error: it ends the stream.
  Result<void> begin_response(const Response& head) {
    const auto field = head.headers["Content-Type"];
    const auto type = to_lower(trimmed(field.substr(0, field.find(';'))));
    if (head.status == 204) return {};
    if (head.status == 200 && type == kType) {
      open_ = true;
      if (options_.on_open) options_.on_open(head);
      stream_ok_ = true;
      return {};
    }
    return permanent_error(Errc::Protocol, "the response is not an event stream: its status is " +
                                               std::to_string(head.status) +
                                               " and its Content-Type \"" + printable(type) +
                                               "\", not 200 and text/event-stream");
  }

  Result<BodyWriter::Wish> write(std::string_view bytes) {
    stream_ok_ = false;  // stays false after an error or an exception
    auto more = parser_.parse(bytes, on_event_);
    if (!more) return std::move(more).error();
    stream_ok_ = true;
    enough_ = !*more;
    return enough_ ? BodyWriter::Wish::Stop : BodyWriter::Wish::More;
  }

  // Interprets the outcome of one request for the stream. Returns nullopt if the stream is to be
  // requested again, because it had begun and the server ended it or the connection broke.
  // Otherwise returns the final result: success, or the error that ended the stream.
  std::optional<Result<void>> end(Outcome outcome) {
    const bool was_open = std::exchange(open_, false);
    auto thrown = was_open ? notify("on_end", options_.on_end, outcome) : std::nullopt;
    if (thrown) return Result<void>(*std::move(thrown));
    // The user's function wants no more events, or the server has no more (204).
    if (enough_ || (outcome && outcome->status == 204)) return Result<void>();
    const bool stopped = !outcome && outcome.error().code == Errc::Canceled;
    // If the parser or a user's function failed, `stream_ok_` is false, and the error is returned
    // below.
    if (stream_ok_ && !stopped && request_.repeatable()) return std::nullopt;
    // A request that is not repeatable, such as a POST, has received its whole stream.
    if (stream_ok_ && outcome) return Result<void>();
    if (!outcome) return Result<void>(std::move(outcome).error());
    if (!succeeded(outcome)) thrown = notify("on_failure", options_.on_failure, *outcome);
    if (thrown) return Result<void>(*std::move(thrown));
    // A response without a stream: the error for its status or, for a success, for its type.
    try {
      static_cast<void>(require_success(std::move(outcome)));
    } catch (const Failure& failure) {
      return Result<void>(failure.error());
    }
    return Result<void>(Error(Errc::Protocol, "the response is not an event stream"));
  }

  // Returns when the stream is requested again, or nullopt if the deadline comes first.
  [[nodiscard]] std::optional<Time> reconnect_time(Time now) const {
    auto wait = options_.reconnect;
    if (const auto server_wait = parser_.reconnect()) {
      wait = std::min(std::max(*server_wait, kMinReconnect), options_.max_reconnect);
    }
    const auto when = later(now, wait);
    return when < options_.call.deadline ? std::optional(when) : std::nullopt;
  }

 private:
  // Returns the error for the exception that is being handled, after which no retry follows.
  static Error thrown_by(const char* function) {
    return permanent_error(Errc::Internal, std::string(function) + " of the event stream threw: " +
                                               text_of(std::current_exception()));
  }
  // Calls a function of the user, if there is one. Returns the error if it throws.
  template <class Argument>
  static std::optional<Error> notify(const char* name,
                                     const std::function<void(const Argument&)>& function,
                                     const Argument& argument) {
    try {
      if (function) function(argument);
      return std::nullopt;
    } catch (...) {
      return thrown_by(name);
    }
  }

  struct Writer final : BodyWriter {
    explicit Writer(std::shared_ptr<Stream> of) : stream(std::move(of)) {}
    Result<void> begin(const Response& head, std::uint64_t /*offset*/) override {
      try {
        return stream->begin_response(head);
      } catch (...) {
        return thrown_by("on_open");
      }
    }
    Result<Wish> write(std::string_view bytes) override {
      try {
        return stream->write(bytes);
      } catch (...) {
        return thrown_by("on_event");
      }
    }
    std::shared_ptr<Stream> stream;
  };

  Request request_;
  OnEvent on_event_;
  EventStreamOptions options_;
  EventParser parser_;
  bool requested_ = false;  // the first request has been made
  bool open_ = false;       // on_open was called, so on_end must be
  // The response to this request is an event stream, and neither the parser nor a user's function
  // has failed.
  bool stream_ok_ = false;
  bool enough_ = false;  // on_event wants no further events
};

Error no_time_error() { return Error(Errc::Timeout, "the event stream's deadline has passed"); }
Error stop_error() { return Error(Errc::Canceled, "canceled while waiting for the event stream"); }

}  // namespace

// Requests the stream, again each time that it ends, until it ends for good. Returns why it did.
Result<void> listen(Client& client, const Request& request, OnEvent on_event,
                    EventStreamOptions options) {
  const auto core = detail::CoreOf::get(client);
  const auto stream =
      std::make_shared<Stream>(request, std::move(on_event), std::move(options), core->now());
  for (;;) {
    auto next = stream->next();
    if (!next) return std::move(next).error();
    auto end = stream->end(client.send(*std::move(next), stream->call()));
    if (end) return *std::move(end);
    const auto when = stream->reconnect_time(core->now());
    if (!when) return no_time_error();
    if (!core->wait_until(*when, stream->call().stop)) return stop_error();
  }
}

// Awaits what `listen` blocks for.
Task<Result<void>> co_listen(Client& client, Scheduler& scheduler, Request request,
                             OnEvent on_event, EventStreamOptions options) {
  const auto stream =
      std::make_shared<Stream>(request, std::move(on_event), std::move(options), scheduler.now());
  for (;;) {
    auto next = stream->next();
    if (!next) co_return std::move(next).error();
    auto task = client.co_send(*std::move(next), stream->call());
    Outcome outcome = co_await task;
    auto end = stream->end(std::move(outcome));
    if (end) co_return *std::move(end);
    const auto when = stream->reconnect_time(scheduler.now());
    if (!when) co_return no_time_error();
    const bool waited = co_await scheduler.sleep_until(*when, stream->call().stop);
    if (!waited) co_return stop_error();
  }
}

}  // namespace httpretry
