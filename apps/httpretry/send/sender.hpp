// Sends the requests of a group of URLs with one client, and prints their results.
#pragma once

#include "cli/wait_limit.hpp"
#include "send/options.hpp"
#include "send/piped_files.hpp"
#include "send/whole_run.hpp"

#include <httpretry/curl/cookies.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace httpretry::cli {

// A group of URLs with everything that is needed to send it.
struct Group {
  Group(SendOptions& its, const Signals& signals) : options(its), limit(signals, its.max_time) {}

  SendOptions& options;
  // Limits the wait for pipes; its time starts again with each URL.
  WaitLimit limit;
  std::size_t first_number = 1;  // of its first URL, among the URLs of all groups
  PolicySet policies;
  std::shared_ptr<CookieJar> cookies;
  std::vector<Request> requests;
  std::optional<PipedFiles> piped;
};

// Sends the requests one after another, or at the same time with -Z.
void send_group(Group& group, WholeRun& run);

// Calls `write` for a file at the end of a run. If it throws WriteError, prints a message if
// `shows_error` is true, and returns false, so that the next file is still written.
bool try_write(const std::function<void()>& write, bool shows_error = true);

}  // namespace httpretry::cli
