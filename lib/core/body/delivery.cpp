#include "lib/core/body/detail/delivery.hpp"

#include "lib/core/chain/detail/call_state.hpp"

#include <algorithm>

namespace httpretry {
namespace {

using Wish = BodyWriter::Wish;

// With other units ("items 0-9/100", or PostgREST's "0-9/100"), a 206 is an ordinary response of an
// application, and its body is whole.
bool is_part(const Response& head) {
  const auto range = head.headers.get("Content-Range");
  return head.status == 206 && (!range || range->starts_with("bytes"));
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

Error ends_early(std::uint64_t have, std::uint64_t total) {
  Error error(Errc::Receive, "the body of the response ends early: " + std::to_string(have) +
                                 " bytes of " + std::to_string(total));
  error.partial = true;
  error.curl_code = 18;  // CURLE_PARTIAL_FILE
  return error;
}

// Makes the error for a part of the body that cannot be used.
Error range_error(std::string message, bool permanent) {
  Error error(Errc::Protocol, std::move(message));
  error.permanent = permanent;
  error.curl_code = 33;  // CURLE_RANGE_ERROR
  return error;
}

// Returns whether a rule of the policy called the response a failure. Its body stays in memory.
bool is_failure(const Response& response, const History& history) {
  const auto* last = history.last();
  return last != nullptr && last->status == response.status && last->cls != Class::Success;
}

bool offer(RacingSend& racing, const Response& whole) {
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

std::string about(const Request& request, const Url& url) {
  return request.method() + " " + printable(url.without_secrets()) + ": ";
}

Error sink_failed(const Request& request, const Response& response, Error error) {
  const auto& url = request.parsed_url();
  if (url) error.message = about(request, *url) + error.message;
  error.exchange = response.exchange;
  error.status = response.status;
  if (error.curl_code == 0) error.curl_code = 23;  // CURLE_WRITE_ERROR
  return error;
}

std::optional<Error> unasked_part(const Request& request, const Response& head, bool permanent) {
  if (!is_part(head) || request.headers().contains("Range")) return std::nullopt;
  return range_error("the server sent a part of the body (" + ContentRange(head.headers).text() +
                         "), although the whole body was asked for",
                     permanent);
}

Error reader_stopped() {
  Error error(Errc::Canceled, "stopped by the reader of the body");
  error.permanent = true;
  return error;
}

Delivery::Delivery(std::shared_ptr<Sink> sink, std::unique_ptr<BodyWriter> writer)
    : sink_(std::move(sink)), writer_(std::move(writer)) {
  const auto had = writer_->had();
  if (!had) return;
  have_ = had->size;
  version_ = BodyVersion(*had);
  guaranteed_ = had->validator.empty();
}

Result<Delivery*> Delivery::of(const Request& request, Call& call) {
  const auto& sink = request.options().sink;
  if (!sink) return static_cast<Delivery*>(nullptr);
  auto* const open = call.get<std::unique_ptr<Delivery>>();
  if (open != nullptr && (*open)->sink_ == sink) return open->get();
  // Before the next is opened, which may write to the same file.
  if (open != nullptr) open->reset();
  auto writer = sink->open(request);
  if (!writer) return std::move(writer).error();
  std::unique_ptr<Delivery> delivery(new Delivery(sink, *std::move(writer)));
  return call.set(std::move(delivery)).get();
}

Delivery* Delivery::begun(const Call& call) {
  auto* const open = call.get<std::unique_ptr<Delivery>>();
  return open == nullptr ? nullptr : open->get();
}

bool Delivery::can_retry() const {
  return have_ == 0 || writer_->restartable() || !version_.validator.empty();
}

void Delivery::reset_exchange() {
  held_ = asked_ = complete_ = false;
  skip_ = offset_ = 0;
  end_.reset();
  rest_ = Rest();
}

const Delivery::Rest& Delivery::ask(const Request& request) {
  reset_exchange();
  const bool same = url_.empty() || url_ == request.url();
  if (have_ == 0 || !same || (version_.validator.empty() && !guaranteed_)) return rest_;
  if (!can_be_continued(request)) return rest_;
  asked_ = true;
  rest_.range = "Range: bytes=" + std::to_string(have_) + "-";
  if (!version_.validator.empty()) rest_.if_range = "If-Range: " + version_.validator;
  return rest_;
}

Result<bool> Delivery::begin(const Request& request, const Response& head) {
  held_ = false;
  if (asked_ && head.status == 416) return end_with(head);
  if (asked_ && head.status == 304 && !has_condition(request)) {
    return cannot_continue("the server sent the status 304, although nothing asked for it");
  }
  if (!head.is_2xx() || request.method() == "HEAD") return false;
  if (hold_back_ && hold_back_->which(head.status, head.headers)) {
    held_ = true;
    return false;
  }
  if (!asked_) {
    if (auto error = unasked_part(request, head, !can_restart())) return *std::move(error);
  }
  auto begun = asked_ && head.status == 206 ? continue_with(head) : restart_with(head);
  if (!begun) return begun;
  offset_ = skip_ > 0 ? 0 : have_;
  url_ = request.url();
  guaranteed_ = false;
  if (!can_be_continued(request) || (head.status != 200 && !asked_)) version_.validator.clear();
  return true;
}

// Handles a 416: the server has no bytes after those that the writer has. Something else must prove
// that these are the whole body, because a shorter body may have replaced it.
Result<bool> Delivery::end_with(const Response& head) {
  const ContentRange range(head.headers);
  const auto different = version_.difference(head.headers);
  const bool known = guaranteed_ || version_.total == have_ || version_.proven_by(head.headers);
  const bool total_fits = version_.total.value_or(have_) == have_;
  complete_ = range.total == have_ && total_fits && known && different.empty();
  if (complete_) return true;
  return cannot_continue("the server has no bytes after them" + total_text(range));
}

Result<bool> Delivery::release(const Request& request, const Response& begun) {
  const auto rules = std::exchange(hold_back_, std::nullopt);
  if (!rules->is_good(begun)) return false;
  held_ = false;
  return begin(request, begun);
}

Result<bool> Delivery::continue_with(const Response& head) {
  const ContentRange range(head.headers);
  if (const auto what = version_.difference(head.headers); !what.empty()) {
    return cannot_continue("the body has changed: the server sent " + what);
  }
  if (range.first != have_ || head.headers.contains("Content-Encoding")) {
    return cannot_continue("the server was asked for the bytes from " + std::to_string(have_) +
                           " on, and sent other bytes (" + range.text() + ")");
  }
  const auto total = range.total ? range.total : version_.total;
  if (!total || *range.end > *total) {
    return cannot_continue("the server sent " + range.text() +
                           " and did not say where the body ends");
  }
  if (auto begun = writer_->begin(head, have_); !begun) return std::move(begun).error();
  // The version from the first response stays in force. If there was no such response, this is it.
  if (guaranteed_) version_ = BodyVersion(head.headers);
  version_.total = total;
  end_ = range.end;
  return true;
}

Result<bool> Delivery::restart_with(const Response& head) {
  if (!can_restart()) {
    const bool same = head.status == 200 && version_.proven_by(head.headers) &&
                      version_.difference(head.headers).empty();
    if (!same || head.headers.contains("Content-Encoding")) {
      return cannot_continue("the response has changed since its first part was received");
    }
    skip_ = have_;
    end_ = version_.total;
    return true;
  }
  have_ = 0;
  version_ = BodyVersion(head.headers);
  if (auto begun = writer_->begin(head, 0); !begun) return std::move(begun).error();
  return true;
}

bool Delivery::can_restart() const { return have_ == 0 || writer_->restartable(); }

// From now on attempts request the whole body, and so does the next call.
Error Delivery::cannot_continue(const std::string& why) {
  version_ = BodyVersion();
  guaranteed_ = false;
  writer_->forget();
  const bool restartable = writer_->restartable();
  return range_error("cannot continue after the first " + std::to_string(have_) + " bytes: " + why +
                         (restartable ? "; a retry asks for the whole body"
                                      : "; receive the body again from its beginning"),
                     !restartable);
}

Result<Wish> Delivery::write(std::string_view bytes) {
  if (complete_) return Wish::More;  // the body of a 416
  if (skip_ > 0) {
    const auto known = std::min<std::uint64_t>(skip_, bytes.size());
    skip_ -= known;
    bytes.remove_prefix(known);
    if (bytes.empty()) return Wish::More;
  }
  if (end_ && bytes.size() > *end_ - have_) {
    return cannot_continue("the server sent more bytes than it announced");
  }
  have_ += bytes.size();
  return writer_->write(bytes);
}

Result<void> Delivery::finish(Response& response) {
  if (skip_ > 0) return ends_early(have_ - skip_, version_.total.value_or(have_));
  if (end_ && have_ != *version_.total) return ends_early(have_, *version_.total);
  response.delivered = have_;
  auto finished = writer_->finish();
  finished_ = finished.has_value();
  if (complete_ && finished) response.status = 206;
  version_ = BodyVersion();  // no later attempt may append to it
  return finished;
}

Task<Outcome> Delivery::deliver(Request request, Call& call, Outcome outcome) {
  auto opened = of(request, call);
  if (!opened) co_return std::move(opened).error();
  auto* delivery = *opened;
  if (delivery == nullptr || !outcome) co_return outcome;
  if (auto* racing = Call::State::racing(call); racing != nullptr && !offer(*racing, *outcome)) {
    co_return outcome;
  }
  delivery->reset_exchange();
  Outcome delivered = co_await delivery->put(std::move(request), call, std::move(outcome));
  co_return delivered;
}

Task<Outcome> Delivery::deliver_judged(Request request, Call& call, Outcome outcome) {
  auto opened = of(request, call);
  if (!opened) co_return std::move(opened).error();
  (*opened)->hold_back_.reset();
  Outcome delivered = co_await (*opened)->put(std::move(request), call, std::move(outcome));
  co_return delivered;
}

Task<Outcome> Delivery::deliver_rest(Request request, Call& call, Outcome outcome) {
  if (!outcome || !outcome->is_2xx() || request.method() == "HEAD") co_return outcome;
  if (is_failure(*outcome, call.history())) co_return outcome;
  auto* before = begun(call);
  const bool finished = before != nullptr && before->finished_;
  if (finished && outcome->body.empty()) co_return outcome;
  if (finished) {
    co_return no_body_for_sink(request, *outcome,
                               "a middleware responded with a body after the sink got the one of "
                               "another response");
  }
  if (outcome->delivered > 0) {
    co_return no_body_for_sink(request, *outcome,
                               "the response of a middleware has no body: it went to the sink of "
                               "another call");
  }
  if (before != nullptr) before->reset_exchange();  // this body was not requested by range
  Outcome delivered = co_await deliver_judged(std::move(request), call, std::move(outcome));
  co_return delivered;
}

Task<Outcome> Delivery::put(Request request, Call& call, Outcome outcome) {
  const auto body = std::exchange(outcome->body, std::string());
  auto begun = begin(request, *outcome);
  if (!begun) co_return sink_failed(request, *outcome, std::move(begun).error());
  if (!*begun) {
    outcome->body = body;
    co_return outcome;
  }
  auto wish = write(body);
  if (wish && *wish != Wish::Stop) wish = co_await writer_->drain(call);
  if (!wish) co_return sink_failed(request, *outcome, std::move(wish).error());
  if (*wish == Wish::Stop) co_return sink_failed(request, *outcome, reader_stopped());
  auto done = finish(*outcome);
  if (!done) co_return sink_failed(request, *outcome, std::move(done).error());
  co_return outcome;
}

}  // namespace httpretry
