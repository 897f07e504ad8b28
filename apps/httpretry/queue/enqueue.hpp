// httpretry batch --enqueue, and what it has in common with httpretry work.
#pragma once

#include "batch/options.hpp"

#include "lib/extras/queue/queue.hpp"

namespace httpretry::cli {

// Of --queue or $HTTPRETRY_QUEUE. Throws UsageError where neither names a queue.
queue::QueueOptions queue_options(const BatchCommand& command);

// Returns the exit status.
int enqueue_input(const BatchCommand& command);

}  // namespace httpretry::cli
