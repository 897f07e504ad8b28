// How a transfer sends the request's body, pauses, and reports its progress.
#include "transfer.hpp"

#include <algorithm>

namespace httpretry {

// Gives libcurl the next bytes of the body. Returns their number, 0 at the end, or
// CURL_READFUNC_PAUSE or CURL_READFUNC_ABORT.
std::size_t Transfer::send_bytes(std::span<char> into) noexcept {
  loop_.progress(connection_.get());
  last_byte_ = loop_.now();
  const auto count = upload_.read(into);
  if (count == CURL_READFUNC_PAUSE) resume_awaiter();
  return count;
}

// Starts the body again, for another round of authentication. Returns false to abort.
bool Transfer::rewind_body() noexcept {
  loop_.progress(connection_.get());
  last_byte_ = loop_.now();
  if (!upload_.rewind()) return false;
  return abort_.guard(CURLE_OUT_OF_MEMORY, "setting a timer", [this] {
    // If a coroutine waits for more of the old body, the timer, which fires at once, stops it.
    if (upload_.rewound) loop_.timers().set(*this, started_);
    return true;
  });
}

CheckedReader Transfer::detach_reader(const std::stop_source& exchange_over) {
  body_over_ = exchange_over;
  return upload_.detach();
}

// Continues the upload after a wait for more of the body, or ends the exchange if the wait failed.
void Transfer::reattach_reader(CheckedReader body, Result<void> ready) {
  body_over_ = std::stop_source(std::nostopstate);
  const bool still_valid = upload_.reattach(std::move(body));
  if (!running_ || curl_done_) return;
  if (still_valid && !ready) {
    abort_.set_error(CURLE_READ_ERROR, std::move(ready).error());
    return end(Abort::Failed);
  }
  last_byte_ = loop_.now();
  set_timer();
  unpause();
}

// libcurl immediately delivers what arrived during the pause.
void Transfer::resume_curl() {
  if (!curl_paused_) return;
  set_curl_paused(false);
  unpause();
}

void Transfer::set_curl_paused(bool paused) {
  if (connection_ && paused != curl_paused_) connection_->paused += paused ? 1 : -1;
  curl_paused_ = paused;
}

// Lets libcurl ask for the request's body again. It also receives again, unless it waits for the
// sink or the decoding.
void Transfer::unpause() {
  const auto code = curl_easy_pause(handle(), curl_paused_ ? CURLPAUSE_RECV : CURLPAUSE_CONT);
  if (code == CURLE_OK || !running_) return;
  code_ = code;
  end(abort_.why());
}

// Calls the user's callback if the progress has changed. libcurl also counts the bytes that frame
// the chunks of a body without a length, and a streamed body has been given to libcurl before it is
// sent. So the smaller number is reported. Returns false to abort, if the callback throws.
bool Transfer::report_progress(std::uint64_t sent) noexcept {
  // libcurl also calls this while a transfer is removed, which need not be the user's wish.
  if (!running_ || !abort_.none()) return true;
  const auto& body = request_.body();
  Progress now;
  now.to_send = upload_.size();
  if (body.present()) {
    now.sent = std::min(sent, body.bytes() != nullptr ? *now.to_send : upload_.given);
  }
  if (sends_.answered && !reader_.in_headers) {
    now.received = reader_.received;
    if (reader_.to_sink) now.offset = delivery_->offset();
    const auto length = reader_.has_body() ? announced_length() : 0;
    if (length >= 0) now.to_receive = static_cast<std::uint64_t>(length);
  }
  if (now == progress_) return true;
  progress_ = now;
  return abort_.guard(CURLE_ABORTED_BY_CALLBACK, "RequestOptions::on_progress", [&] {
    options_.on_progress(now);
    return true;
  });
}

}  // namespace httpretry
