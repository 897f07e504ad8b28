#include "batch/display.hpp"

#include <httpretry/client/report.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace httpretry::cli {
namespace {

using batch::State;

constexpr std::size_t kHostsShown = 3;
constexpr std::size_t kRowsShown = 30;
constexpr std::size_t kStateColumn = 8;  // the width of a column of summary_text
constexpr std::size_t kStatusColumn = 5;

std::string without_scheme(const std::string& host) {
  const auto scheme = host.find("://");
  return printable(scheme == std::string::npos ? host : host.substr(scheme + 3));
}

std::string rate_text(double per_second) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), per_second < 10 ? "%.1f/s" : "%.0f/s", per_second);
  return text.data();
}

// Returns a number with one digit after the point.
std::string number_text(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", number);
  return text.data();
}

std::string count_json(const char* name, std::uint64_t value) {
  return std::string("\"") + name + "\":" + std::to_string(value) + ",";
}

void add_part(std::string& line, const std::string& part) { line += " · " + part; }

void add_count_unless_zero(std::string& line, std::uint64_t count, const char* what) {
  if (count > 0) add_part(line, grouped(count) + " " + what);
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

bool is_past(const std::optional<WallTime>& date) {
  return date && *date <= std::chrono::system_clock::now();
}

// Returns what happens to the job next, for --explain.
std::string next_of(const batch::JobStory& story) {
  switch (story.state) {
    case State::Queued: return "it is sent when its turn comes";
    case State::Sending: return "it is in flight; if its run has ended, it becomes unknown";
    case State::Done: return "nothing";
    case State::Dead:
      return "nothing, because it failed for good; --export dead prints it for another run";
    case State::Waiting:
      if (is_past(story.until)) return "it is sent when its turn comes";
      return story.until ? "it is sent at " + rfc3339(*story.until) : "it waits";
    case State::Unknown: return "nothing, until --retry-unknown sends it again";
  }
  return "";
}

// Returns the estimates of how long a run with this number of jobs takes, for --dry-run: the least
// time that --rate allows, if it is given, and the time with --parallel requests at once if each
// takes 100 ms.
std::string time_estimates(double jobs, const batch::RunnerOptions& runner) {
  std::string text;
  const auto seconds_text = [](double seconds) {
    // A number that is too large becomes kForever, which would be shown as "unlimited".
    return duration_text(std::min<Duration>(std::chrono::duration<double>(seconds),
                                            kForever - std::chrono::nanoseconds(1)));
  };
  if (runner.rate) {
    const auto period = std::chrono::duration<double>(runner.rate->per).count();  // in seconds
    text += "at least " + seconds_text(period * jobs / static_cast<double>(runner.rate->requests)) +
            ", because of --rate\n";
  }
  constexpr double kSecondsPerRequest = 0.1;  // the assumption that the last words state
  const auto rounds = std::ceil(jobs / static_cast<double>(runner.parallel));
  return text + "about " + seconds_text(kSecondsPerRequest * rounds) + " with " +
         std::to_string(runner.parallel) + " at a time, if each takes 100 ms\n";
}

}  // namespace

std::string grouped(std::uint64_t number) {
  auto text = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<std::size_t>(at), " ");
  }
  return text;
}

std::string number_of(std::uint64_t number, const char* what) {
  return grouped(number) + " " + what + (number == 1 ? "" : "s");
}

std::string row_text(const std::string& name, std::uint64_t count) {
  auto number = grouped(count);
  number.insert(0, number.size() < 12 ? 12 - number.size() : 0, ' ');
  return number + "  " + name + "\n";
}

std::string counts_text(const batch::Counts& counts) {
  return row_text("done", counts.done) + row_text("dead", counts.dead) +
         row_text("waiting", counts.waiting) + row_text("unknown", counts.unknown) +
         row_text("sending", counts.sending) + row_text("queued", counts.queued);
}

std::string counts_json(const batch::Counts& counts) {
  return count_json("total", counts.total()) + count_json("done", counts.done) +
         count_json("dead", counts.dead) + count_json("waiting", counts.waiting) +
         count_json("unknown", counts.unknown) + count_json("queued", counts.queued) +
         count_json("sending", counts.sending);
}

std::string ms_json(Duration time) {
  return number_text(std::chrono::duration<double, std::milli>(time).count());
}

// Returns the progress of a run as a line for people, with at most kHostsShown paused hosts:
// "12 480/50 000 done · 31 dead · 212 waiting · 64 in flight · 412/s · p50 38 ms · ETA 1 m 31 s ·
// api.x paused 12 s". A state without jobs is left out, and so is a time that is not yet known.
std::string progress_line(const batch::RunProgress& progress) {
  const auto& counts = progress.counts;
  auto line = grouped(counts.done) + "/" + grouped(counts.total()) + " done";
  add_count_unless_zero(line, counts.dead, "dead");        // have failed for good
  add_count_unless_zero(line, counts.waiting, "waiting");  // are sent later
  // The server may have executed these, and they must not be executed twice.
  add_count_unless_zero(line, counts.unknown, "unknown");
  add_part(line, grouped(progress.in_flight) + " in flight");
  add_part(line, rate_text(progress.per_second));
  // The median duration of a call.
  if (progress.median) add_part(line, "p50 " + duration_text(*progress.median));
  if (progress.time_left) add_part(line, "ETA " + duration_text(*progress.time_left));
  for (std::size_t i = 0; i < std::min(progress.paused.size(), kHostsShown); ++i) {
    const auto& host = progress.paused[i];  // the longest pauses are first
    add_part(line, without_scheme(host.name) + " paused " + duration_text(host.paused));
  }
  if (progress.paused.size() > kHostsShown) {
    add_part(line, grouped(progress.paused.size() - kHostsShown) + " more hosts paused");
  }
  return line;
}

// Returns the progress of a run as one line of JSON for programs: {"total":50000,"done":12480,…,
// "per_second":412.0,"p50_ms":38.2,"time_left_ms":91000.0,"paused":[{"host":"https://api.x",
// "for_ms":12000.0}]}. "unknown" counts jobs that the server may have executed, and that are not
// sent again. "in_flight" counts calls, and "in_wait" those of them that wait for a retry. The
// median "p50_ms" and "time_left_ms" are null while they are unknown.
std::string progress_json(const batch::RunProgress& progress) {
  auto json = "{" + counts_json(progress.counts) + count_json("in_flight", progress.in_flight) +
              count_json("in_wait", progress.in_wait);
  json += "\"per_second\":" + number_text(progress.per_second);
  json += ",\"p50_ms\":" + (progress.median ? ms_json(*progress.median) : "null");
  json += ",\"time_left_ms\":" + (progress.time_left ? ms_json(*progress.time_left) : "null");
  json += ",\"paused\":[";
  for (std::size_t i = 0; i < progress.paused.size(); ++i) {
    const auto& host = progress.paused[i];
    json += (i > 0 ? "," : "") + std::string("{\"host\":") + quote_json(host.name) +
            ",\"for_ms\":" + ms_json(host.paused) + "}";
  }
  return json + "]}";
}

// Returns the results of a run as a table. A line counts the jobs with the same state, status, host
// and reason: "   12  dead    503  api.example.com (attempts_exhausted)". The largest counts are
// first. The status is "-" if there was no response.
std::string summary_text(const std::vector<batch::SummaryRow>& rows) {
  auto sorted = rows;
  std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) { return a.count > b.count; });
  std::string text;
  for (std::size_t i = 0; i < std::min(sorted.size(), kRowsShown); ++i) {
    const auto& row = sorted[i];
    const auto status = row.status != 0 ? std::to_string(row.status) : "-";
    auto name = padded(std::string(to_string(row.state)), kStateColumn) +
                padded(status, kStatusColumn) + without_scheme(row.host);
    if (!row.reason.empty()) name += " (" + row.reason + ")";
    text += row_text(name, row.count);
  }
  if (sorted.size() > kRowsShown) {
    text += "  and " + std::to_string(sorted.size() - kRowsShown) + " more rows\n";
  }
  return text;
}

std::uint64_t jobs_out_of_retries(const std::vector<batch::SummaryRow>& rows) {
  std::uint64_t count = 0;
  for (const auto& row : rows) {
    const bool ran_out = row.reason == to_string(Reason::AttemptsExhausted) ||
                         row.reason == to_string(Reason::ElapsedExhausted) ||
                         row.reason == to_string(Reason::BudgetExhausted);
    if (row.state == State::Dead && ran_out) count += row.count;
  }
  return count;
}

// Returns what --status prints: the files of the batch, its last run, the number of jobs in each
// state, and when the next waiting job may be sent. status.process is the process that runs the
// batch now, and 0 if that is on another machine.
std::string status_text(const std::string& journal, const batch::JournalStatus& status) {
  std::string text = "journal  " + journal + "\ninput    " + printable(status.input) + "\n";
  if (!status.results.empty()) text += "results  " + printable(status.results) + "\n";
  if (!status.dead.empty()) text += "dead     " + printable(status.dead) + "\n";
  text += "runs     " + std::to_string(status.runs);
  if (status.last_run) text += ", the last began at " + rfc3339(*status.last_run);
  if (status.process) {
    text += *status.process > 0 ? " and is running as process " + std::to_string(*status.process)
                                : " and is running on another machine";
  }
  text += "\n" + counts_text(status.counts);
  if (status.next_due) {
    text += "the next waiting job may be sent " +
            (is_past(status.next_due) ? "now" : "at " + rfc3339(*status.next_due)) + "\n";
  }
  return text;
}

// Returns what --status --format json prints: {"journal":"in.httpretry.db","input":"in","results":
// "in.results.jsonl","dead_letters":null,"runs":1,"last_run":"2026-…","running":false,
// "process":null,"total":5,"done":4,…,"next_due":"2026-…"}. "process" is null if no process runs
// the batch, or if one on another machine does.
std::string status_json(const std::string& journal, const batch::JournalStatus& status) {
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? "null" : quote_json(text);
  };
  const auto date_or_null = [](const std::optional<WallTime>& date) {
    return date ? quote_json(rfc3339(*date)) : "null";
  };
  const bool is_here = status.process && *status.process > 0;
  // The text of counts_json() ends with a comma.
  return "{\"journal\":" + quote_json(journal) + ",\"input\":" + quote_json(status.input) +
         ",\"results\":" + text_or_null(status.results) +
         ",\"dead_letters\":" + text_or_null(status.dead) +
         ",\"runs\":" + std::to_string(status.runs) +
         ",\"last_run\":" + date_or_null(status.last_run) +
         ",\"running\":" + (status.process ? "true" : "false") +
         ",\"process\":" + (is_here ? std::to_string(*status.process) : "null") + "," +
         counts_json(status.counts) + "\"next_due\":" + date_or_null(status.next_due) + "}\n";
}

// Returns what --explain prints about a job: a line for each fact that is known, with the name of
// the fact in the first nine columns.
std::string story_text(const batch::JobStory& story) {
  std::string text = "job      " + printable(story.id) + ", line " + std::to_string(story.line) +
                     "\nrequest  " + printable(story.input) + "\n";
  if (!story.key.empty()) text += "key      " + printable(story.key) + "\n";
  text += "state    " + std::string(to_string(story.state));
  if (story.status != 0) text += ", status " + std::to_string(story.status);
  if (!story.reason.empty()) text += " (" + printable(story.reason) + ")";
  text += "\n";
  if (!story.about.empty()) text += "why      " + printable(story.about) + "\n";
  if (story.started) text += "sent     since " + rfc3339(*story.started) + "\n";
  if (story.attempts > 0) text += "attempts " + std::to_string(story.attempts) + "\n";
  text += "next     " + next_of(story) + "\n";
  if (!story.result.empty()) text += "result   " + story.result + "\n";
  return text;
}

// Returns what --dry-run prints: the number of requests in the input, by host and by policy, how
// many of them need care, and estimates of how long the run takes.
std::string input_text(const batch::InputReport& report, const batch::RunnerOptions& runner) {
  std::string text = row_text("requests", report.jobs);
  // Adds rows for the names with the largest counts, which are first in `counts`, and a row for the
  // number of names that are not shown.
  const auto add_rows = [&](const std::string& kind, const char* kinds, const auto& counts) {
    for (std::size_t i = 0; i < std::min(counts.size(), kRowsShown); ++i) {
      const auto& [name, count] = counts[i];
      text += row_text(kind + " " + printable(name), count);
    }
    if (counts.size() > kRowsShown)
      text += row_text(kinds + std::string(" more"), counts.size() - kRowsShown);
  };
  add_rows("host", "hosts", report.hosts);
  add_rows("policy", "policies", report.policies);
  // `unsafe` counts requests such as POST without an idempotency key, and `later` those that the
  // input forbids to send before a date.
  if (report.unsafe > 0) text += row_text("must not be sent twice, and have no key", report.unsafe);
  if (report.later > 0) text += row_text("have a not_before", report.later);
  return text + time_estimates(static_cast<double>(report.jobs), runner);
}

}  // namespace httpretry::cli
