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

#include <filesystem>
#include <map>
#include <utility>

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

// Returns the flags for the queue of `httpretry work`. Each has a letter ('\0' if it has none), a
// name, the name of its value in --help (empty if it takes none), a help text, and an action that
// stores the value `v` in `to`, which must outlive the flags.
std::vector<Flag> queue_flags(WorkCommand& to) {
  return {
      queue_flag(to.batch),
      {'\0', "drain", "", "end when no job is left, as batch does", enable(to.drain)},
      {'\0', "lease", "TIME",
       "how long a worker may be silent before other workers get its jobs (default: 30s)",
       [&](Text v) {
         to.lease = parse_seconds(v, "--lease");
         if (to.lease < kShortestLease) throw UsageError("option --lease must be 500ms or more");
       }},
      key_lifetime_flag(to.batch),
      {'\0', "files", "DIR",
       "also send jobs whose body is in a file; only files below DIR are read", store(to.files)},
      {'\0', "force", "", "allow a server that may evict keys when its memory is full",
       enable(to.batch.force)},
  };
}

// Returns the flags of a query, which reads or changes the queue instead of sending its jobs, and
// --help. Each has a letter ('\0' if it has none), a name, the name of its value in --help (empty
// if it takes none), a help text, and an action that stores the value in `to`, which must outlive
// the flags.
std::vector<Flag> query_flags(WorkCommand& to) {
  return {
      {'\0', "status", "", "print how many jobs are in each state, and the workers",
       enable(to.status)},
      format_flag(to.batch),
      {'\0', "results", "FILE",
       "write the results so far, and end; they are appended to an existing file; - is standard "
       "output",
       store(to.results)},
      {'\0', "dead", "FILE",
       "like --results, for the jobs that failed, as input for httpretry batch", store(to.dead)},
      {'\0', "unknown", "FILE",
       "write the unknown jobs, which the server may have executed, as input, and end; an existing "
       "file is replaced; - is standard output",
       store(to.unknown)},
      {'\0', "retry-unknown", "",
       "queue the unknown jobs again, which may execute them twice, and end",
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
          {"Questions", query_flags(to)}};
}

std::string status_text(const queue::QueueStatus& status) {
  auto text = "queue    " + printable(status.name) + "\n" + counts_text(status.counts);
  if (status.poison > 0) text += row_text("dead because their workers ended", status.poison);
  if (status.late > 0) text += row_text("results that arrived too late", status.late);
  if (status.next_due) {
    text += "the next waiting job may be sent in " + duration_text(*status.next_due) + "\n";
  }
  for (const auto& worker : status.workers) {
    text += "worker   " + printable(worker.name) + ", " + number_of(worker.jobs, "job") +
            ", last heard from " + duration_text(worker.silent) + " ago\n";
  }
  return text;
}

// Returns what --status --format json prints: {"server":"redis://host:6379/0","queue":"orders",
// "total":5,"done":4,…,"ended_workers":0,"late_results":0,"next_due_ms":1500.0,"workers":[
// {"name":"a","jobs":2,"silent_ms":12.0}]}. "ended_workers" counts the dead jobs whose workers
// ended.
std::string status_json(const fleet::Address& address, const queue::QueueStatus& status) {
  auto json = "{\"server\":" + quote_json(address.text()) +
              ",\"queue\":" + quote_json(address.job) + "," + counts_json(status.counts) +
              "\"ended_workers\":" + std::to_string(status.poison) +
              ",\"late_results\":" + std::to_string(status.late) +
              ",\"next_due_ms\":" + (status.next_due ? ms_json(*status.next_due) : "null") +
              ",\"workers\":[";
  for (std::size_t i = 0; i < status.workers.size(); ++i) {
    const auto& worker = status.workers[i];
    json += (i > 0 ? "," : "") + std::string("{\"name\":") + quote_json(worker.name) +
            ",\"jobs\":" + std::to_string(worker.jobs) +
            ",\"silent_ms\":" + ms_json(worker.silent) + "}";
  }
  return json + "]}\n";
}

void show_info(const WorkCommand& command, const std::string& text) {
  if (command.batch.progress != ProgressStyle::None) print_message("httpretry: " + text);
}

// Writes lines of the queue, "result" or "dead letter", to `path`, which is "" (write nothing), "-"
// or a file, to which they are appended.
void write_lines(const WorkCommand& command, queue::Lines lines, const std::string& path,
                 const char* line_name) {
  if (path.empty()) return;
  const auto options = queue_options(command.batch);
  if (path == "-") {
    queue::print_lines(options, lines, [](const std::string& text) { write_stdout(text); });
    return;
  }
  const auto count = queue::write_lines(options, lines, path);
  show_info(command, number_of(count, line_name) + " written to " + path);
}

// Implements --unknown: writes the input lines of the unknown jobs.
void write_unknown(const WorkCommand& command) {
  const auto lines = queue::read_unknown(queue_options(command.batch));
  std::string text;
  for (const auto& line : lines) text.append(line).append("\n");
  write_to(command.unknown, text, /*limit=*/nullptr, Readers::Owner);
  if (command.unknown == "-") return;
  show_info(command, number_of(lines.size(), "unknown job") + " written to " + command.unknown);
}

// Throws UsageError if two of --results, --dead and --unknown name the same file, because one would
// overwrite the other.
void check_files_differ(const WorkCommand& command) {
  const std::pair<const char*, const std::string&> files[] = {
      {"--results", command.results}, {"--dead", command.dead}, {"--unknown", command.unknown}};
  std::map<std::filesystem::path, std::string> flags;
  for (const auto& [flag, path] : files) {
    if (path.empty() || path == "-") continue;
    std::error_code ignored;
    const auto absolute = std::filesystem::absolute(path, ignored);
    const auto [found, is_new] =
        flags.emplace(std::filesystem::weakly_canonical(absolute, ignored), flag);
    if (!is_new) throw UsageError(found->second + " and " + flag + " name the same file");
  }
}

// Reads or changes the queue, as the flags of query_flags request. Returns the exit status.
int run_query(const WorkCommand& command) {
  check_files_differ(command);
  // The path is empty without --results or --dead, and write_lines then writes nothing.
  write_lines(command, queue::Lines::Results, command.results, "result");
  write_lines(command, queue::Lines::Dead, command.dead, "dead letter");
  if (!command.unknown.empty()) write_unknown(command);
  const auto options = queue_options(command.batch);
  if (command.retry_unknown) {
    const auto count = queue::retry_unknown(options);
    show_info(command, number_of(count, "unknown job") + " queued again");
  }
  if (command.status) {
    const auto status = queue::read_status(options);
    const bool as_json = command.batch.format == StatusFormat::Json;
    write_stdout(as_json ? status_json(options.address, status) : status_text(status));
  }
  return kOk;
}

// Prints the number of jobs in each state, and what the user can do about jobs that are unknown or
// waiting.
void print_end(queue::Worker& worker, RunEnd end, const batch::Counts& counts,
               const BatchCommand& command) {
  print_message(end_line(counts, end, command, worker.store().late()));
  if (counts.unknown > 0) {
    print_message(
        "httpretry: --unknown FILE writes the jobs that may have been executed; --retry-unknown "
        "queues them again");
  }
  const auto time_until_due = worker.store().next_due();
  if (end == RunEnd::Idle && time_until_due) {
    print_message(idle_text("in " + duration_text(*time_until_due), command));
  }
}

// Implements `httpretry work`: sends jobs of the queue until a signal stops it or, with --drain,
// until no job is left. Prints the number of jobs in each state and returns the exit status.
int run_worker(WorkCommand& work) {
  auto& command = work.batch;  // the options that `httpretry batch` also has
  auto options = queue_options(command);
  options.files = work.files;
  prepare_requests(command);  // sets the headers and policies of the requests
  // Prompts for missing passwords, and copies the certificates and keys that are pipes. The worker
  // needs the copies until its end.
  const auto piped_files = complete_connection(command);
  command.batch.runner.until_stopped = !work.drain;
  const auto telemetry = begin_telemetry(command);
  begin_sharing(command);  // --shared: limits that several processes keep together
  begin_tokens(command);   // --oauth2
  RunDisplay display(command.progress);
  display.set_up(command.batch.runner);
  std::unique_ptr<queue::Worker> worker;
  {
    // The threads that the worker starts inherit the block, so only run_to_end receives signals.
    const WithoutSignals blocked;
    worker = std::make_unique<queue::Worker>(options, command.batch, work.lease);
  }
  // A first signal lets the requests in flight end; a second one calls stop().
  const auto ended = run_to_end(
      worker->runner(), [&] { return worker->run(); }, [&] { worker->stop(); });
  display.clear();  // removes the status line
  const auto counts = worker->store().counts();
  if (!display.quiet()) print_end(*worker, ended.end, counts, command);
  return finish_run(ended, counts, telemetry.get());  // writes the telemetry
}

}  // namespace

FlagTable work_table() { return unused_table(work_flags); }

int work(const Args& args) {
  block_progress_signal();
  WorkCommand command;
  const auto operands = parse(args, work_flags(command), about_unknown_in("work"));
  if (!operands.empty()) throw UsageError("work takes no operand: the requests are in the queue");
  if (!command.status) check_format(command.batch);
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
