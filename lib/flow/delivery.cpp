#include "call_state.hpp"

#include "lib/http/text.hpp"

#include <httpretry/retry/server_delay.hpp>

#include <algorithm>

namespace httpretry {
namespace {

using Wish = BodyWriter::Wish;

bool is_strong(std::string_view etag) { return etag.starts_with('"'); }

// The validator for If-Range (RFC 9110 §13.1.5): a strong ETag, or a Last-Modified that is a strong
// validator (§8.8.2.2).
std::string validator_of(const Headers& headers) {
  if (const auto etag = headers.get("ETag"); etag && is_strong(*etag)) return std::string(*etag);
  const auto modified = headers.get("Last-Modified");
  const auto date = headers.get("Date");
  if (!modified || !date) return {};
  const auto now = WallTime();
  const auto changed = parse_http_date(*modified, now);
  const auto sent = parse_http_date(*date, now);
  const bool strong = changed && sent && *changed < *sent;
  return strong ? std::string(*modified) : std::string();
}

// "bytes 100-199/200", "bytes */200", "bytes 100-199/*".
struct ContentRange {
  std::optional<std::uint64_t> first;
  std::optional<std::uint64_t> total;
};

ContentRange content_range(const Headers& headers) {
  ContentRange range;
  auto text = headers.get("Content-Range").value_or("");
  const auto slash = text.find('/');
  if (!text.starts_with("bytes ") || slash == std::string_view::npos) return range;
  range.total = to_number<std::uint64_t>(text.substr(slash + 1));
  const auto dash = std::min(text.find('-'), slash);
  range.first = to_number<std::uint64_t>(text.substr(6, dash - 6));
  return range;
}

bool can_be_resumed(const Request& request, const Headers& headers) {
  return request.method() == "GET" && !request.headers().contains("Range") &&
         !headers.contains("Content-Encoding") && headers.get("Accept-Ranges") != "none";
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
  validator_ = had->validator;
  guaranteed_ = had->validator.empty();
}

Result<Delivery*> Delivery::of(const Request& request, Call& call) {
  const auto& sink = request.options().sink;
  if (!sink) return static_cast<Delivery*>(nullptr);
  auto& delivery = Call::State::of(call).delivery;
  if (delivery && delivery->sink_ == sink) return delivery.get();
  delivery.reset();  // before opening the next, which may be for the same file
  auto writer = sink->open(request);
  if (!writer) return std::move(writer).error();
  delivery.reset(new Delivery(sink, *std::move(writer)));
  return delivery.get();
}

Delivery* Delivery::begun(const Call& call) { return Call::State::of(call).delivery.get(); }

bool Delivery::can_retry() const {
  return have_ == 0 || writer_->restartable() || !validator_.empty();
}

const Delivery::Rest& Delivery::ask(const Request& request) {
  held_ = asked_ = complete_ = false;
  skip_ = 0;
  const bool same = url_.empty() || url_ == request.url();
  rest_ = Rest();
  if (have_ == 0 || !same || (validator_.empty() && !guaranteed_)) return rest_;
  if (!can_be_resumed(request, Headers())) return rest_;
  asked_ = true;
  rest_.range = "Range: bytes=" + std::to_string(have_) + "-";
  if (!validator_.empty()) rest_.if_range = "If-Range: " + validator_;
  return rest_;
}

Result<bool> Delivery::begin(const Request& request, const Response& head) {
  // 416, and the size is what the writer has: it already has the whole body.
  complete_ = asked_ && head.status == 416 && content_range(head.headers).total == have_;
  if (complete_) return true;
  if (!head.ok() || request.method() == "HEAD") return false;
  if (hold_back_ && hold_back_->which(head.status, head.headers)) {
    held_ = true;
    return false;
  }
  auto begun = asked_ && head.status == 206 ? continue_with(head) : restart_with(head);
  if (!begun) return begun;
  url_ = request.url();
  guaranteed_ = false;
  const bool resumable = (head.status == 200 || asked_) && can_be_resumed(request, head.headers);
  validator_ = resumable ? validator_of(head.headers) : std::string();
  return true;
}

Result<bool> Delivery::release(const Request& request, const Response& begun) {
  const auto rules = std::exchange(hold_back_, std::nullopt);
  if (!rules->is_good(begun)) return false;
  held_ = false;
  return begin(request, begun);
}

Result<bool> Delivery::continue_with(const Response& head) {
  const auto range = content_range(head.headers);
  const auto etag = head.headers.get("ETag");
  const bool changed = etag && is_strong(validator_) && *etag != validator_;
  if (changed || range.first != have_ || head.headers.contains("Content-Encoding")) {
    validator_.clear();  // so that the next attempt asks for the whole body
    guaranteed_ = false;
    Error error(Errc::Protocol, "the server was asked for the bytes from " + std::to_string(have_) +
                                    " on, and sent other bytes");
    error.permanent = !writer_->restartable();
    return error;
  }
  total_ = range.total;
  if (auto begun = writer_->begin(head, have_); !begun) return std::move(begun).error();
  return true;
}

Result<bool> Delivery::restart_with(const Response& head) {
  total_.reset();
  if (have_ > 0 && !writer_->restartable()) {
    const bool same =
        head.status == 200 && is_strong(validator_) && head.headers.get("ETag") == validator_;
    if (!same || head.headers.contains("Content-Encoding")) {
      Error error(Errc::Protocol, "the response has changed since its first part was received");
      error.permanent = true;
      return error;
    }
    skip_ = have_;
    return true;
  }
  have_ = 0;
  if (auto begun = writer_->begin(head, 0); !begun) return std::move(begun).error();
  return true;
}

Result<Wish> Delivery::write(std::string_view bytes) {
  if (complete_) return Wish::More;  // the body of a 416
  if (skip_ > 0) {
    const auto known = std::min<std::uint64_t>(skip_, bytes.size());
    skip_ -= known;
    bytes.remove_prefix(known);
    if (bytes.empty()) return Wish::More;
  }
  have_ += bytes.size();
  return writer_->write(bytes);
}

Result<void> Delivery::finish(Response& response) {
  if (skip_ > 0 || (total_ && *total_ != have_)) {
    Error error(Errc::Receive, "the body of the response ends early: " + std::to_string(have_) +
                                   " bytes of " + std::to_string(total_.value_or(have_ + skip_)));
    error.partial = true;
    error.curl_code = 18;  // CURLE_PARTIAL_FILE
    return error;
  }
  response.delivered = have_;
  auto finished = writer_->finish();
  if (complete_ && finished) response.status = 206;
  validator_.clear();  // no later attempt may append to it
  return finished;
}

Task<Outcome> Delivery::deliver(Request request, Call& call, Outcome outcome) {
  auto opened = of(request, call);
  if (!opened) co_return std::move(opened).error();
  auto* delivery = *opened;
  if (delivery == nullptr || !outcome) co_return outcome;
  delivery->hold_back_.reset();
  const auto body = std::exchange(outcome->body, std::string());
  auto begun = delivery->begin(request, *outcome);
  if (!begun) co_return sink_failed(request, *outcome, std::move(begun).error());
  if (!*begun) {
    outcome->body = body;
    co_return outcome;
  }
  auto wish = delivery->write(body);
  if (wish && *wish == Wish::Pause) wish = co_await delivery->drain(call);
  if (!wish) co_return sink_failed(request, *outcome, std::move(wish).error());
  if (*wish == Wish::Stop) co_return sink_failed(request, *outcome, reader_stopped());
  auto finished = delivery->finish(*outcome);
  if (!finished) co_return sink_failed(request, *outcome, std::move(finished).error());
  co_return outcome;
}

}  // namespace httpretry
