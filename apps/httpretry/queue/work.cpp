// httpretry work --queue URL [options]: sends the jobs of a queue, together with other workers.
#include "batch/display.hpp"
#include "batch/run_parts.hpp"
#include "cli/exit_status.hpp"
#include "cli/message.hpp"
#include "cli/output.hpp"
#include "queue/enqueue.hpp"
#include "send/connection.hpp"
#include "send/telemetry.hpp"

#include <httpretry/client/report.hpp>

namespace httpretry::cli {
namespace {

using batch::RunEnd;
constexpr Duration kShortestLease = std::chrono::milliseconds(500);

struct WorkCommand {
  BatchCommand batch;
  Duration lease = std::chrono::seconds(30);
  bool drain = false;
  bool status = false;
  std::string results;
  std::string dead;
  std::string unknown;
  bool retry_unknown = false;
  std::string files;

  // Returns whether the command reads or changes the queue instead of sending its jobs.
  [[nodiscard]] bool is_query() const {
    return status || retry_unknown || !results.empty() || !dead.empty() || !unknown.empty();
  }
};

std::vector<Flag> queue_flags(WorkCommand& to) {
  return {
      queue_flag(to.batch),
      {'\0', "drain", "", "end when no job is left, as batch does", enable(to.drain)},
      {'\0', "lease", "TIME",
       "after which a worker that says nothing loses its jobs to others (default: 30s)",
       [&](Text v) {
         to.lease = parse_seconds(v, "--lease");
         if (to.lease < kShortestLease) throw UsageError("option --lease must be 500ms or more");
       }},
      key_lifetime_flag(to.batch),
      {'\0', "files", "DIR",
       "send jobs whose body is in a file, and read these files below DIR only", store(to.files)},
      {'\0', "force", "", "also on a server that may delete keys when its memory is full",
       enable(to.batch.force)},
  };
}

std::vector<Flag> question_flags(WorkCommand& to) {
  return {
      {'\0', "status", "", "print how many jobs are in which state, and which workers there are",
       enable(to.status)},
      {'\0', "results", "FILE",
       "write the results that are there, and end; an existing file is continued, - is standard "
       "output",
       store(to.results)},
      {'\0', "dead", "FILE", "the same for the jobs that failed, as an input for `httpretry batch`",
       store(to.dead)},
      {'\0', "unknown", "FILE",
       "write what may have been executed and is unknown now, as an input, and end; an existing "
       "file is replaced, - is standard output",
       store(to.unknown)},
      {'\0', "retry-unknown", "", "queue it again, which may execute it twice, and end",
       enable(to.retry_unknown)},
      help_flag(),
  };
}

FlagTable work_flags(WorkCommand& to) {
  return {{"Queue", queue_flags(to)},
          {"Requests", request_flags(to.batch)},
          {"Output", response_flags(to.batch)},
          {"Flow", flow_flags(to.batch)},
          {"Policy", policy_flags(to.batch.policy)},
          {"Connection", connection_flags(to.batch)},
          {"Questions", question_flags(to)}};
}

std::string status_text(const queue::QueueStatus& status) {
  auto text = "queue    " + printable(status.name) + "\n" + counts_text(status.counts);
  if (status.poison > 0) text += row_text("dead because their workers ended", status.poison);
  if (status.late > 0) text += row_text("results that came too late", status.late);
  if (status.next_due) {
    text += "the next that waits may be sent in " + duration_text(*status.next_due) + "\n";
  }
  for (const auto& worker : status.workers) {
    text += "worker   " + printable(worker.name) + ", " + number_of(worker.jobs, "job") +
            ", last heard of " + duration_text(worker.silent) + " ago\n";
  }
  return text;
}

int run_query(const WorkCommand& command) {
  const auto options = queue_options(command.batch);
  const auto tell = [&](const std::string& text) {
    if (command.batch.progress != ProgressStyle::None) print_message("httpretry: " + text);
  };
  const auto write = [&](queue::Lines which, const std::string& path, const char* what) {
    if (path.empty()) return;
    const auto print = [](const std::string& lines) { write_stdout(lines); };
    const bool prints = path == "-";
    const auto count = prints ? queue::print_lines(options, which, print)
                              : queue::write_lines(options, which, path);
    if (!prints) tell(number_of(count, what) + " written to " + path);
  };
  write(queue::Lines::Results, command.results, "result");
  write(queue::Lines::Dead, command.dead, "dead letter");
  if (!command.unknown.empty()) {
    const auto lines = queue::read_unknown(options);
    std::string text;
    for (const auto& line : lines) text.append(line).append("\n");
    write_to(command.unknown, text, nullptr, Readers::Owner);
    if (command.unknown != "-") {
      tell(number_of(lines.size(), "unknown job") + " written to " + command.unknown);
    }
  }
  if (command.retry_unknown) {
    tell(number_of(queue::retry_unknown(options), "unknown job") + " queued again");
  }
  if (command.status) write_stdout(status_text(queue::read_status(options)));
  return kOk;
}

void print_end(queue::Worker& worker, RunEnd end, const batch::Counts& counts,
               const BatchCommand& command) {
  print_message(end_line(counts, worker.store().late(), end, command));
  if (counts.unknown > 0) {
    print_message(
        "httpretry: --unknown FILE writes what may have been executed; "
        "--retry-unknown queues it again");
  }
  const auto due = worker.store().next_due();
  if (end == RunEnd::Idle && due) {
    print_message("httpretry: start the same command again in " + duration_text(*due) +
                  " or later");
  }
}

int run_worker(WorkCommand& work) {
  auto& command = work.batch;
  auto options = queue_options(command);
  options.files = work.files;
  prepare_requests(command);
  command.batch.runner.until_stopped = !work.drain;
  const auto telemetry = begin_telemetry(command);
  begin_sharing(command);
  RunDisplay display(command.progress);
  display.set_up(command.batch.runner);
  std::unique_ptr<queue::Worker> worker;
  {
    const WithoutSignals blocked;
    worker = std::make_unique<queue::Worker>(options, command.batch, work.lease);
  }
  const auto ended = run_to_end(
      worker->runner(), [&] { return worker->run(); }, [&] { worker->stop(); });
  display.clear();
  const auto counts = worker->store().counts();
  if (!display.quiet()) print_end(*worker, ended.end, counts, command);
  return finish_run(ended, counts, telemetry.get());
}

}  // namespace

FlagTable work_table() { return unused_table(work_flags); }

int work(const Args& args) {
  WorkCommand command;
  const auto operands = parse(args, work_flags(command));
  if (!operands.empty()) throw UsageError("work takes no operand: the requests are in the queue");
  return with_run_errors([&] {
    try {
      return command.is_query() ? run_query(command) : run_worker(command);
    } catch (const queue::UnfitWorker& error) {
      print_message(std::string("httpretry: ") + error.what());
      return kBadPolicyFile;
    }
  });
}

}  // namespace httpretry::cli
