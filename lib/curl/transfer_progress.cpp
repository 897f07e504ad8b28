// What a transfer tells of its progress.
#include "transfer.hpp"

#include <algorithm>

namespace httpretry {

// libcurl may call this also while a transfer is taken from it, which need not be the user's wish.
bool Transfer::progressed(std::uint64_t sent) noexcept {
  return !running_ || !abort_.none() || report_progress(sent);
}

// libcurl counts what frames the chunks of a body without a length, too. A body that we give it
// piece by piece is ahead of what was sent.
bool Transfer::report_progress(std::uint64_t sent) noexcept {
  const auto& body = request_.body();
  Progress now;
  now.to_send = body.present() ? upload_.size() : std::uint64_t{0};
  if (body.present()) {
    now.sent = std::min(sent, body.bytes() != nullptr ? *now.to_send : upload_.given());
  }
  if (sends_.answered() && !reader_.in_headers) {
    now.received = reader_.received;
    if (reader_.to_sink) now.offset = delivery_->offset();
    const auto length = reader_.has_body() ? announced_length() : 0;
    if (length >= 0) now.to_receive = static_cast<std::uint64_t>(length);
  }
  if (now == progress_) return true;
  progress_ = now;
  try {
    options_.on_progress(now);
    return true;
  } catch (...) {
    return abort_.set_thrown(Abort::ProgressFailed, Errc::Internal, "RequestOptions::on_progress");
  }
}

}  // namespace httpretry
