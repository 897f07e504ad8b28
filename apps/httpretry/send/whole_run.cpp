#include "send/whole_run.hpp"

#include "cli/exit_status.hpp"
#include "cli/message.hpp"
#include "cli/output.hpp"
#include "cli/text.hpp"

#include <httpretry/client/report.hpp>

#include <algorithm>

namespace httpretry::cli {
namespace {

constexpr std::size_t kExplained = 3;

// Returns the cause of a failure of the host. Empty for a success and for a failure of the URL,
// such as a 404.
std::string cause_of(const Outcome& outcome) {
  const auto& history = history_of(outcome);
  if (!outcome) {
    const auto& error = outcome.error();
    if (error.code == Errc::Canceled || error.code == Errc::InvalidRequest) return {};
    return std::string(to_string(error.code)) + " (" + std::to_string(exit_status(error)) + ")";
  }
  const bool about_url =
      history.stop_reason == Reason::NotRetryable || history.stop_reason == Reason::Success;
  return about_url ? std::string() : std::to_string(outcome->status);
}

Outcome not_sent() {
  Error error(Errc::Canceled, "not sent, because the run ended first");
  error.history.stop_reason = Reason::Canceled;
  return error;
}

}  // namespace

std::string WholeRun::label(std::size_t number, const Request& request) const {
  if (urls_ < 2) return {};
  return "[" + std::to_string(number) + "] " + shown_url(request) + ": ";
}

void WholeRun::add(std::size_t number, const Request& request, const Outcome& outcome, int status) {
  if (!options_.report.empty()) reports_[number - 1] = report_json(request, outcome);
  ++(status == kOk ? totals_.succeeded : totals_.failed);
  any_failed_ = any_failed_ || status != kOk;
  totals_.attempts += history_of(outcome).attempts.size();
  if (outcome) totals_.bytes += std::max<std::uint64_t>(outcome->body.size(), outcome->delivered);
  // kTryLater does not replace the status of another failure.
  const bool takes_precedence = status != kOk && (status != kTryLater || exit_status_ == kOk);
  if (takes_precedence && !must_end()) exit_status_ = status;
}

void WholeRun::record_not_sent(std::size_t number, const Request& request) {
  ++never_started_;
  if (!options_.report.empty()) reports_[number - 1] = report_json(request, not_sent());
}

void WholeRun::record_shortage() {
  shortage_ = true;
  if (exit_status_ == kOk) exit_status_ = kTryLater;
}

bool WholeRun::count_failure(const Request& request, const Outcome& outcome) {
  const auto& url = request.parsed_url();
  const auto cause = cause_of(outcome);
  if (cause.empty() || !url) return true;
  const std::string origin(url->origin());
  auto& same = failures_[origin + " " + cause];
  same.description = origin + ": " + cause;
  return ++same.count <= kExplained;
}

void WholeRun::print_totals(Duration time) const {
  if (options_.silent) return;
  print_message("httpretry: " + std::to_string(totals_.succeeded) + " succeeded, " +
                std::to_string(totals_.failed) + " failed, " + std::to_string(totals_.attempts) +
                " attempts, " + std::to_string(totals_.bytes) + " bytes in " + duration_text(time));
}

// Prints at the end of the run what no earlier message says: for each kind of failure, how many
// more URLs failed in this way (only the first kExplained are explained one by one), and how many
// URLs were not sent, and why. `signal` is the one that ended the run, or 0.
void WholeRun::print_rest(int signal) const {
  if (!shows_errors(options_)) return;
  for (const auto& [key, same] : failures_) {
    if (same.count <= kExplained) continue;
    print_message("httpretry: " + counted(same.count - kExplained, "URL") +
                  " more failed in the same way: " + same.description +
                  "; --report FILE lists each of them");
  }
  if (urls_ < 2 || never_started_ == 0) return;
  const char* const why = signal != 0 ? "interrupted"
                          : shortage_ ? "ended because no further request could be sent"
                                      : "ended by --fail-early";
  print_message("httpretry: " + std::string(why) + ": " + std::to_string(never_started_) + " of " +
                counted(urls_, "URL") + " were never started");
}

void WholeRun::write_report(const WaitLimit& limit) const {
  if (options_.report.empty()) return;
  const auto text = join(reports_, ",\n");
  limit.restart();
  write_to(options_.report, urls_ == 1 ? text + "\n" : "[" + text + "]\n", &limit);
}

void WholeRun::write_headers(const WaitLimit& limit) const {
  for (const auto& [file, text] : headers_) {
    limit.restart();
    write_to(file, text, &limit);
  }
}

int WholeRun::exit_status() const { return write_failed_ ? kWriteError : exit_status_; }

bool WholeRun::must_end() const {
  return options_.fail_early && any_failed_ && exit_status_ != kOk;
}

}  // namespace httpretry::cli
