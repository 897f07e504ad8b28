#pragma once

#include <httpretry/export.hpp>

#include <httpretry/http/time.hpp>

namespace httpretry {

// LongestPause limits the wait of one request for a pause of its server. Set it in the context of
// the request. If the pause is longer, the request ends at once with Errc::Paused.
//
//   request.edit_options().context.set(LongestPause{10s});
struct LongestPause {
  Duration time = kForever;
};

}  // namespace httpretry
