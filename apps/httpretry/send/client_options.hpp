// Converts the flags to the options of a client.
#pragma once

#include "send/options.hpp"

#include <httpretry/client/client.hpp>
#include <httpretry/curl/cookies.hpp>
#include <httpretry/middleware/retry.hpp>

#include <memory>

namespace httpretry::cli {

// Adds the cookies of files to `jar`, or to a new jar if it is null, and returns it. Returns null
// if no flag requests cookies. Throws ReadError; `cancel` is that of read_whole.
std::shared_ptr<CookieJar> load_cookies(const SendOptions& options, int cancel,
                                        std::shared_ptr<CookieJar> jar);

// Returns the options of the client for a group of URLs. `budget`, if it is not null, replaces the
// budgets of the policies.
ClientOptions client_options(const SendOptions& options, const PolicySet& policies,
                             std::shared_ptr<CookieJar> cookies,
                             std::shared_ptr<RetryBudget> budget = nullptr);

}  // namespace httpretry::cli
