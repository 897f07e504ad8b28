#include "transfer.hpp"

#include "lib/core/chain/detail/call_state.hpp"

#include <algorithm>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace httpretry {
namespace {

// ABORTED_BY_CALLBACK: Loop::on_socket returned -1, because the system had no memory to watch a
// socket. libcurl 8.23 returns it from curl_multi_add_handle as well.
bool lacked_memory(CURLMcode code) {
  return code == CURLM_OUT_OF_MEMORY || code == CURLM_ABORTED_BY_CALLBACK;
}

// The name in messages for whatever throws in a callback, other than std::bad_alloc.
constexpr char kSink[] = "the sink of the body";

// libcurl 8 waits for the end of an HTTP/2 stream even if the whole body has arrived. Some servers
// never send it, so we wait for it only this long.
constexpr Duration kStreamEnd = std::chrono::milliseconds(200);

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
      reader_(request, loop.options(), delivery, Call::State::racing(call), abort_),
      upload_(request.body(), abort_) {}

Transfer::~Transfer() {
  if (running_) {
    awaiter_ = nullptr;
    end(Abort::Canceled);
  }
  if (easy_) easy_->transfer = nullptr;  // libcurl may call back when it frees the handle
}

Result<void> Transfer::start(const std::string* addresses, bool fresh) {
  started_ = last_byte_ = loop_.now();
  try {
    if (stop_requested()) {
      abort_.set(Abort::Canceled);
    } else if (call_.deadline() <= started_) {
      abort_.set(Abort::NoTimeLeft);
    } else if (auto prepared = prepare(addresses, fresh); !prepared) {
      return prepared;
    } else {
      running_ = true;
      set_timer();
      if (options_.on_progress && !progressed(0)) end(abort_.why());
    }
  } catch (const std::bad_alloc&) {
    abort_.set(Abort::NoMemory);
    end(Abort::NoMemory);
  } catch (const std::system_error& lack) {
    return Error(Errc::LocalShortage,
                 "the request cannot begin: " + system_text(lack.code().value()));
  } catch (const std::runtime_error& refused) {  // libcurl refuses an option that the request needs
    return failure_of(CURLE_NOT_BUILT_IN, refused.what());
  }
  return {};
}

Result<void> Transfer::prepare(const std::string* addresses, bool fresh) {
  const auto& origin = loop_.origin(url_);
  auto& plan = plan_;
  plan = make_send_plan(request_, limits_, url_, call_, loop_.options(), origin);
  plan.addresses = addresses;
  plan.fresh_connection = plan.fresh_connection || fresh;
  if (auto checked = check_sendable(request_, loop_.options(), plan); !checked) return checked;
  if (auto checked = loop_.check_ip_version(url_); !checked) return checked;
  if (delivery_ != nullptr) {
    const auto& rest = delivery_->ask(request_);
    if (!rest.range.empty()) plan.range = rest.range.c_str();
    if (!rest.if_range.empty()) plan.if_range = rest.if_range.c_str();
  }
  if (request_.body().present() && request_.body().bytes() == nullptr) {
    if (auto opened = upload_.open(); !opened) return opened;
    plan.streamed_body = true;
  }
  if (const auto size = upload_.size()) plan.body_size = static_cast<std::int64_t>(*size);
  easy_ = loop_.take_easy();
  easy_->transfer = this;
  easy_->prepare(request_, url_, plan);
  begin_waiting();
  const auto refusal = loop_.start(*this, plan);
  if (refusal == CURLM_OK) return {};
  return Error(lacked_memory(refusal) ? Errc::LocalShortage : Errc::Internal,
               std::string("libcurl refused the transfer: ") + curl_multi_strerror(refusal));
}

void Transfer::go_on(Result<BodyWriter::Wish> drained) {
  reader_.paused = false;
  if (!drained) {
    reader_.sink_failed(std::move(drained).error());
  } else if (running_ && *drained == BodyWriter::Wish::Stop) {
    reader_.sink_failed(reader_stopped());
  }
  if (!running_) return;
  if (!abort_.none()) return end(abort_.why());
  last_byte_ = loop_.now();
  set_timer();
  if (!reader_.has_rest()) resume_curl();
}

void Transfer::set_timer() {
  auto next = limit();
  if (sends_from_memory()) {
    const auto look =
        std::max<Duration>(limits_.response_timeout / 8, std::chrono::milliseconds(1));
    next = std::min(next, later(loop_.now(), look));
  }
  loop_.timers().set(*this, next);
}

// libcurl sends a body from memory without a callback. response_timeout counts from the last part
// that was sent, so the timer looks at the progress from time to time.
bool Transfer::sends_from_memory() const {
  return limits_.response_timeout != kForever && !sends_.answered && !plan_.streamed_body &&
         std::cmp_less(seen_sent_, plan_.body_size);
}

Time Transfer::limit() const {
  if (reader_.paused) return call_.deadline();
  if (stream_may_end_ && !curl_done_)
    return std::min(call_.deadline(), later(last_byte_, kStreamEnd));
  const bool headers_done = sends_.answered && !reader_.in_headers;
  auto pause = headers_done ? limits_.stall_timeout : limits_.response_timeout;
  if (upload_.paused) pause = kForever;  // the server may be waiting for us
  auto since = last_byte_;
  if (!headers_done && options_.upload_rate) {
    // libcurl 8.23 sends the amount that `upload_rate` allows per second at once, and then receives
    // nothing until that second is over.
    const auto sent = static_cast<double>(std::max(upload_.given, seen_sent_));
    const std::chrono::duration<double> takes(sent / static_cast<double>(*options_.upload_rate));
    since = std::max(since, later(started_, std::chrono::duration_cast<Duration>(takes)));
  }
  const auto soonest = std::min(call_.deadline(), later(since, pause));
  return headers_done ? soonest : std::min(soonest, limits_.respond_by);
}

// Received bytes only postpone the limit. So the timer is set again when it fires, not for each
// byte.
void Transfer::due() {
  if (sends_from_memory()) {
    const auto sent = sent_bytes();
    if (sent != std::exchange(seen_sent_, sent)) last_byte_ = loop_.now();
  }
  if (limit() > loop_.now()) {
    // The upload waits for more of the body, but the final headers have arrived or the body was
    // rewound.
    if (wants_body() && upload_.rewound) {
      body_over_.request_stop();
    } else if (wants_body() && sends_.answered) {
      unpause();
    }
    if (running_) set_timer();
    return;
  }
  if (stream_may_end_ && !curl_done_) {
    plan_.private_handle = true;
    loop_.remove(*this);
    return on_finished(CURLE_OK);
  }
  end(sends_.answered ? Abort::ResponseIncomplete : Abort::NoResponse);
}

void Transfer::end(Abort why) {
  if (!running_) return;  // it has ended in this turn of the loop
  abort_.set(why);
  if (!curl_done_) loop_.remove(*this);
  conclude();
}

void Transfer::on_finished(CURLcode code) {
  // `about_to_send` stopped a resend after a 417 to a body that cannot be sent again. The 417 is
  // the response.
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
  look_at_connection();
  if (code_ != CURLE_OK) judge_failure();
  conclude_if_done();
}

void Transfer::conclude() {
  running_ = false;
  set_curl_paused(false);
  body_over_.request_stop();
  loop_.timers().remove(*this);
  std::erase(loop_.decoding, this);
  if (std::exchange(doubtful_, false)) std::erase(shard->doubtful, this);
  resume_awaiter();
}

void Transfer::on_multi_failed(CURLMcode code) {
  if (lacked_memory(code)) abort_.set(Abort::NoMemory);
  on_finished(CURLE_RECV_ERROR);
}

bool Transfer::about_to_send(int local_port) noexcept {
  loop_.progress(connection_.get());
  if (is_flooded()) return abort_.set(flood_reason());
  const bool reuses = info<long>(handle(), CURLINFO_NUM_CONNECTS) == 0;
  const bool used = sends_.sends == 0 ? reuses : local_port == sends_.local_port;
  if (used && sends_.may_send() && has_unread(local_port)) return abort_.set(Abort::Unread);
  if (!sends_.about_to_send(reuses, local_port)) {
    if (reader_.response.status == 417 && sends_.answered) return false;  // the 417 is the response
    return abort_.set(refused_ ? Abort::StreamRefused : Abort::ConnectionDied);
  }
  reader_.awaits_block = true;
  reader_.response.status = 0;
  if (sends_.sends > 1) return true;
  --shard->connecting;
  // A connection that is known to speak HTTP/1 need not be watched, which saves 8 000 instructions.
  if (!plan_.may_multiplex) return true;
  if (sends_.reused && loop_.sockets.is_http1(local_port)) return true;
  return abort_.guard(CURLE_OUT_OF_MEMORY, "watching the connection", [this] {
    // From here on libcurl's log reports what happens to the connection. If each connection is
    // closed after its exchange, a close means nothing.
    if (!easy_->closes_connection) easy_->set(CURLOPT_VERBOSE, 1L);
    connection_ = loop_.watch_connection(sends_.local_port);
    return true;
  });
}

bool Transfer::header_line(std::string_view line) noexcept {
  loop_.progress(connection_.get());
  return abort_.guard(CURLE_WRITE_ERROR, kSink, [&] {
    const bool within = reader_.in_headers;
    if (!reader_.header_line(line)) return false;
    return !within || reader_.in_headers || end_of_headers();
  });
}

bool Transfer::end_of_headers() {
  const auto status = info<long>(handle(), CURLINFO_RESPONSE_CODE);
  const auto of_proxy = status == 0 ? info<long>(handle(), CURLINFO_HTTP_CONNECTCODE) : 0;
  // A proxy's response to CONNECT, either before the request was sent or before libcurl sends it
  // again.
  if (sends_.sends == 0 || (of_proxy != 0 && of_proxy == reader_.response.status)) {
    return reader_.keep_proxy_block();
  }
  if (!reader_.check_block(status)) return false;
  if (status < 200) return true;
  if (connection_ && reader_.response.http_version != "2") {
    loop_.found_http1(sends_.local_port);
    connection_.reset();
  }
  last_byte_ = loop_.now();
  sends_.response_came(reader_.response.status, leaves_body_out());
  // Abort, so that the connection is closed: the server may take the next bytes for the body.
  // libcurl would reuse the connection, and would send our Expect header again.
  if (status == 417 && easy_->expects && request_.body().replayable()) {
    return abort_.set(Abort::ExpectRefused);
  }
  set_timer();  // different limits apply from here on
  // After an error status libcurl sends no more of the body, but notices that only when it may
  // send. So the timer unpauses it.
  if (upload_.paused) loop_.timers().set(*this, started_);
  if (sends_.body_left_out) return true;  // this is not the response to the whole request
  if (auto* const watch = Call::State::watch(call_)) (*watch)(reader_.response);
  return reader_.begin_response();
}

std::size_t Transfer::body_bytes(std::string_view bytes) noexcept {
  loop_.progress(connection_.get());
  if (reader_.paused || reader_.has_rest()) {
    set_curl_paused(true);
    return CURL_WRITEFUNC_PAUSE;
  }
  last_byte_ = loop_.now();
  if (sends_.body_left_out) {  // libcurl takes it for the response and sends nothing more
    abort_.set(Abort::BodyLeftOut);
    return CURL_WRITEFUNC_ERROR;
  }
  const bool taken = abort_.guard(CURLE_WRITE_ERROR, kSink, [&] {
    if (!reader_.body_begun && !reader_.begin_body(announced_length())) return false;
    if (!reader_.body_bytes(bytes, loop_.decode_budget)) return false;
    // The bytes count as taken even if some are not decoded yet. If libcurl kept them, it would
    // deliver all of them again.
    if (reader_.has_rest()) loop_.decoding.push_back(this);
    if (reader_.response.http_version == "2" && is_complete() && plan_.body_size >= 0 &&
        std::cmp_greater_equal(sent_bytes(), plan_.body_size)) {
      stream_may_end_ = true;
      set_timer();
    }
    return true;
  });
  if (!taken) return CURL_WRITEFUNC_ERROR;
  if (reader_.paused) {
    set_timer();  // the wait for the sink is not a wait for the server
    resume_awaiter();
  }
  return bytes.size();
}

void Transfer::decode_rest() noexcept {
  if (reader_.paused) return;
  last_byte_ = loop_.now();
  abort_.guard(CURLE_WRITE_ERROR, kSink,
               [this] { return reader_.decode_rest(loop_.decode_budget); });
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
