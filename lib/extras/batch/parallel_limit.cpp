#include "parallel_limit.hpp"

#include <algorithm>
#include <utility>

namespace httpretry::batch {
namespace {

// How long nothing is sent after a shortage that our own calls cannot end.
constexpr Duration kTryAgainAfter = std::chrono::milliseconds(200);
// The limit grows by one after this many times its number of calls have ended.
constexpr std::size_t kRoundsToGrow = 10;

}  // namespace

void ParallelLimit::ended(Time turn) {
  last_end_ = turn;
  lacking_since_.reset();
  if (limit_ == most_ || ++ended_since_ < kRoundsToGrow * limit_) return;
  ++limit_;
  ended_since_ = 0;
}

void ParallelLimit::lacked(Time began) { lacking_ = std::max(lacking_.value_or(Time{}), began); }

// Called only while has_new_shortage() returns true. Keeps `limit_` at 1 or more: if no call can
// have the resource, `again_at_` stops all sends for a moment.
bool ParallelLimit::send_fewer(std::size_t others, Time turn) {
  const auto began = *std::exchange(lacking_, std::nullopt);
  limit_ = std::clamp<std::size_t>(others, 1, limit_);
  ended_since_ = 0;
  // Our own calls hold the resource, or have freed it since: the next call can have it.
  if (others > 0 || began <= last_end_) return true;
  if (!lacking_since_) lacking_since_ = turn;
  again_at_ = later(turn, kTryAgainAfter);
  return turn - *lacking_since_ < max_shortage_;
}

}  // namespace httpretry::batch
