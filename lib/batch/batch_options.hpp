// What BatchOptions say to the parts of a run.
#pragma once

#include "lib/batch/line_jobs.hpp"
#include "lib/batch/open_journal.hpp"

#include <string>

namespace httpretry::batch {

[[nodiscard]] HTTPRETRY_API JournalSource source_of(const BatchOptions& options);
[[nodiscard]] HTTPRETRY_API LineJobsOptions line_jobs_options(const BatchOptions& options,
                                                              const std::string& token);

}  // namespace httpretry::batch
