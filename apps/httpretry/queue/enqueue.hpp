// httpretry batch --enqueue, and what it has in common with httpretry work.
#pragma once

#include "batch/options.hpp"

#include "lib/queue/queue.hpp"

namespace httpretry::cli {

// Throws UsageError where no queue is named.
queue::QueueOptions queue_options(const BatchCommand& command);

// Returns the exit status.
int enqueue_input(const BatchCommand& command);

}  // namespace httpretry::cli
