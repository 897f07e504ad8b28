// httpretry batch [options] INPUT: sends the requests of a list.
#include "batch/display.hpp"
#include "batch/options.hpp"
#include "batch/run_parts.hpp"
#include "cli/exit_status.hpp"
#include "cli/message.hpp"
#include "cli/output.hpp"
#ifdef HTTPRETRY_WITH_QUEUE
#include "queue/enqueue.hpp"
#endif

#include <httpretry/client/report.hpp>

#include <unistd.h>

namespace httpretry::cli {
namespace {

using batch::Batch;
using batch::RunEnd;

constexpr std::uint64_t kMessageStep = 1'000'000;  // lines of the input between two messages

std::string only_operand(const Args& operands, const char* what) {
  if (operands.size() == 1) return operands.front();
  throw UsageError(std::string("expected one operand, ") + what);
}

int print_status(const BatchCommand& command, const Args& operands) {
  const auto journal = only_operand(operands, "the journal");
  const auto status = batch::read_status(journal);
  const bool as_json = command.format == StatusFormat::Json;
  write_stdout(as_json ? status_json(journal, status) : status_text(journal, status));
  return kOk;
}

int print_story(const Args& operands) {
  if (operands.size() != 2) throw UsageError("--explain needs two operands, JOURNAL and ID");
  const auto story = batch::read_job(operands[0], operands[1]);
  if (!story) {
    print_message("httpretry: " + operands[0] + " has no job with the id \"" +
                  printable(operands[1]) + "\"");
    return kFailed;
  }
  write_stdout(story_text(*story));
  return kOk;
}

// Implements --export: prints the input lines of the jobs in `state`, in pieces of about 64 KiB.
int print_jobs(const Args& operands, batch::State state) {
  std::string text;
  batch::export_jobs(only_operand(operands, "the journal"), state, [&](std::string_view line) {
    text.append(line).append("\n");
    if (text.size() < 65536) return;  // one write for many lines
    write_stdout(text);
    text.clear();
  });
  write_stdout(text);
  return kOk;
}

// Implements --check and --dry-run: reports the errors of the input; with --dry-run, also prints
// the number of its requests by host and policy. Returns the exit status.
int check_input(BatchCommand& command) {
  const auto report = batch::check_input(command.batch);
  if (!report.good) return kUsage;
  if (command.dry_run) write_stdout(input_text(report, command.batch.runner));
  return kOk;
}

// Prints the end of a run on standard error: its results by host, the number of jobs in each state,
// and what the user can do about jobs that are waiting or unknown. `end` is why the run ended.
void print_end(Batch& run, RunEnd end, const BatchCommand& command) {
  const auto rows = run.summary();
  auto summary = summary_text(rows);
  if (!summary.empty()) {
    summary.pop_back();  // print_message adds the last newline
    print_message(summary);
  }
  const auto counts = run.counts();
  print_message(end_line(counts, end, command));
  // Idle means that the jobs must wait longer than --max-idle. The same command continues with them
  // at any later time, because the journal has their state.
  if (counts.waiting > 0 && end == RunEnd::Idle) {
    const auto now = std::chrono::system_clock::now();
    // Empty if the waits have ended, and only the limits of the hosts hold back the jobs.
    if (const auto time_until_due = run.next_due()) {
      print_message(idle_text("at " + rfc3339(now + *time_until_due), command));
    }
  }
  if (const auto dead_jobs = jobs_out_of_retries(rows); dead_jobs > 0) {
    print_message("httpretry: " + number_of(dead_jobs, "job") +
                  " failed after all retries that the policy allows; to make jobs wait until an "
                  "outage ends, use --set breaker.kind=consecutive --set breaker.failures=4 "
                  "--max-idle 2m; --export dead lists the failed jobs as input for another run");
  }
  // The server may have executed an unknown job, so only the user can decide to send it again.
  if (counts.unknown > 0) {
    print_message(
        "httpretry: --export unknown lists the requests that may have been executed; "
        "--retry-unknown sends them again");
  }
}

// Sends the requests of the input, which is read into a journal first, and prints the results.
// Returns the exit status, which is kUsage if the input or the journal has errors.
int run_batch(BatchCommand& command) {
  // Copies of the certificates and keys that are pipes. The run needs them until its end.
  const auto files = complete_connection(command);
  const auto telemetry = begin_telemetry(command);
  begin_sharing(command);  // --shared: limits that several processes keep together
  begin_tokens(command);   // --oauth2
  RunDisplay display(command.progress);
  display.set_up(command.batch.runner);
  const auto run = Batch::open(command.batch);
  if (!run) return kUsage;  // open() has reported why
  display.clear();          // removes the status line "reading line …"
  // A first signal lets the requests in flight end; a second one calls stop().
  const auto ended = run_to_end(
      run->runner(), [&] { return run->run(); }, [&] { run->runner().stop(); });
  display.clear();
  if (!display.quiet()) print_end(*run, ended.end, command);
  return finish_run(ended, run->counts(), telemetry.get());  // writes the telemetry
}

// Completes the options of the run when all flags are parsed: the input, which is the only operand,
// the default name of the file for the results, the headers and policies of the requests, and the
// callbacks that print messages. Throws UsageError, for example if the operand is missing.
void complete_options(BatchCommand& command, const Args& operands) {
  auto& options = command.batch;
  options.input = only_operand(operands, "the input (- is standard input)");
  // These three send nothing, so they keep no journal.
  const bool uses_journal = !command.check && !command.dry_run && !command.enqueue;
  // The default name of the journal is that of the input, and standard input has none.
  if (options.input == "-" && options.journal.empty() && uses_journal) {
    throw UsageError("standard input needs --journal FILE, so that a later run can resume");
  }
  // The results are beside the input or, for standard input, beside the journal. Without a journal,
  // nothing is sent, so there are no results.
  const auto base = options.input == "-" ? options.journal : options.input;
  if (options.results.empty() && !command.no_results) options.results = base + ".results.jsonl";
  prepare_requests(command);
  options.on_problem = [](const Problem& problem) { print_message(to_string(problem)); };
  if (command.progress != ProgressStyle::None) {
    // Called after every 100 000 lines of the input, which is too often for a message.
    options.on_import = [](std::uint64_t lines) {
      if (::isatty(STDERR_FILENO) == 1) return show_status("reading line " + grouped(lines));
      if (lines % kMessageStep == 0) print_message("httpretry: " + grouped(lines) + " lines read");
    };
  }
}

int run_command(BatchCommand& command, const Args& operands) {
  if (command.status) return print_status(command, operands);
  check_format(command);
  if (command.explain) return print_story(operands);
  if (command.print_jobs) return print_jobs(operands, *command.print_jobs);
  if (command.enqueue && (command.check || command.dry_run)) {
    throw UsageError(
        "--check and --dry-run send and add nothing, so they cannot be combined with --enqueue");
  }
  complete_options(command, operands);
#ifdef HTTPRETRY_WITH_QUEUE
  if (command.enqueue || !command.queue.empty()) return enqueue_input(command);
#endif
  return command.check || command.dry_run ? check_input(command) : run_batch(command);
}

}  // namespace

FlagTable batch_table() { return unused_table(batch_flags); }

int batch(const Args& args) {
  block_progress_signal();
  BatchCommand command;
  const auto operands = parse(args, batch_flags(command), about_unknown_in("batch"));
  return with_run_errors([&] { return run_command(command, operands); });
}

}  // namespace httpretry::cli
