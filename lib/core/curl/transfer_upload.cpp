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

// Ends a pause for the sink or the decoding. libcurl immediately delivers what arrived during it.
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
  upload_held_ = false;
  const auto code = curl_easy_pause(handle(), curl_paused_ ? CURLPAUSE_RECV : CURLPAUSE_CONT);
  if (code == CURLE_OK || !running_) return;
  code_ = code;
  end(abort_.why());
}

// Pauses the upload if it does not advance because the server gives no window: libcurl 7.88 would
// spin. Does so only for a connection without any progress. (A pause for a sink, which this would
// end, counts as progress.) Returns whether the upload is paused now.
bool Transfer::hold_upload() {
  static const bool spins = libcurl().version_num < CURL_VERSION_BITS(8, 0, 0);
  const bool may_spin = spins && connection_ != nullptr && connection_->may_spin() &&
                        request_.body().present() && !upload_.paused && !curl_done_;
  if (!may_spin || upload_held_) return upload_held_;
  // libcurl sends a body in memory without a callback, so only its own count shows an advance.
  const auto sent = sent_bytes();
  const bool advances = std::exchange(held_sent_, sent) != sent;
  if (advances || upload_.size() == sent) return false;
  upload_held_ = curl_easy_pause(handle(), CURLPAUSE_SEND) == CURLE_OK;
  return upload_held_;
}

// Returns whether the current response would end the request although libcurl announced less than
// the whole body, which it does to get a challenge. RFC 9110 §15.4: a 303 turns the request into a
// GET, and so do in practice 301 and 302 after a POST, so nothing would send the body later.
bool Transfer::leaves_body_out() const {
  const int status = reader_.response.status;
  const bool becomes_get =
      status == 303 || ((status == 301 || status == 302) && request_.method() == "POST");
  if ((status >= 300 && !becomes_get) || !request_.body().present()) return false;
  const auto announced = info<curl_off_t>(handle(), CURLINFO_CONTENT_LENGTH_UPLOAD_T);
  if (announced < 0) return false;   // the length is unknown, so libcurl sends the whole body
  const auto size = upload_.size();  // if unknown, libcurl announces a length only without the body
  return !size || static_cast<std::uint64_t>(announced) < *size;
}

// Calls the user's callback RequestOptions::on_progress if more of a body was sent or received
// since its last call. `sent` is how much of the request's body libcurl has sent, as it counts.
// Returns false to make libcurl abort if the callback throws; the reason is then in `abort_`.
bool Transfer::report_progress(std::uint64_t sent) noexcept {
  // libcurl also calls this while the loop removes a transfer that has ended or was aborted.
  if (!running_ || !abort_.none()) return true;
  const auto& body = request_.body();
  Progress current;
  current.to_send = upload_.size();  // nullopt if the size of the body is unknown
  if (body.present()) {
    // For a body without a length, libcurl also counts the bytes that frame its chunks. So its
    // number is limited to that of the bytes that it was given. (A body in memory is given whole.)
    const auto given = body.bytes() != nullptr ? *current.to_send : upload_.given;
    current.sent = std::min(sent, given);
  }
  if (sends_.answered && !reader_.in_headers) {
    current.received = reader_.received;
    if (reader_.to_sink) current.offset = delivery_->offset();
    const auto length = reader_.has_body() ? announced_length() : 0;
    if (length >= 0) current.to_receive = static_cast<std::uint64_t>(length);  // -1: not announced
  }
  if (current == progress_) return true;
  progress_ = current;
  return abort_.guard(CURLE_ABORTED_BY_CALLBACK, "RequestOptions::on_progress", [&] {
    options_.on_progress(current);
    return true;
  });
}

}  // namespace httpretry
