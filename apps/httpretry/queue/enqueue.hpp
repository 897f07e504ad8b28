// httpretry batch --enqueue, and the options of the queue that it shares with httpretry work.
#pragma once

#include "batch/options.hpp"

#include "lib/extras/queue/queue.hpp"

namespace httpretry::cli {

// Returns the options for the queue that --queue or $HTTPRETRY_QUEUE names. Throws UsageError if
// neither does.
queue::QueueOptions queue_options(const BatchCommand& command);

// Adds the requests of the input to the queue, and returns the exit status.
int enqueue_input(const BatchCommand& command);

}  // namespace httpretry::cli
