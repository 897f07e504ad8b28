#include "transfer.hpp"

#include <algorithm>

namespace httpretry {
namespace {

// What throws in a callback besides want of memory is the user's sink.
constexpr char kSink[] = "the sink of the body";

}  // namespace

Transfer::Transfer(Loop& loop, const Request& request, const Url& url, const Call& call,
                   const std::string* addresses, Delivery* delivery)
    : CancelableWait(loop, call.stop()),
      loop_(loop),
      request_(request),
      url_(url),
      addresses_(addresses),
      call_(call),
      delivery_(delivery),
      options_(request.options()),
      reader_(request, options_, loop.options(), delivery, abort_),
      upload_(request.body(), abort_) {}

Transfer::~Transfer() {
  if (running_) {
    awaiter_ = nullptr;
    end(Abort::Canceled);
  }
  if (easy_) easy_->transfer = nullptr;  // libcurl may say something when it frees the handle
}

void Transfer::start() {
  started_ = last_byte_ = loop_.now();
  if (stop_requested()) {
    abort_.set(Abort::Canceled);
  } else if (call_.deadline() <= started_) {
    abort_.set(Abort::NoTimeLeft);
  } else if (auto prepared = prepare(); !prepared) {
    abort_.set_error(Abort::NotStarted, std::move(prepared).error());
  } else {
    running_ = true;
    set_timer();
  }
}

Result<void> Transfer::prepare() {
  const auto& origin = loop_.origin(url_);
  auto plan = make_send_plan(request_, options_, url_, call_, loop_.options(), origin, started_);
  plan.addresses = addresses_;
  if (auto checked = check_sendable(request_, loop_.options(), plan); !checked) return checked;
  if (delivery_ != nullptr) {
    const auto& rest = delivery_->ask(request_);
    if (!rest.range.empty()) plan.range = rest.range.c_str();
    if (!rest.if_range.empty()) plan.if_range = rest.if_range.c_str();
  }
  if (request_.body().present() && request_.body().bytes() == nullptr) {
    if (auto opened = upload_.open(); !opened) return opened;
    plan.streamed_body = true;
    if (const auto size = upload_.bytes_left()) plan.body_size = static_cast<std::int64_t>(*size);
  }
  cookies_ = plan.cookies;
  private_handle_ = plan.private_handle;
  easy_ = loop_.take_easy();
  easy_->transfer = this;
  easy_->prepare(request_, url_, plan);
  begin_waiting();
  if (const char* refusal = loop_.start(*this, plan.http2)) {
    return Error(Errc::Internal, std::string("libcurl refused the transfer: ") + refusal);
  }
  return {};
}

// While the sink is drained nobody awaits the transfer: the coroutine sees afterwards that it
// ended.
void Transfer::resume_awaiter() {
  if (awaiter_) queue_.ready(std::exchange(awaiter_, nullptr));
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
  if (!decoding_) resume_curl();
}

void Transfer::set_timer() { loop_.timers().set(*this, limit()); }

Time Transfer::limit() const {
  if (reader_.paused) return call_.deadline();
  const bool headers_done = sends_.answered() && !reader_.in_headers;
  auto pause = headers_done ? options_.stall_timeout : options_.response_timeout;
  if (upload_.paused()) pause = kForever;  // the server may be waiting for us
  const auto soonest = std::min(call_.deadline(), later(last_byte_, pause));
  return headers_done ? soonest : std::min(soonest, options_.respond_by);
}

// Bytes that come only move the limit back, so the timer is set anew when it fires, not with each.
void Transfer::due() {
  if (limit() > loop_.now()) {
    if (upload_.paused()) look_at_upload();
    if (running_) set_timer();
    return;
  }
  end(sends_.answered() ? Abort::ResponseIncomplete : Abort::NoResponse);
}

void Transfer::end(Abort why) {
  if (!running_) return;  // it has ended in this very turn
  abort_.set(why);
  if (!curl_done_) loop_.remove(*this);
  conclude();
}

void Transfer::finished(CURLcode code) {
  const bool kept_from_resend = code == CURLE_ABORTED_BY_CALLBACK && abort_.none();
  if (kept_from_resend) {  // a 417, after a body that cannot be sent again
    code = CURLE_OK;
    private_handle_ = true;
  }
  code_ = code;
  curl_done_ = true;
  if (code != CURLE_OK && flooded()) abort_.set(flood_reason());
  if (!abort_.none()) return conclude();
  // With these codes libcurl 7.88 ends streams whose connection a frame has broken.
  const bool by_frame = code == CURLE_OK || code == CURLE_GOT_NOTHING;
  if (closed_ && !goaway_ && by_frame) tell_all_on_connection(&Transfer::broken_);
  if (code == CURLE_OK && !broken_ && !goaway_ && may_be_cut_short()) ask_other();
  conclude_if_done();
}

// Libcurl closes a connection that a frame has broken with the last of its streams. So where others
// are left, one of them is made to read: if the connection is broken, it ends at once, and in its
// turn asks the next. libcurl has no function for that, but runs what was paused.
void Transfer::ask_other() {
  if (shard->doubtful.size() == shard->doubtful.capacity()) return;  // there is no memory for it
  for (auto* other : shard->active) {
    if (other == this || other->curl_paused_ || !shares_with(*other)) continue;
    if (!std::exchange(doubtful_, true)) shard->doubtful.push_back(this);
    if (curl_easy_pause(other->handle(), CURLPAUSE_SEND) != CURLE_OK) continue;  // it has ended
    curl_easy_pause(other->handle(), CURLPAUSE_CONT);
    asked_ = other;
    return;
  }
}

void Transfer::settle(bool answered, std::span<Transfer* const> asked_now) {
  if (!broken_ && asked_ != nullptr) {
    if (!answered) return;
    const auto next = std::ranges::find(asked_now, asked_);
    if (next != asked_now.end()) {
      asked_ = (*next)->asked_;
      return;
    }
  }
  doubtful_ = false;
  std::erase(shard->doubtful, this);
  conclude_if_done();
}

void Transfer::conclude_if_done() {
  if (!decoding_ && !doubtful_) conclude();
}

void Transfer::conclude() {
  running_ = false;
  body_over_.request_stop();
  loop_.timers().remove(*this);
  if (std::exchange(decoding_, false)) loop_.stop_decoding(*this);
  if (std::exchange(doubtful_, false)) std::erase(shard->doubtful, this);
  resume_awaiter();
}

// What ended in the meantime counts more.
Abort Transfer::flood_reason() const {
  if (stop_requested()) return Abort::Canceled;
  if (limit() > loop_.now()) return Abort::Flooded;
  return sends_.answered() ? Abort::ResponseIncomplete : Abort::NoResponse;
}

void Transfer::lost(CURLMcode code) {
  if (code == CURLM_OUT_OF_MEMORY) abort_.set(Abort::NoMemory);
  finished(CURLE_RECV_ERROR);
}

bool Transfer::about_to_send(int local_port) noexcept {
  loop_.progress();
  if (flooded()) return abort_.set(flood_reason());
  long connections_made = 0;
  curl_easy_getinfo(handle(), CURLINFO_NUM_CONNECTS, &connections_made);
  if (!sends_.about_to_send(connections_made == 0, local_port)) {
    if (reader_.response.status == 417 && sends_.answered()) return false;  // it is the response
    return abort_.set(sends_.stream_refused() ? Abort::StreamRefused : Abort::ConnectionDied);
  }
  reader_.awaits_block = true;
  if (sends_.sends() > 1) return true;
  --shard->connecting;
  if (!may_multiplex()) return true;
  if (sends_.reused()) tell_who_shares();
  return watch_connection();
}

bool Transfer::may_multiplex() const {
  return url_.scheme() == "https" || options_.http_version == HttpVersion::Http2PriorKnowledge;
}

bool Transfer::watch_connection() noexcept {
  try {
    connection_closed_ = loop_.watch_connection(sends_.local_port());
    return true;
  } catch (const std::bad_alloc&) {
    return abort_.set(Abort::NoMemory);
  }
}

// The transfer that made this connection must know that it is shared. From now on libcurl treats it
// as reused: it sends that request again also when the connection dies, not only when the server
// refuses its stream.
void Transfer::tell_who_shares() const {
  for (auto* other : shard->active) {
    if (other != this && other->sends_.local_port() == sends_.local_port()) {
      other->sends_.connection_shared();
    }
  }
}

// The text about a connection comes through one of the transfers on it.
void Transfer::heard(std::string_view text) noexcept {
  if (sends_.sends() == 0) return;             // it is about connections that were not used
  if (text.starts_with("recveived GOAWAY")) {  // so spelled in 7.88
    tell_all_on_connection(&Transfer::goaway_);
  } else if (text.starts_with("Closing connection")) {
    closed_ = true;
  } else if (text.find("left intact") != std::string_view::npos) {
    closed_ = false;  // it was another one, to make room in the pool
  }
}

void Transfer::tell_all_on_connection(bool Transfer::*what) {
  this->*what = true;
  for (const auto* list : {&shard->active, &shard->doubtful}) {
    for (auto* other : *list) {
      if (shares_with(*other)) other->*what = true;
    }
  }
}

bool Transfer::shares_with(const Transfer& other) const {
  const int port = sends_.local_port();
  return port > 0 && other.sends_.sends() > 0 && other.sends_.local_port() == port;
}

bool Transfer::header_line(std::string_view line) noexcept {
  loop_.progress();
  try {
    const bool within = reader_.in_headers;
    if (!reader_.header_line(line)) return false;
    return !within || reader_.in_headers || end_of_headers();
  } catch (...) {
    return abort_.set_thrown(Abort::SinkFailed, Errc::Internal, kSink);
  }
}

bool Transfer::end_of_headers() {
  if (sends_.sends() == 0) {  // nothing went to the origin: it is a proxy's response to CONNECT
    return reader_.keep_proxy_block();
  }
  long status = 0;
  curl_easy_getinfo(handle(), CURLINFO_RESPONSE_CODE, &status);
  if (!reader_.check_block(status)) return false;
  if (status < 200) return true;
  last_byte_ = loop_.now();
  sends_.response_came(reader_.response.status);
  // The connection is closed: the server may take what comes next for the body. Libcurl would use
  // it, and would send the Expect of our list of headers again.
  if (status == 417 && easy_->expects() && request_.body().replayable()) {
    return abort_.set(Abort::ExpectRefused);
  }
  set_timer();  // from here on other limits count
  // libcurl sends no more of the body after an error status, but sees that only when it may send.
  if (upload_.paused()) loop_.timers().set(*this, started_);
  return reader_.begin_response();
}

std::size_t Transfer::body_bytes(std::string_view bytes) noexcept {
  loop_.progress();
  if (reader_.paused || decoding_) {
    curl_paused_ = true;
    return CURL_WRITEFUNC_PAUSE;
  }
  last_byte_ = loop_.now();
  try {
    if (!received(bytes)) return CURL_WRITEFUNC_ERROR;
  } catch (...) {
    abort_.set_thrown(Abort::SinkFailed, Errc::Internal, kSink);
    return CURL_WRITEFUNC_ERROR;
  }
  if (reader_.paused) {
    set_timer();  // waiting for the sink is not waiting for the server
    resume_awaiter();
  }
  return bytes.size();
}

bool Transfer::received(std::string_view bytes) {
  if (!reader_.body_begun) {
    curl_off_t length = -1;
    curl_easy_getinfo(handle(), CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    if (!reader_.begin_body(length)) return false;
  }
  if (!reader_.body_bytes(bytes, loop_.decode_budget())) return false;
  // libcurl must not be asked to keep the bytes: it would give us all of them again.
  if (reader_.has_rest()) loop_.decode_later(*this);
  decoding_ = reader_.has_rest();
  return true;
}

void Transfer::decode_rest() noexcept {
  if (reader_.paused) return;
  last_byte_ = loop_.now();
  try {
    reader_.decode_rest(loop_.decode_budget());
  } catch (...) {
    abort_.set_thrown(Abort::SinkFailed, Errc::Internal, kSink);
  }
  if (!abort_.none()) return end(abort_.why());
  if (reader_.paused) {
    set_timer();
    resume_awaiter();
  }
  if (reader_.has_rest()) return;
  decoding_ = false;
  loop_.stop_decoding(*this);
  if (curl_done_) return conclude_if_done();
  if (!reader_.paused) resume_curl();
}

}  // namespace httpretry
