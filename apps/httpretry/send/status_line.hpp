// The status line on a terminal while calls run.
#pragma once

#include "send/options.hpp"

#include <httpretry/chain/observer.hpp>

#include <functional>
#include <memory>

namespace httpretry::cli {

// Returns whether to show the status line: standard error is a terminal, and no flag turns it off.
bool shows_status_line(const SendOptions& options);

// An observer of the calls of one client that shows their state.
class StatusLine : public Observer {
 public:
  // Returns the function for RequestOptions::on_progress of one URL. It must not outlive this
  // object. `with_bar` says whether a progress bar may be shown.
  virtual std::function<void(const Progress&)> on_progress(bool with_bar) = 0;
};

// Returns the status line. It shows "attempt 2 of 4: 503, waiting 1.4 s (server asked 1 s)…", or
// "attempt 1 of 4: no response after 2 s…". With -Z it shows how many bytes were transferred, and
// how many calls are done, running and waiting.
std::shared_ptr<StatusLine> status_line(const SendOptions& options, const PolicySet& policies);

}  // namespace httpretry::cli
