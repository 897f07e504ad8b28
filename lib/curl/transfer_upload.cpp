// What of a transfer pauses: the body of the request, where it is not in memory, and libcurl.
#include "transfer.hpp"

namespace httpretry {

std::size_t Transfer::send_bytes(std::span<char> into) noexcept {
  loop_.progress(connection_.get());
  last_byte_ = loop_.now();
  const auto count = upload_.read(into);
  if (count == CURL_READFUNC_PAUSE) resume_awaiter();
  return count;
}

bool Transfer::rewind_body() noexcept {
  loop_.progress(connection_.get());
  last_byte_ = loop_.now();
  if (!upload_.rewind()) return false;
  try {
    if (upload_.rewound()) loop_.timers().set(*this, started_);  // then it looks at the upload
    return true;
  } catch (...) {
    return abort_.set(Abort::NoMemory);
  }
}

CheckedReader Transfer::lend_body(const std::stop_source& over) {
  body_over_ = over;
  return upload_.lend();
}

void Transfer::take_body(CheckedReader body, Result<void> ready) {
  body_over_ = std::stop_source(std::nostopstate);
  const bool used = upload_.take_back(std::move(body));
  if (!running_ || curl_done_) return;
  if (used && !ready) {
    abort_.set_error(Abort::UploadFailed, std::move(ready).error());
    return end(Abort::UploadFailed);
  }
  last_byte_ = loop_.now();
  set_timer();
  resume_upload();
}

// libcurl gives us at once what came meanwhile.
void Transfer::resume_curl() {
  if (!curl_paused_) return;
  set_curl_paused(false);
  unpause(CURLPAUSE_CONT);
}

void Transfer::set_curl_paused(bool paused) {
  if (connection_ && paused != curl_paused_) connection_->paused += paused ? 1 : -1;
  curl_paused_ = paused;
}

// `kept`: the direction that stays paused.
void Transfer::unpause(int kept) {
  const auto code = curl_easy_pause(handle(), kept);
  if (code == CURLE_OK || !running_) return;
  code_ = code;
  end(abort_.why());
}

// It asks for the body again.
void Transfer::resume_upload() { unpause(curl_paused_ ? CURLPAUSE_RECV : CURLPAUSE_CONT); }

// When the final headers have come, or the body begins again, although more of it is awaited.
void Transfer::look_at_upload() {
  if (curl_done_) return;
  if (upload_.rewound()) {
    body_over_.request_stop();
  } else if (sends_.answered()) {
    resume_upload();
  }
}

}  // namespace httpretry
