#include "lib/core/body/detail/delivery.hpp"

#include "lib/core/base/text.hpp"
#include "lib/core/chain/detail/call_state.hpp"

#include <algorithm>

namespace httpretry {
namespace {

using Wish = BodyWriter::Wish;

// Returns whether a response is a part of the body. With other units ("items 0-9/100", or
// PostgREST's "0-9/100"), a 206 is an ordinary response of an application, and its body is whole.
bool is_part(const Response& head) {
  const auto range = head.headers.get("Content-Range");
  return head.status == 206 && (!range || equal_ignoring_case(range->substr(0, 5), "bytes"));
}

// Returns whether a 206 has bytes beyond the range that the request names in `wanted`, the value of
// its header Range: "bytes=5-9" or "bytes=5-". Fewer bytes are permitted. Returns false for other
// values, such as several ranges, and if the response does not say which bytes it has.
bool is_other_range(std::string_view wanted, const ContentRange& sent) {
  if (!equal_ignoring_case(take_until(wanted, '='), "bytes") || !sent.first) return false;
  const auto first = to_number<std::uint64_t>(take_until(wanted, '-'));
  const auto last = to_number<std::uint64_t>(wanted);
  if (!first || (!last && !wanted.empty())) return false;
  return *sent.first != *first || (last && *sent.end - 1 > *last);
}

// Returns whether a 304 is a valid response to the request.
bool has_condition(const Request& request) {
  return request.headers().contains("If-None-Match") ||
         request.headers().contains("If-Modified-Since");
}

// Describes the total in the Content-Range of a 416, such as "bytes */500".
std::string total_text(const ContentRange& range) {
  return range.total ? " (it has only " + std::to_string(*range.total) + " bytes)" : "";
}

Error ends_early(std::uint64_t received, std::uint64_t total) {
  Error error(Errc::Receive, "the body of the response ends early: " + std::to_string(received) +
                                 " bytes of " + std::to_string(total));
  error.partial = true;
  error.curl_code = 18;  // CURLE_PARTIAL_FILE
  return error;
}

// Makes the error for a part of the body that cannot be used. Another attempt may help.
Error range_error(std::string message) {
  Error error(Errc::Protocol, std::move(message));
  error.curl_code = 33;  // CURLE_RANGE_ERROR
  return error;
}

// Returns whether a rule of the policy called the response a failure. Its body stays in memory.
bool is_failure(const Response& response, const History& history) {
  const auto* last = history.last();
  return last != nullptr && !response.from_fallback && last->status == response.status &&
         last->cls != Class::Success;
}

// Returns whether the whole response of one of several racing sends is the one that is used.
bool is_used(RacingSend& racing, const Response& whole) {
  const auto use = racing.headers_came(whole);
  return use == RacingSend::Use::Yes || (use == RacingSend::Use::NotYet && racing.uses(whole));
}

Error no_body_for_sink(const Request& request, const Response& response, const char* why) {
  const auto& url = request.parsed_url();
  Error error(Errc::Internal, (url ? about(request, *url) : std::string()) + why);
  error.permanent = true;
  error.exchange = response.exchange;
  error.status = response.status;
  return error;
}

}  // namespace

std::optional<Error> unasked_part(const Request& request, const Response& head) {
  if (!is_part(head)) return std::nullopt;
  const ContentRange sent(head.headers);
  const auto wanted = request.headers().get("Range");
  if (wanted && !is_other_range(*wanted, sent)) return std::nullopt;
  return range_error("the server sent a part of the body (" + sent.text() + "), although " +
                     (wanted ? "another part" : "the whole body") + " was requested");
}

// Continues after the part of the body that the writer has from an earlier call.
Delivery::Delivery(std::shared_ptr<Sink> sink, std::unique_ptr<BodyWriter> writer)
    : sink_(std::move(sink)), writer_(std::move(writer)) {
  const auto start = writer_->had();
  if (!start) return;
  position_ = furthest_ = start->size;
  version_ = BodyVersion(*start);
  user_vouches_for_body_ = start->validator.empty();
}

// Returns the call's delivery to the request's sink, opened if necessary; nullptr without a sink.
Result<Delivery*> Delivery::of(const Request& request, Call& call) {
  const auto& sink = request.options().sink;
  if (!sink) return static_cast<Delivery*>(nullptr);
  auto* const open = call.get<std::unique_ptr<Delivery>>();
  if (open != nullptr && *open != nullptr && (*open)->sink_ == sink) return open->get();
  // If a middleware has set another sink, the old delivery ends before the new one is opened,
  // because both may write to the same file. If the new one cannot be opened, none is left.
  if (open != nullptr) open->reset();
  auto writer = sink->open(request);
  if (!writer) return std::move(writer).error();
  if (*writer == nullptr) {
    Error error(Errc::Internal, "the sink returned no writer");
    error.permanent = true;
    return error;
  }
  std::unique_ptr<Delivery> delivery(new Delivery(sink, *std::move(writer)));
  return call.set(std::move(delivery)).get();
}

Delivery* Delivery::if_open(const Call& call) {
  auto* const open = call.get<std::unique_ptr<Delivery>>();
  return open == nullptr ? nullptr : open->get();
}

bool Delivery::can_retry() const {
  return position_ == 0 || writer_->restartable() || !version_.validator.empty();
}

std::uint64_t Delivery::take_progress() {
  const auto before = furthest_;
  furthest_ = std::max(furthest_, position_);
  return furthest_ - before;
}

// Resets the members of one exchange. The state of the writer stays.
void Delivery::reset_exchange() {
  held_back_ = rest_requested_ = ended_by_416_ = false;
  to_skip_ = offset_ = 0;
  end_.reset();
  rest_ = Rest();
}

// Begins an exchange. Returns the header lines that request the rest of the body if the writer has
// its beginning; they are empty if the whole body must be requested.
const Delivery::Rest& Delivery::request_rest(const Request& request) {
  reset_exchange();
  const bool same_url = url_.empty() || url_ == request.url();
  const bool same_body_provable = !version_.validator.empty() || user_vouches_for_body_;
  if (position_ == 0 || !same_url || !same_body_provable) return rest_;
  if (!can_be_continued(request)) return rest_;
  rest_requested_ = true;
  rest_.range = "Range: bytes=" + std::to_string(position_) + "-";
  if (!version_.validator.empty()) rest_.if_range = "If-Range: " + version_.validator;
  return rest_;
}

// Decides, when the headers of a response have arrived, where its body goes: returns true for the
// user's sink (such as a file), and false for memory. The sink's writer already has the first
// `position_` bytes of the body if an earlier attempt broke off. If `rest_requested_` is true, the
// request asked only for the bytes after them, with "Range: bytes=N-". Returns an error, which ends
// the exchange, if the writer cannot use this response.
Result<bool> Delivery::begin(const Request& request, const Response& head) {
  held_back_ = false;
  // 416: the server has no bytes after those of the writer, which may be the whole body.
  if (rest_requested_ && head.status == 416) return end_at_416(head);
  // Only a request with If-None-Match or If-Modified-Since may get a 304.
  if (rest_requested_ && head.status == 304 && !has_condition(request)) {
    return cannot_resume("the server sent the status 304, although the request had no condition");
  }
  // The sink gets only the bodies of successful responses.
  if (!head.is_2xx() || request.method() == "HEAD") return false;
  // A rule of the policy must read the beginning of this body first, because it may describe an
  // error. So the body stays in memory until `release` asks the rule and, for a success, calls this
  // function again.
  if (body_rules_ && body_rules_->must_read(head.status, head.headers)) {
    held_back_ = true;
    return false;
  }
  // A part that was not requested is an error. A retry may get the right bytes if the writer can
  // start again.
  if (auto error = rest_requested_ ? std::nullopt : unasked_part(request, head)) {
    error->permanent = !can_restart();
    return *std::move(error);
  }
  // A 206 to a request for the rest has the rest. Any other success has the whole body.
  auto begun = rest_requested_ && head.status == 206 ? continue_with(head) : restart_with(head);
  if (!begun) return begun;
  // The position of the first byte to arrive. If the writer keeps its bytes although the server
  // sends all of them again, `to_skip_` is how many `write` must skip.
  offset_ = to_skip_ > 0 ? 0 : position_;
  url_ = request.url();
  user_vouches_for_body_ = false;  // from here on, the response's headers identify the body
  // A later attempt requests the rest of this body only if `version_` has a validator: an ETag or a
  // date for If-Range. This removes the validator unless the request is a GET without a Range of
  // the user's, and the response is a 200 or the rest of one.
  const bool whole_or_rest = head.status == 200 || rest_requested_;
  if (!can_be_continued(request) || !whole_or_rest) version_.validator.clear();
  return true;
}

// Handles a 416: the server has no bytes after those that the writer has. Something else must prove
// that these are the whole body, because a shorter body may have replaced it. Returns true if that
// is proven.
Result<bool> Delivery::end_at_416(const Response& head) {
  const ContentRange range(head.headers);
  const bool same_body = version_.difference(head.headers).empty();
  const bool total_fits = !version_.total || *version_.total == position_;
  const bool proven = user_vouches_for_body_ || version_.total || version_.proven_by(head.headers);
  ended_by_416_ = range.total == position_ && total_fits && proven && same_body;
  if (ended_by_416_) return true;
  return cannot_resume("the server has no bytes after them" + total_text(range));
}

Result<bool> Delivery::release(const Request& request, const Response& begun) {
  const auto rules = std::exchange(body_rules_, std::nullopt);  // so `begin` does not hold it back
  if (!rules->is_success(begun)) return false;
  held_back_ = false;
  return begin(request, begun);
}

// Handles a 206, the response to "Range: bytes=N-" when the writer has the first N (`position_`)
// bytes of the body. `version_` identifies the body of these bytes by its ETag, date and size.
// Returns true if the writer accepts the rest. Returns an error if the server sent other bytes, or
// bytes of a body that has changed.
Result<bool> Delivery::continue_with(const Response& head) {
  // "bytes N-LAST/TOTAL". `first` is N and `end` is LAST + 1; both are set, or neither.
  const ContentRange sent(head.headers);
  if (const auto change = version_.difference(head.headers); !change.empty()) {
    return cannot_resume("the body has changed: the server sent " + change);
  }
  // The range of a compressed body counts compressed bytes, but `position_` decoded ones.
  if (sent.first != position_ || head.headers.contains("Content-Encoding")) {
    return cannot_resume("the request was for the bytes from " + std::to_string(position_) +
                         " on, but the server sent others (" + sent.text() + ")");
  }
  // If the server sends "*" as the total, the total in an earlier response counts, and the bytes
  // must not go beyond it.
  const auto total = sent.total ? sent.total : version_.total;
  if (!total || *sent.end > *total) {
    return cannot_resume("the server sent " + sent.text() + " without saying where the body ends");
  }
  if (auto begun = of_writer(writer_->begin(head, position_)); !begun) {
    return std::move(begun).error();
  }
  // `version_` keeps the headers of the first response. If the user vouches for the bytes of an
  // earlier call, it has none yet, and this response is the first.
  if (user_vouches_for_body_) version_ = BodyVersion(head.headers);
  version_.total = total;
  end_ = sent.end;  // `write` accepts no bytes after it
  return true;
}

// Handles a response that has the whole body, from byte 0 on. A writer that can start again, such
// as a file, does so. Another writer keeps the `position_` bytes that it has, and `write` skips
// those bytes of this response. That needs proof that the body is still the same: a 200 with an
// equal ETag and no other total. Returns true, or an error without this proof.
Result<bool> Delivery::restart_with(const Response& head) {
  if (can_restart()) {
    position_ = 0;
    version_ = BodyVersion(head.headers);
    if (auto begun = of_writer(writer_->begin(head, position_)); !begun) {
      return std::move(begun).error();
    }
    return true;
  }
  const bool same_etag = version_.proven_by(head.headers);
  const bool same_body =
      head.status == 200 && same_etag && version_.difference(head.headers).empty();
  // An encoded (compressed) response is never the same: the first one, which had a validator for
  // this proof, was not encoded.
  if (!same_body || head.headers.contains("Content-Encoding")) {
    return cannot_resume("the response has changed since its first part was received");
  }
  to_skip_ = position_;
  end_ = version_.total;  // `write` accepts no bytes after it
  return true;
}

bool Delivery::can_restart() const { return position_ == 0 || writer_->restartable(); }

// Returns the error for a response that does not fit what the writer has. From now on attempts
// request the whole body, and so does the next call.
Error Delivery::cannot_resume(const std::string& why) {
  version_ = BodyVersion();
  user_vouches_for_body_ = false;
  writer_->forget();
  const bool restartable = writer_->restartable();
  auto error = range_error("cannot continue after the first " + std::to_string(position_) +
                           " bytes: " + why +
                           (restartable ? "; a retry requests the whole body"
                                        : "; receive the body again from its beginning"));
  error.permanent = !restartable;
  return error;
}

// Gives the writer the bytes, except those that it already has.
Result<Wish> Delivery::write(std::string_view bytes) {
  if (ended_by_416_) return Wish::More;  // the body of a 416
  if (to_skip_ > 0) {
    const auto skipped = std::min<std::uint64_t>(to_skip_, bytes.size());
    to_skip_ -= skipped;
    bytes.remove_prefix(skipped);
    if (bytes.empty()) return Wish::More;
  }
  if (end_ && bytes.size() > *end_ - position_) {
    return cannot_resume("the server sent more bytes than it announced");
  }
  position_ += bytes.size();
  return of_writer(writer_->write(bytes));
}

// Checks that the body is as long as announced, and has the writer store it.
Result<void> Delivery::finish(Response& response) {
  if (response.incomplete) return cut_off(response);
  // The server sent the whole body again, but not even as many bytes as the writer already has.
  if (to_skip_ > 0) return ends_early(position_ - to_skip_, version_.total.value_or(position_));
  // `end_` is only set if the total is known.
  if (end_ && position_ != *version_.total) return ends_early(position_, *version_.total);
  response.delivered = position_;
  auto finished = of_writer(writer_->finish());
  finished_ = finished.has_value();
  if (ended_by_416_ && finished) response.status = 206;  // as if the rest were empty
  version_ = BodyVersion();                              // no later attempt may append to it
  return finished;
}

Error Delivery::cut_off(const Response& response) {
  Error error(Errc::Receive, "the body of the response ends early");
  error.partial = true;
  error.curl_code = 18;  // CURLE_PARTIAL_FILE
  error.status = response.status;
  error.headers = response.headers;
  error.exchange = response.exchange;
  return error;
}

// Delivers the body for a transport without streams. Returns the outcome unchanged if the request
// has no sink or the response of another racing send is used.
Task<Outcome> Delivery::deliver(Request request, Call& call, Outcome outcome) {
  auto opened = of(request, call);
  if (!opened) co_return std::move(opened).error();
  auto* delivery = *opened;
  if (delivery == nullptr || !outcome) co_return outcome;
  if (auto* racing = Call::State::racing(call); racing != nullptr && !is_used(*racing, *outcome)) {
    co_return outcome;
  }
  delivery->reset_exchange();
  Outcome delivered = co_await delivery->deliver_body(std::move(request), call, std::move(outcome));
  co_return delivered;
}

// Delivers a body in memory that the rules of the policy have judged, so they do not hold it back.
Task<Outcome> Delivery::deliver_judged(Request request, Call& call, Outcome outcome) {
  auto opened = of(request, call);
  if (!opened) co_return std::move(opened).error();
  (*opened)->body_rules_.reset();
  Outcome delivered =
      co_await (*opened)->deliver_body(std::move(request), call, std::move(outcome));
  co_return delivered;
}

// Passes the body of a call's final response to the sink, if it is still in memory because a
// middleware made the response itself. Returns the outcome unchanged if there is nothing to pass
// on. Returns an error if the sink fails, or if it cannot get the body of this response. A response
// whose body went to a sink has an empty `body`, and the number of those bytes in `delivered`.
Task<Outcome> Delivery::deliver_rest(Request request, Call& call, Outcome outcome) {
  // The sink gets only the bodies of successful responses.
  if (!outcome || !outcome->is_2xx() || request.method() == "HEAD") co_return outcome;
  // A rule of the policy called this 2xx a failure.
  if (is_failure(*outcome, call.history())) co_return outcome;
  auto* delivery = if_open(call);  // nullptr if no attempt has opened the sink
  const bool finished = delivery != nullptr && delivery->finished_;  // the sink has a whole body
  // The usual end of a call: the sink received the whole body from the transport.
  if (finished && outcome->body.empty()) co_return outcome;
  if (finished) {
    co_return no_body_for_sink(request, *outcome,
                               "a middleware returned a response with a body after the sink had "
                               "received the body of another response");
  }
  // The sink of this call has no whole body, so this body went to the sink of another call.
  if (outcome->delivered > 0) {
    co_return no_body_for_sink(request, *outcome,
                               "the response of a middleware has no body: it went to the sink of "
                               "another call");
  }
  // Forgets that the last attempt may have requested only the rest: this body is a whole one.
  if (delivery != nullptr) delivery->reset_exchange();
  Outcome delivered = co_await deliver_judged(std::move(request), call, std::move(outcome));
  co_return delivered;
}

// Passes the complete body of a response from memory to the sink, and returns the response without
// it. Returns the outcome unchanged if `begin` decides that the body stays in memory, because the
// response is a failure or because a rule of the policy must read the body first. Returns an error
// if the sink fails or stops the call.
Task<Outcome> Delivery::deliver_body(Request request, Call& call, Outcome outcome) {
  const auto body = std::exchange(outcome->body, std::string());
  auto to_sink = begin(request, *outcome);
  if (!to_sink) co_return sink_failed(request, *outcome, std::move(to_sink).error());
  if (!*to_sink) {
    outcome->body = body;
    co_return outcome;
  }
  auto reply = write(body);  // what the writer wants next: More, Pause or Stop
  if (reply && *reply != Wish::Stop) {
    const auto draining = drain(call);
    reply = co_await draining;            // until the writer has processed all bytes
    reply = of_writer(std::move(reply));  // makes an error permanent, so that no retry follows
  }
  if (!reply) co_return sink_failed(request, *outcome, std::move(reply).error());
  if (*reply == Wish::Stop) co_return sink_failed(request, *outcome, reader_stopped());
  auto done = finish(*outcome);
  if (!done) co_return sink_failed(request, *outcome, std::move(done).error());
  co_return outcome;
}

}  // namespace httpretry
