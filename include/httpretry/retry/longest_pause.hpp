#pragma once

#include <httpretry/http/time.hpp>

namespace httpretry {

// In the context of a request: it does not wait for a pause of its server that is longer, and ends
// at once with Errc::Paused.
//
//   request.edit_options().context.set(LongestPause{10s});
struct LongestPause {
  Duration time = kForever;
};

}  // namespace httpretry
