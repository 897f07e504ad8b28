#include "transfer.hpp"

#include "lib/core/chain/detail/call_state.hpp"

#include <algorithm>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace httpretry {
namespace {

// Returns whether libcurl failed because memory was lacking. ABORTED_BY_CALLBACK means that
// Loop::on_socket returned -1, because the system had no memory to watch a socket. libcurl 8.23
// returns it from curl_multi_add_handle as well.
bool lacked_memory(CURLMcode code) {
  return code == CURLM_OUT_OF_MEMORY || code == CURLM_ABORTED_BY_CALLBACK;
}

// The name in messages for whatever throws in a callback, other than std::bad_alloc.
constexpr char kSink[] = "the sink of the body";
constexpr char kClassify[] = "the classification of the response";

// libcurl 8 waits for the end of an HTTP/2 stream even if the whole body has arrived. Some servers
// never send it, so we wait for it only this long.
constexpr Duration kStreamEnd = std::chrono::milliseconds(200);

// How long the body of a response that will be retried is received: mostly it is short, and its
// connection can then be used again.
constexpr Duration kRetriedBody = std::chrono::seconds(3);

}  // namespace

Transfer::Transfer(Loop& loop, const Request& request, const Call& call, Delivery* delivery)
    : CancelableWait(loop, Call::State::own_stop(call)),
      loop_(loop),
      request_(request),
      url_(*request.parsed_url()),
      call_(call),
      delivery_(delivery),
      options_(request.options()),
      limits_(call.limits(request)),
      reader_(request, loop.options(), delivery, Call::State::current_attempt(call),
              Call::State::racing(call), abort_),
      upload_(request.body(), abort_) {}

Transfer::~Transfer() {
  if (running_) {
    awaiter_ = nullptr;
    end(Abort::Canceled);
  }
  if (easy_) easy_->transfer = nullptr;  // libcurl may call back when it frees the handle
}

// Begins the exchange: prepares a libcurl handle and gives it to libcurl. Returns an error if the
// request cannot be sent; that error is the outcome of the exchange. If the call was canceled, its
// deadline has passed, or memory is lacking, the return value is no error: `abort_` has the reason,
// the transfer does not run, and `outcome` makes the error.
Result<void> Transfer::start(const std::string* addresses, Pooling pool) {
  started_ = last_byte_ = loop_.now();
  try {
    if (stop_requested()) {
      abort_.set(Abort::Canceled);
    } else if (call_.deadline() <= started_) {
      abort_.set(Abort::NoTimeLeft);
    } else if (auto prepared = prepare(addresses, pool); !prepared) {
      return prepared;
    } else {
      running_ = true;
      set_timer();
      // Shows the user's callback the sizes while nothing is sent yet. The callback may throw.
      if (options_.on_progress && !report_progress()) end(abort_.why());
    }
  } catch (const std::bad_alloc&) {
    abort_.set(Abort::NoMemory);  // because `end` does nothing unless the transfer is running
    end(Abort::NoMemory);
  } catch (const std::system_error& shortage) {
    return Error(Errc::LocalShortage,
                 "the request cannot begin: " + system_text(shortage.code().value()));
  } catch (const std::runtime_error& refusal) {  // libcurl refuses an option that the request needs
    return failure_of(CURLE_NOT_BUILT_IN, refusal.what());
  }
  return {};
}

// Decides how to send the request (`plan_`), sets the options of an easy handle and gives the
// handle to libcurl, which then connects and sends. `addresses` are those of the host, or nullptr
// if libcurl knows them. Returns an error if the request cannot be sent as it is, or if libcurl
// refuses it.
Result<void> Transfer::prepare(const std::string* addresses, Pooling pool) {
  plan_ = plan_send(request_, limits_, url_, call_, loop_.options(), loop_.origin(url_));
  plan_.addresses = addresses;
  if (pool == Pooling::Forbidden) plan_.fresh_connection = true;
  if (auto checked = check_sendable(request_, loop_.options(), plan_); !checked) return checked;
  if (auto checked = loop_.check_ip_version(url_); !checked) return checked;
  if (delivery_ != nullptr) {
    // Asks for the rest if the sink already has the first bytes. `plan_` points to the header
    // lines, which `delivery_` keeps until its next exchange begins.
    const auto& rest = delivery_->request_rest(request_);
    if (!rest.range.empty()) plan_.range = rest.range.c_str();
    if (!rest.if_range.empty()) plan_.if_range = rest.if_range.c_str();
  }
  // `bytes` returns nullptr for a body that is not in memory.
  plan_.streamed_body = request_.body().present() && request_.body().bytes() == nullptr;
  if (plan_.streamed_body) {
    if (auto opened = upload_.open(); !opened) return opened;
  }
  // If the size is unknown, `body_size` stays -1.
  if (const auto size = upload_.size()) plan_.body_size = static_cast<std::int64_t>(*size);
  easy_ = loop_.acquire_easy();
  easy_->transfer = this;  // receives the callbacks of the handle
  easy_->prepare(request_, url_, plan_);
  begin_waiting();  // from here on, the end of the call cancels this transfer
  const auto refusal = loop_.start(*this, plan_);
  if (refusal == CURLM_OK) return {};
  return Error(lacked_memory(refusal) ? Errc::LocalShortage : Errc::Internal,
               std::string("libcurl refused the transfer: ") + curl_multi_strerror(refusal));
}

// Continues the transfer after the sink was drained, or ends it if the sink failed or wants no
// more.
void Transfer::on_drained(Result<BodyWriter::Wish> drained) {
  reader_.paused = false;
  if (!drained) {
    reader_.sink_failed(std::move(drained).error());
  } else if (running_ && *drained == BodyWriter::Wish::Stop) {
    reader_.sink_failed(reader_stopped());
  }
  if (!running_) return;  // it ended while the sink was drained
  if (!abort_.none()) return end(abort_.why());
  last_byte_ = loop_.now();
  set_timer();
  if (!reader_.has_rest()) resume_curl();  // otherwise decode_rest resumes it
}

// Sets the timer to the time limit, or earlier if the progress of the upload must be polled.
void Transfer::set_timer() {
  auto next = time_limit();
  if (must_poll_upload()) {
    const auto interval =
        std::max<Duration>(limits_.response_timeout / 8, std::chrono::milliseconds(1));
    next = std::min(next, later(loop_.now(), interval));
  }
  loop_.timers().set(*this, next);
}

// Returns whether the timer must check from time to time how much of the body is sent. libcurl
// sends a body from memory without a callback, and response_timeout counts from the last part sent.
bool Transfer::must_poll_upload() const {
  return limits_.response_timeout != kForever && !sends_.answered && !plan_.streamed_body &&
         std::cmp_less(polled_sent_, plan_.body_size);
}

// Returns when `due` must act if no other byte is sent or received by then: when the transfer times
// out, or earlier, when `due` must check whether the rest of a failure is needed.
Time Transfer::time_limit() const {
  // Waiting for the sink is not the server's fault, so only the deadline of the call counts.
  if (reader_.paused) return call_.deadline();
  // The response is complete, but some servers never end its HTTP/2 stream.
  if (awaits_stream_end_ && !curl_done_)
    return std::min(call_.deadline(), later(last_byte_, kStreamEnd));
  const bool headers_done = sends_.answered && !reader_.in_headers;
  auto timeout = headers_done ? limits_.stall_timeout : limits_.response_timeout;
  if (upload_.paused) timeout = kForever;  // the server may be waiting for our body
  auto reference = last_byte_;             // the timeout counts from here
  if (!headers_done && options_.upload_rate.value_or(0) > 0) {
    // libcurl 8.23 sends the amount that `upload_rate` allows per second at once, and then receives
    // nothing until that second is over. So the timeout counts from the end of that time.
    const auto sent = static_cast<double>(plan_.streamed_body ? upload_.given : polled_sent_);
    const std::chrono::duration<double> needed(sent / static_cast<double>(*options_.upload_rate));
    reference = std::max(reference, later(started_, Duration(needed)));
  }
  const auto limit = std::min(call_.deadline(), later(reference, timeout));
  // `respond_by` is the deadline for the headers of a success, whose body may take longer. For a
  // failure it includes the body. `check_rest_at_` is set only for a failure.
  const bool is_success = headers_done && !reader_.head_suffices();
  return is_success ? limit : std::min({limit, limits_.respond_by, check_rest_at_});
}

// Called when the timer fires, which is at the time limit or earlier. Ends the transfer if the
// limit has passed. Received bytes postpone the limit but do not set the timer, because that
// would happen too often; so here the timer is set to the limit that applies now.
void Transfer::due() {
  if (must_poll_upload()) {  // libcurl does not report how it sends a body from memory
    const auto sent = sent_bytes();
    // Sent bytes postpone the limit as well.
    if (sent != std::exchange(polled_sent_, sent)) last_byte_ = loop_.now();
  }
  // The rest of a failure takes long. If the response will be retried, the rest is of no use, and
  // check_need_for_rest sets that as the reason to end. Otherwise the transfer goes on, and this is
  // not checked again.
  if (sends_.answered && check_rest_at_ <= loop_.now()) {
    check_rest_at_ = kNever;
    abort_.guard(CURLE_WRITE_ERROR, kClassify, [this] { return reader_.check_need_for_rest(); });
    if (!abort_.none()) return end(abort_.why());
  }
  if (time_limit() > loop_.now()) {
    // While the upload waits for more of the body, two functions set the timer to fire at once.
    if (upload_waits() && upload_.rewound) {
      // Set by rewind_body, because the body begins again and the awaited part is of no use.
      body_over_.request_stop();  // ends the wait
    } else if (upload_waits() && sends_.answered) {
      // Set by end_of_final_headers, because libcurl must run to notice that it need not send the
      // rest.
      unpause();
    }
    if (running_) set_timer();  // `unpause` ends the transfer if libcurl fails
    return;
  }
  if (awaits_stream_end_ && !curl_done_) {
    // The whole response has arrived, so this is a success. But libcurl has not finished the
    // stream, so the handle must not be reused.
    plan_.private_handle = true;
    loop_.remove(*this);
    return on_finished(CURLE_OK);
  }
  end(sends_.answered ? Abort::ResponseIncomplete : Abort::NoResponse);  // it timed out
}

// Ends the transfer for this reason, or for the one that is already set.
void Transfer::end(Abort why) {
  if (!running_) return;  // it has ended in this turn of the loop
  abort_.set(why);
  if (!curl_done_) loop_.remove(*this);
  conclude();
}

// Handles libcurl's result: decides whether it is a success, and ends the exchange unless bytes
// must still be decoded or the connection must be probed.
void Transfer::on_finished(CURLcode code) {
  // `about_to_send` stopped a resend after a 417 without setting a reason, because the body cannot
  // be sent again. So the 417 is the response.
  if (code == CURLE_ABORTED_BY_CALLBACK && abort_.none()) {
    code = CURLE_OK;
    plan_.private_handle = true;
  }
  // Without a final response, libcurl's success is a failure.
  if (code == CURLE_OK && !sends_.answered) code = CURLE_GOT_NOTHING;
  code_ = code;
  curl_done_ = true;
  if (code != CURLE_OK && is_flooded()) abort_.set(flood_reason());
  if (!abort_.none()) return conclude();
  check_connection();  // may begin a probe; conclude_if_done then leaves the end to confirm_end
  if (code_ != CURLE_OK) reinterpret_failure();
  conclude_if_done();
}

// Resumes the coroutine that awaits the transfer, for the last time, and leaves all lists.
void Transfer::conclude() {
  running_ = false;
  set_curl_paused(false);
  body_over_.request_stop();
  loop_.timers().remove(*this);
  std::erase(loop_.decoding, this);
  if (std::exchange(unconfirmed_, false)) std::erase(shard->unconfirmed, this);
  resume_awaiter();
}

void Transfer::on_multi_failed(CURLMcode code) {
  if (lacked_memory(code)) abort_.set(Abort::NoMemory);
  on_finished(CURLE_RECV_ERROR);
}

bool Transfer::header_line(std::string_view line) noexcept {
  loop_.progress(connection_.get());
  return abort_.guard(CURLE_WRITE_ERROR, kSink, [&] {
    const bool was_in_headers = reader_.in_headers;
    if (!reader_.header_line(line)) return false;
    const bool block_ended = was_in_headers && !reader_.in_headers;
    return !block_ended || end_of_headers();
  });
}

// Handles the end of a header block: that of a proxy's response to CONNECT, of an interim response
// (1xx), or of a final response, whose body comes next. Returns false to make libcurl abort the
// transfer; the reason is then in `abort_`, whose `set` always returns false.
bool Transfer::end_of_headers() {
  // The status is 0 while only a proxy has responded.
  const auto status = info<long>(handle(), CURLINFO_RESPONSE_CODE);
  const auto proxy_status = status == 0 ? info<long>(handle(), CURLINFO_HTTP_CONNECTCODE) : 0;
  // The block is a proxy's, either before the request was sent or before libcurl sends it again.
  if (sends_.sends == 0 || (proxy_status != 0 && proxy_status == reader_.response.status)) {
    return reader_.keep_proxy_block();
  }
  if (!reader_.check_block(status)) return false;
  const bool is_interim = status < 200;  // a final response will follow
  return is_interim || end_of_final_headers();
}

// Handles the headers of a final response: sets the time limits for its body, and decides where the
// body goes. Returns false to abort, with the reason in `abort_`.
bool Transfer::end_of_final_headers() {
  const int status = reader_.response.status;
  if (connection_ && reader_.response.http_version != "2") {
    loop_.found_http1(sends_.local_port);  // so the watchdog need not watch the connection
    connection_.reset();
  }
  last_byte_ = loop_.now();
  sends_.response_came(status, leaves_body_out());  // sets `body_left_out`
  // The server refused our "Expect: 100-continue", so Loop::exchange will send the request without
  // Expect. The abort makes libcurl close the connection, because the server may take the next
  // bytes for the body. libcurl itself would reuse the connection, and would send Expect again.
  if (status == 417 && easy_->expects && request_.body().replayable()) {
    return abort_.set(Abort::ExpectRefused);
  }
  // The body of a failure (`head_suffices`) is of no use if the response will be retried. `due`
  // checks that if the body takes longer than kRetriedBody (3 s), and then ends the transfer.
  check_rest_at_ = reader_.head_suffices() ? later(loop_.now(), kRetriedBody) : kNever;
  // If a HEAD has a body itself, libcurl waits for the body that the response announces, which
  // never comes. So the time limit is short.
  awaits_stream_end_ = request_.method() == "HEAD" && request_.body().present();
  set_timer();  // different limits apply from here on
  // After an error status libcurl sends no more of the body, but notices that only when it runs. A
  // time in the past makes the timer fire at once; `due` then unpauses libcurl.
  if (upload_.paused) loop_.timers().set(*this, started_);
  // The request went out without its body, to get a challenge. libcurl may send it again with the
  // body; until then there is no response to the whole request.
  if (sends_.body_left_out) return true;
  // A middleware may want to know of the final headers before the body arrives.
  if (auto* const watch = Call::State::watch(call_)) (*watch)(reader_.response);
  return reader_.begin_response();  // decides whether the body stays in memory
}

// Takes bytes of the response's body from libcurl. Returns their number, CURL_WRITEFUNC_PAUSE if
// libcurl must deliver them again later, or CURL_WRITEFUNC_ERROR to abort, with the reason in
// `abort_`.
std::size_t Transfer::body_bytes(std::string_view bytes) noexcept {
  loop_.progress(connection_.get());  // shows the watchdog thread that libcurl is not stuck
  // First the sink must be drained, or the earlier bytes must be decoded.
  if (reader_.paused || reader_.has_rest()) {
    set_curl_paused(true);
    return CURL_WRITEFUNC_PAUSE;
  }
  last_byte_ = loop_.now();
  // libcurl has sent the request without its body, to get an authentication challenge (a 401). It
  // would discard the body of a challenge. So these bytes show that it takes this response for the
  // final one, and will not send the request again with its body.
  if (sends_.body_left_out) {
    abort_.set(Abort::BodyLeftOut);
    return CURL_WRITEFUNC_ERROR;
  }
  const bool accepted = abort_.guard(CURLE_WRITE_ERROR, kSink, [&] {
    if (!reader_.body_begun && !reader_.begin_body(announced_length())) return false;
    if (!reader_.body_bytes(bytes, loop_.decode_budget)) return false;
    // The reader has copied the bytes that it could not decode yet, and the loop decodes them in
    // its next iterations.
    if (reader_.has_rest()) loop_.decoding.push_back(this);
    // If the whole response has arrived over HTTP/2 and the whole request is sent, only the end of
    // the stream is missing. Some servers never send it, so time_limit is short from here on. (A
    // body of unknown size, -1, never counts as sent.)
    if (reader_.response.http_version == "2" && is_complete() && plan_.body_size >= 0 &&
        std::cmp_greater_equal(sent_bytes(), plan_.body_size)) {
      awaits_stream_end_ = true;
      set_timer();
    }
    return true;
  });
  if (!accepted) return CURL_WRITEFUNC_ERROR;
  if (reader_.paused) {  // the coroutine that awaits this transfer drains the sink
    set_timer();         // the wait for the sink is not a wait for the server
    resume_awaiter();
  }
  return bytes.size();
}

// Decodes more of the received bytes, as far as the loop's budget allows. If none are left, ends
// the exchange or lets libcurl deliver more.
void Transfer::decode_rest() noexcept {
  if (reader_.paused) return;
  last_byte_ = loop_.now();
  abort_.guard(CURLE_WRITE_ERROR, kSink, [&] { return reader_.decode_rest(loop_.decode_budget); });
  if (!abort_.none()) return end(abort_.why());
  if (reader_.paused) {
    set_timer();
    resume_awaiter();
  }
  if (reader_.has_rest()) return;
  std::erase(loop_.decoding, this);
  if (curl_done_) return conclude_if_done();
  if (!reader_.paused) resume_curl();
}

}  // namespace httpretry
