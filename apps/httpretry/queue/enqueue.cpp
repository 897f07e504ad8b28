#include "queue/enqueue.hpp"

#include "batch/display.hpp"
#include "cli/exit_status.hpp"
#include "cli/message.hpp"
#include "cli/signal_thread.hpp"
#include "cli/signals.hpp"
#include "cli/text.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include <atomic>

namespace httpretry::cli {
namespace {

constexpr const char* kQueueVariable = "HTTPRETRY_QUEUE";

enum class Phase : std::uint8_t { Reading, Adding, Exiting };

// Returns "line 7", or "the lines 7 to 12".
std::string lines_text(std::uint64_t first, std::uint64_t last) {
  if (first == last) return "line " + grouped(last);
  return "the lines " + grouped(first) + " to " + grouped(last);
}

// Prints why not all lines of the input were added to the queue, and how to continue. The lines up
// to report.line were added. Those after it, up to report.maybe_line, may have been added or not,
// because the connection broke before the reply. The first message looks like this: "httpretry:
// it was stopped: 12 jobs added, up to line 12 of the input".
void print_incomplete(const queue::EnqueueReport& report) {
  const auto last_added = report.line;
  const bool some_uncertain = report.maybe_line > last_added;
  auto text = "httpretry: " + report.problem + ": " + number_of(report.added, "job") + " added";
  if (last_added > 0) text += ", up to line " + grouped(last_added) + " of the input";
  if (some_uncertain) {
    text +=
        "; those of " + lines_text(last_added + 1, report.maybe_line) + " may have been added, too";
  }
  print_message(text);
  print_message("httpretry: run the same command again: a line that has an id is added only once");
  // The queue recognizes a line that it already has by its id, so it would add a line without an id
  // again. If this run has added none, none can be added twice.
  const bool may_have_added = report.maybe_line > 0;  // maybe_line is never less than line
  if (!report.without_id || !may_have_added) return;
  text = "httpretry: lines without an id would be added a second time: ";
  if (last_added > 0) text += "remove " + lines_text(1, last_added) + " before";
  if (last_added > 0 && some_uncertain) text += "; and ";
  // "That" is the number of added jobs in the first message.
  if (some_uncertain) text += "--status shows whether there are more jobs than that";
  print_message(text);
}

// Prints how many jobs were added: "httpretry: 12 jobs added, 1 was there already".
void print_added(const queue::EnqueueReport& report) {
  auto line = "httpretry: " + number_of(report.added, "job") + " added";
  if (report.present > 0) {
    line += ", " + grouped(report.present) + (report.present == 1 ? " was" : " were") +
            " there already";
  }
  print_message(line);
}

}  // namespace

// Returns the options for the queue that --queue or, without it, $HTTPRETRY_QUEUE names. Throws
// UsageError if neither names a valid one.
queue::QueueOptions queue_options(const BatchCommand& command) {
  const bool has_flag = !command.queue.empty();
  const auto url = has_flag ? command.queue : environment_variable(kQueueVariable);
  if (url.empty()) {
    throw UsageError("--queue URL is missing, and $HTTPRETRY_QUEUE is not set");
  }
  const auto address = queue::parse_queue(url);
  const std::string source = has_flag ? "option --queue" : kQueueVariable;
  if (!address) throw UsageError(source + ": " + address.error().message);
  queue::QueueOptions options;
  options.address = *address;
  options.force = command.force;
  options.tell = [](const std::string& text) { print_message("httpretry: " + text); };
  return options;
}

// Implements --enqueue: adds the requests of the input to the queue, prints how many were added,
// and returns the exit status. A signal that arrives while the input is read ends the process at
// once, from the thread that receives signals. A later one only ends the adding, so that the number
// of added jobs is still printed.
int enqueue_input(const BatchCommand& command) {
  if (!command.enqueue)
    throw UsageError("--queue needs --enqueue; httpretry work sends the jobs of a queue");
  const auto options = queue_options(command);
  // Reading: the main thread reads the input, and a signal ends the process. Adding: the main
  // thread adds jobs, and a signal only ends the adding. Exiting: the thread that receives signals
  // ends the process.
  std::atomic<Phase> phase = Phase::Reading;
  std::atomic<int> signal = 0;  // the last one that arrived; 0: none
  // Changes the phase from Reading to `next`. Returns false if the other thread has already left
  // Reading. So exactly one of the two threads leaves it.
  const auto leave_reading_for = [&phase](Phase next) {
    auto expected = Phase::Reading;
    return phase.compare_exchange_strong(expected, next);
  };
  const SignalThread signals(stop_signals(), [&](const auto& info) {
    signal = static_cast<int>(info.ssi_signo);
    if (!leave_reading_for(Phase::Exiting)) return;  // Adding: add() ends because of `signal`
    show_status("");                                 // removes the status line
    print_message("httpretry: stopped; nothing was added");
    ::_exit(128 + signal);
  });
  const auto input = queue::Enqueue::open(options, command.batch);
  if (!input) return kUsage;  // open() has reported the problems in the input
  if (!leave_reading_for(Phase::Adding)) {
    for (;;) ::pause();  // until the thread of `signals` has ended the process
  }
  show_status("");
  const auto report = input->add([&] { return signal != 0; });
  if (!report.problem.empty()) {
    print_incomplete(report);
    return signal != 0 ? 128 + signal : kWriteError;
  }
  if (command.progress != ProgressStyle::None) print_added(report);
  return kOk;
}

}  // namespace httpretry::cli
