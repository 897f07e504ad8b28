#include "shard.hpp"

#include "transfer.hpp"

#include <algorithm>

namespace httpretry {
namespace {

// libcurl has no function to run a transfer, but it runs one that is unpaused.
void run(const Transfer& transfer) {
  curl_easy_pause(transfer.handle(), CURLPAUSE_RECV);
  curl_easy_pause(transfer.handle(), CURLPAUSE_CONT);
}

}  // namespace

void Shard::run_connecting() const {
  for (const auto* transfer : active) {
    if (transfer->connecting()) run(*transfer);
  }
}

void Shard::run_waiting(Time now) {
  run_at = kNever;
  for (const auto* transfer : active) {
    const auto since = transfer->waits_for_rest_since();
    if (since <= now - kWaited) {
      run(*transfer);
    } else if (since != kNever) {
      run_at = std::min(run_at, since + kWaited);
    }
  }
}

}  // namespace httpretry
