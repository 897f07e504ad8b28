#include "lib/core/base/either_stop.hpp"
#include "lib/core/base/text.hpp"
#include "lib/core/body/detail/delivery.hpp"

#include <httpretry/testing/testing.hpp>

#include <algorithm>
#include <array>
#include <deque>
#include <mutex>
#include <random>

namespace httpretry {
namespace {

bool happens_before_sending(Errc code) {
  return code == Errc::InvalidRequest || code == Errc::Resolve || code == Errc::Connect ||
         code == Errc::Tls;
}

// Fills in the byte counts of a real transport if the script leaves them at 0.
void fill_in_byte_counts(Outcome& outcome, const Request& request) {
  auto& exchange = exchange_of(outcome);
  if (exchange.wire_sends == 0) return;
  const auto* body = request.body().bytes();
  if (exchange.body_sent == 0 && body != nullptr) exchange.body_sent = body->size();
  if (exchange.body_received == 0 && outcome) exchange.body_received = outcome->body.size();
}
// Returns the headers of the response, or of the partial response of an error. Returns nullptr if
// there was no response.
Headers* headers_of(Outcome& outcome) {
  if (outcome) return &outcome->headers;
  return outcome.error().status == 0 ? nullptr : &outcome.error().headers;
}
// Fills in how the request was sent if the script leaves it empty.
void fill_in_exchange(Outcome& outcome) {
  auto& exchange = exchange_of(outcome);
  if (exchange.wire_sends != 0 || exchange.sent != Sent::Never) return;
  if (!outcome && happens_before_sending(outcome.error().code)) return;
  exchange.sent = outcome ? Sent::Answered : Sent::Maybe;
  exchange.wire_sends = 1;
}

// Adds to the script's response or error what a real transport would: headers with times, and the
// facts about the exchange that the script leaves out.
void complete_outcome(Outcome& outcome, const std::vector<TimeHeader>& times,
                      const Request& request, WallTime now) {
  if (auto* headers = headers_of(outcome)) add_times(*headers, times, now);
  fill_in_exchange(outcome);
  fill_in_byte_counts(outcome, request);
  if (outcome && outcome->url.empty()) outcome->url = request.parsed_url()->to_string();
}

// The bytes of the body so far, and an error if the rest cannot be read.
struct BodyRead {
  BodyRead() = default;
  std::string bytes;
  std::optional<Error> error;
};

// Appends the rest of a request's body to `read.bytes`. Returns true at the end of the body, or if
// it cannot be read, which sets `read.error`. Returns false if the body pauses because it has no
// bytes at the moment; the caller then waits and calls this again.
bool read_to_end_or_pause(CheckedReader& reader, BodyRead& read) {
  std::array<char, 16 * 1024> piece{};
  try {
    for (;;) {
      const auto count = reader.read(piece);
      if (!count) read.error = count.error();
      if (!count || *count == 0) return true;  // an error, or the end
      if (*count == BodyReader::kPause) return false;
      read.bytes.append(piece.data(), *count);
    }
  } catch (...) {
    read.error.emplace(Errc::InvalidRequest,
                       "reading the body threw: " + text_of(std::current_exception()));
    read.error->permanent = true;  // a retry would fail in the same way
    return true;
  }
}

// The next two tasks race: the one that ends first stops the other. A result of true means that the
// limit was reached.
Task<bool> stop_at(Scheduler& clock, Time limit, std::stop_token body_ready,
                   std::stop_source limit_reached) {
  const bool reached = co_await clock.sleep_until(limit, std::move(body_ready));
  if (reached) limit_reached.request_stop();
  co_return reached;
}
Task<bool> wait_until_readable(CheckedReader& reader, Call& branch, std::stop_source body_ready,
                               Result<void>& result) {
  const auto waiting = detail::wait_for_more(reader, branch);
  result = co_await waiting;
  body_ready.request_stop();
  co_return false;
}

Error mark_maybe_sent(Error error) {
  error.exchange.sent = Sent::Maybe;
  error.exchange.wire_sends = 1;
  return error;
}

// Returns the error of the real transport for an exchange that a limit or a stop request ends.
// `code` is Timeout or Canceled.
Error end_error(Errc code) {
  const bool canceled = code == Errc::Canceled;
  Error error(code, canceled ? "canceled" : "no response in time");
  error.curl_code = canceled ? 42 : 28;  // CURLE_ABORTED_BY_CALLBACK, CURLE_OPERATION_TIMEDOUT
  return error;
}

// Waits until a paused body has more bytes, and then returns nullopt. Returns an error if the
// exchange ends before that: the limit is reached, the call is canceled, or the body fails. Two
// tasks race: one waits for the body, the other for the limit, and the one that ends first stops
// the other.
Task<std::optional<Error>> wait_for_body(CheckedReader& reader, Call& call, Time limit) {
  auto& clock = call.scheduler();
  const std::stop_source body_ready;  // stops the wait for the limit
  const std::stop_source limit_stop;  // stops the wait for the body
  const EitherStop limit_or_cancel(limit_stop.get_token(), call.stop());
  Call branch = call.with(limit, limit_or_cancel.token());
  Result<void> body_result;
  std::vector<Task<bool>> tasks;
  tasks.push_back(wait_until_readable(reader, branch, body_ready, body_result));
  tasks.push_back(stop_at(clock, limit, body_ready.get_token(), limit_stop));
  auto both = when_all(std::move(tasks));
  const std::vector<bool> results = co_await both;  // in the order of the tasks
  const bool limit_reached = results[1];            // the result of stop_at()
  if (limit_reached) co_return end_error(Errc::Timeout);
  if (call.stop().stop_requested()) co_return end_error(Errc::Canceled);
  if (!body_result) co_return std::move(body_result).error();
  co_return std::nullopt;
}

// Reads the whole body, and waits when it pauses. An error counts as one after the sending began.
Task<BodyRead> read_request_body(CheckedReader& reader, Call& call, Time limit) {
  BodyRead read;
  while (!read.error && !read_to_end_or_pause(reader, read)) {
    const auto waiting = wait_for_body(reader, call, limit);
    read.error = co_await waiting;
  }
  if (read.error) read.error = mark_maybe_sent(*std::move(read.error));
  co_return read;
}

// Reports progress like the real transport, but only three times in an exchange.
class ProgressReporter {
 public:
  explicit ProgressReporter(const Request& request) : callback_(request.options().on_progress) {
    if (!callback_) return;
    if (!request.body().present()) now_.to_send = 0;
    if (const auto* bytes = request.body().bytes()) now_.to_send = bytes->size();
  }
  // Reports the beginning. `body` is nullptr unless the body is read piece by piece; then the
  // reader knows its size.
  void begin(const CheckedReader* body) {
    if (body != nullptr) now_.to_send = body->bytes_left();
    report();
  }
  void sent(std::uint64_t size) {
    now_.sent = size;
    if (size > 0) report();
  }
  void received(std::uint64_t size) {
    now_.received = size;
    now_.to_receive = size;
    report();
  }

 private:
  void report() {
    if (callback_) callback_(now_);
  }
  std::function<void(const Progress&)> callback_;
  Progress now_;
};

// The request's body has been read, so an error that claims nothing was sent would be wrong: it
// would allow a retry that needs the body again.
Error failed_before_the_send() {
  return Error(Errc::Internal,
               "a function of the ScriptedTransport returned an error from before the request is "
               "sent, but was called after the body, which can be read only once, had been read: "
               "pass that error to say(Error)");
}

}  // namespace

struct ScriptedTransport::Script {
  struct Step {
    Respond respond;
    Duration after;
    std::vector<TimeHeader> time_headers;
    bool sends;  // false: fails before sending anything
  };

  // Records the request, sets `index` to its position, and returns its step: the next one, or again
  // the last one. Returns nullptr if the script is empty.
  const Step* take(const Request& request, Time now, std::size_t& index) {
    const std::lock_guard lock(mutex);
    index = seen.size();
    seen.emplace_back(request, now);
    if (next < steps.size()) ++next;
    return next == 0 ? nullptr : &steps[next - 1];
  }
  void record_body(std::size_t index, const std::string& bytes) {
    const std::lock_guard lock(mutex);
    seen[index].request.set_body(bytes);
  }
  Outcome respond(const Step& step, const Request& request, std::size_t index) {
    const std::lock_guard lock(responding);
    return step.respond(request, static_cast<int>(index) + 1);
  }

  mutable std::mutex mutex;  // guards the three members below
  std::deque<Step> steps;    // its elements keep their addresses
  std::size_t next = 0;      // the step after the last one that was taken
  std::vector<Seen> seen;
  std::mutex responding;  // held while a function of the script runs
};

ScriptedTransport::ScriptedTransport() : script_(std::make_unique<Script>()) {}
ScriptedTransport::~ScriptedTransport() = default;

ScriptedTransport& ScriptedTransport::say(Outcome outcome, Duration after) {
  return say(std::move(outcome), {}, after);
}

ScriptedTransport& ScriptedTransport::say(Outcome outcome, std::vector<TimeHeader> times,
                                          Duration after) {
  Headers checked;
  add_times(checked, times, WallTime());  // throws for an invalid header name
  fill_in_exchange(outcome);
  const bool sends = exchange_of(outcome).wire_sends > 0;
  const std::lock_guard lock(script_->mutex);
  script_->steps.push_back({[outcome = std::move(outcome)](const Request&, int) { return outcome; },
                            after, std::move(times), sends});
  return *this;
}

ScriptedTransport& ScriptedTransport::say(Respond respond, Duration after) {
  const std::lock_guard lock(script_->mutex);
  script_->steps.push_back({std::move(respond), after, /*time_headers=*/{}, /*sends=*/true});
  return *this;
}

std::vector<ScriptedTransport::Seen> ScriptedTransport::requests() const {
  const std::lock_guard lock(script_->mutex);
  return script_->seen;
}

// Carries out one exchange in a test as the next step of the script says: reads the request's body,
// waits until the response is due, and delivers it. The results are those that a real transport
// would have, including the errors if a limit is reached or the call is canceled.
Task<Outcome> ScriptedTransport::send(Request request, Call& call) {
  if (const auto& url = request.parsed_url(); !url) co_return url.error();
  const Body body = request.body();
  const bool streamed = body.present() && body.bytes() == nullptr;  // read piece by piece
  CheckedReader reader;
  if (streamed) {
    auto opened = reader.open(body);
    if (!opened) co_return std::move(opened).error();
  }
  ProgressReporter progress(request);
  progress.begin(streamed ? &reader : nullptr);  // the reader knows the size of the body
  auto& clock = call.scheduler();
  std::size_t record_index = 0;  // where the script records this request
  const auto* step = script_->take(request, clock.now(), record_index);
  if (step == nullptr)
    co_return Error(Errc::Internal,
                    "ScriptedTransport has no response to give: call say() before sending");
  const auto limits = call.limits(request);
  const auto exchange_end = std::min(call.deadline(), limits.respond_by);
  // If `sends` is false, the step fails before anything is sent, for example because it cannot
  // connect.
  if (streamed && step->sends) {
    const auto reading = read_request_body(reader, call, exchange_end);
    BodyRead read = co_await reading;
    script_->record_body(record_index, read.bytes);
    if (read.error) co_return *std::move(read.error);
    request.set_body(std::move(read.bytes));  // from here on, it is in memory
  }
  if (const auto* bytes = request.body().bytes(); bytes != nullptr && step->sends) {
    progress.sent(bytes->size());
  }

  // Waits for the response, a limit or a cancellation, whichever comes first.
  const auto response_at = later(clock.now(), step->after);
  const auto limit = std::min(exchange_end, later(clock.now(), limits.response_timeout));
  const bool waited = co_await clock.sleep_until(std::min(response_at, limit), call.stop());
  if (!waited || response_at > limit) {
    Error error = end_error(waited ? Errc::Timeout : Errc::Canceled);
    co_return step->sends ? mark_maybe_sent(std::move(error)) : std::move(error);
  }
  Outcome outcome = script_->respond(*step, request, record_index);
  complete_outcome(outcome, step->time_headers, request, clock.wall_now());
  if (outcome) progress.received(outcome->body.size());
  // An outcome that claims that nothing was sent allows a retry, which needs the body again.
  const bool claims_unsent = exchange_of(outcome).wire_sends == 0;
  if (step->sends && claims_unsent && !body.replayable()) co_return failed_before_the_send();
  if (!request.options().sink) {  // the response's body stays in memory
    if (outcome && outcome->is_2xx() && outcome->incomplete) outcome = Delivery::cut_off(*outcome);
    co_return outcome;
  }
  // Writes the response's body to the sink that the request asks for.
  Outcome delivered = co_await Delivery::deliver(request, call, std::move(outcome));
  co_return delivered;
}

std::function<double()> fixed_random(double value) {
  return [value] { return value; };
}

std::function<double()> seeded_random(std::uint64_t seed) {
  return [generator = std::mt19937_64(seed)]() mutable {
    return static_cast<double>(generator() >> 11U) * 0x1.0p-53;
  };
}

}  // namespace httpretry
