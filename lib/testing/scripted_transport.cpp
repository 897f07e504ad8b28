#include "lib/flow/delivery.hpp"
#include "lib/http/checked_reader.hpp"
#include "lib/http/text.hpp"

#include <httpretry/testing/testing.hpp>

#include <algorithm>
#include <array>
#include <deque>
#include <mutex>
#include <random>

namespace httpretry {
namespace {

bool before_sending(Errc code) {
  return code == Errc::InvalidRequest || code == Errc::Resolve || code == Errc::Connect ||
         code == Errc::Tls;
}

// Fills in what a real transport would have counted, if the script does not say.
void fill_exchange(Outcome& outcome) {
  auto& exchange = exchange_of(outcome);
  if (exchange.wire_sends != 0 || exchange.sent != Sent::Never) return;
  if (!outcome && before_sending(outcome.error().code)) return;
  exchange.sent = outcome ? Sent::Answered : Sent::Maybe;
  exchange.wire_sends = 1;
}

// The bytes of the body so far, and the error where it cannot be read to its end.
struct BodyRead {
  std::string bytes;
  std::optional<Error> error;
};

BodyRead read_to_end(CheckedReader& reader) {
  std::array<char, 16 * 1024> piece{};
  BodyRead read;
  try {
    for (;;) {
      const auto count = reader.read(piece);
      if (!count) read.error = count.error();
      if (!count || *count == 0) break;
      read.bytes.append(piece.data(), *count);
    }
  } catch (...) {
    read.error.emplace(Errc::InvalidRequest,
                       "reading the body threw: " + text_of(std::current_exception()));
    read.error->permanent = true;
  }
  return read;
}

Error maybe_sent(Error error) {
  error.exchange.sent = Sent::Maybe;
  error.exchange.wire_sends = 1;
  return error;
}

Error not_in_time(bool canceled, bool sends) {
  Error error(canceled ? Errc::Canceled : Errc::Timeout,
              canceled ? "canceled" : "no response in time");
  error.curl_code = canceled ? 42 : 28;  // as libcurl reports them
  return sends ? maybe_sent(std::move(error)) : error;
}

Error failed_before_the_send() {
  return Error(Errc::Internal,
               "a function of the ScriptedTransport returned an error from before the request is "
               "sent, but it is called when the body, which can be read only once, was read: give "
               "that error to say(Error)");
}

}  // namespace

struct ScriptedTransport::Script {
  struct Step {
    Respond respond;
    Duration after;
    bool sends;  // false: it fails before it sends anything
  };

  // The step for this request, which is recorded. The step is nullptr if there is none.
  const Step* take(const Request& request, Time now, std::size_t& index) {
    const std::lock_guard lock(mutex);
    index = seen.size();
    seen.emplace_back(request, now);
    return steps.empty() ? nullptr : &steps[std::min(index, steps.size() - 1)];
  }
  void record_body(std::size_t index, const std::string& bytes) {
    const std::lock_guard lock(mutex);
    seen[index].request.set_body(bytes);
  }
  Outcome respond(const Step& step, const Request& request, std::size_t index) {
    const std::lock_guard lock(responding);
    return step.respond(request, static_cast<int>(index) + 1);
  }

  mutable std::mutex mutex;  // guards the two below
  std::deque<Step> steps;    // whose addresses stay
  std::vector<Seen> seen;
  std::mutex responding;  // a function runs
};

ScriptedTransport::ScriptedTransport() : script_(std::make_unique<Script>()) {}
ScriptedTransport::~ScriptedTransport() = default;

ScriptedTransport& ScriptedTransport::say(Outcome outcome, Duration after) {
  fill_exchange(outcome);
  const bool sends = exchange_of(outcome).wire_sends > 0;
  const std::lock_guard lock(script_->mutex);
  script_->steps.push_back(
      {[outcome = std::move(outcome)](const Request&, int) { return outcome; }, after, sends});
  return *this;
}

ScriptedTransport& ScriptedTransport::say(Respond respond, Duration after) {
  const std::lock_guard lock(script_->mutex);
  script_->steps.push_back({std::move(respond), after, true});
  return *this;
}

std::vector<ScriptedTransport::Seen> ScriptedTransport::requests() const {
  const std::lock_guard lock(script_->mutex);
  return script_->seen;
}

Task<Outcome> ScriptedTransport::send(Request request, Call& call) {
  if (const auto& url = request.parsed_url(); !url) co_return url.error();
  const Body body = request.body();
  const bool streamed = body.present() && body.bytes() == nullptr;
  CheckedReader reader;
  if (streamed) {
    auto opened = reader.open(body);
    if (!opened) co_return std::move(opened).error();
  }
  auto& clock = call.scheduler();
  std::size_t index = 0;
  const auto* step = script_->take(request, clock.now(), index);
  if (step == nullptr)
    co_return Error(Errc::Internal,
                    "ScriptedTransport has no response to give: call say() before sending");
  if (streamed && step->sends) {
    auto read = read_to_end(reader);
    script_->record_body(index, read.bytes);
    if (read.error) co_return maybe_sent(*std::move(read.error));
    request.set_body(std::move(read.bytes));
  }

  const auto ready = later(clock.now(), step->after);
  const auto& options = request.options();
  const auto limit =
      std::min({call.deadline(), options.respond_by, later(clock.now(), options.response_timeout)});
  const bool waited = co_await clock.sleep_until(std::min(ready, limit), call.stop());
  if (!waited || ready > limit) co_return not_in_time(!waited, step->sends);
  Outcome outcome = script_->respond(*step, request, index);
  fill_exchange(outcome);
  const bool sent = exchange_of(outcome).wire_sends > 0;
  if (step->sends && !sent && !body.replayable()) co_return failed_before_the_send();
  if (outcome && outcome->url.empty()) outcome->url = request.parsed_url()->to_string();
  if (!request.options().sink) co_return outcome;
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
