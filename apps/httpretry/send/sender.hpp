// Sends the requests of one command with one client, and prints their results.
#pragma once

#include "cli/wait_limit.hpp"
#include "send/options.hpp"

#include <httpretry/curl/cookies.hpp>

#include <memory>
#include <vector>

namespace httpretry::cli {

// In sequence, or at the same time with -Z. Returns the exit status: that of the last request that
// failed. `limit`: for a wait for pipes; its time begins anew with each URL.
int send_requests(const SendOptions& options, const WaitLimit& limit, PolicySet policies,
                  std::shared_ptr<CookieJar> cookies, std::vector<Request> requests);

}  // namespace httpretry::cli
