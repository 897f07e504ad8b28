#include "shard.hpp"

#include "transfer.hpp"

#include <algorithm>

namespace httpretry {
namespace {

// Has libcurl run the transfer. libcurl has no function for that, but it does so after a pause.
void run(const Transfer& transfer) {
  const int held = transfer.is_upload_held() ? CURLPAUSE_SEND : CURLPAUSE_CONT;
  curl_easy_pause(transfer.handle(), CURLPAUSE_RECV | held);
  curl_easy_pause(transfer.handle(), held);
}

}  // namespace

void Shard::run_connecting() const {
  for (const auto* transfer : active) {
    if (transfer->connecting()) run(*transfer);
  }
}

// Runs each transfer that has received nothing for kMaxSilence, and sets when to do so for the
// others.
void Shard::run_waiting(Time now) {
  call_waiting_at = kNever;
  for (const auto* transfer : active) {
    const auto waiting_since = transfer->waits_for_rest_since();  // kNever if it is not waiting
    if (waiting_since <= now - kMaxSilence) {
      run(*transfer);
    } else if (waiting_since != kNever) {
      call_waiting_at = std::min(call_waiting_at, waiting_since + kMaxSilence);
    }
  }
}

void Shard::hold_uploads(Time now) {
  for (auto* transfer : active) {
    if (transfer->hold_upload()) release_at = std::min(release_at, now + kMaxHold);
  }
}

void Shard::release_uploads() {
  release_at = kNever;
  for (std::size_t i = active.size(); i-- > 0;) active[i]->release_upload();
}

}  // namespace httpretry
