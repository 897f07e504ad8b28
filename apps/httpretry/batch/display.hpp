// Formats the output of `httpretry batch` about a run: text for people, JSON for programs.
#pragma once

#include "batch/options.hpp"

#include <string>
#include <vector>

namespace httpretry::cli {

// Returns a number with its digits in groups of three: "12 480".
std::string grouped(std::uint64_t number);
// "1 job", "12 480 jobs"
std::string number_of(std::uint64_t number, const char* what);

// Returns a line of a table: the count, right-aligned, and its name.
std::string row_text(const std::string& name, std::uint64_t count);
// Returns such a line for each state.
std::string counts_text(const batch::Counts& counts);
// Returns the members of a JSON object for "total" and each state, with a comma after each.
std::string counts_json(const batch::Counts& counts);
std::string ms_json(Duration time);  // "38.2"

// "12 480/50 000 done · 31 dead · 212 waiting · 64 in flight · 412/s · p50 38 ms · ETA 1 m 31 s ·
// api.x paused 12 s"
std::string progress_line(const batch::RunProgress& progress);
std::string progress_json(const batch::RunProgress& progress);

// Returns a table with a line for each way in which the jobs of a host ended.
std::string summary_text(const std::vector<batch::SummaryRow>& rows);
// Returns the number of jobs that are dead because an outage lasted longer than their retries.
std::uint64_t jobs_out_of_retries(const std::vector<batch::SummaryRow>& rows);
std::string status_text(const std::string& journal, const batch::JournalStatus& status);
// The same as a JSON object, which ends with a newline.
std::string status_json(const std::string& journal, const batch::JournalStatus& status);
std::string story_text(const batch::JobStory& story);
std::string input_text(const batch::InputReport& report, const batch::RunnerOptions& runner);

}  // namespace httpretry::cli
