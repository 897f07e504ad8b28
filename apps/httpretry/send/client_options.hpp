// The client that the flags ask for.
#pragma once

#include "send/options.hpp"

#include <httpretry/client/client.hpp>
#include <httpretry/curl/cookies.hpp>
#include <httpretry/middleware/retry.hpp>

#include <memory>

namespace httpretry::cli {

// Adds the cookies of files to `jar`, or to a new one if it is null. Null if no flag asks for
// cookies. Throws ReadError; `cancel` as for read_whole.
std::shared_ptr<CookieJar> load_cookies(const SendOptions& options, int cancel,
                                        std::shared_ptr<CookieJar> jar);

// `budget`: instead of those of the policies, if it is not null.
ClientOptions client_options(const SendOptions& options, const PolicySet& policies,
                             std::shared_ptr<CookieJar> cookies,
                             std::shared_ptr<RetryBudget> budget = nullptr);

}  // namespace httpretry::cli
