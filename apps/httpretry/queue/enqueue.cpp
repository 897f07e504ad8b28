#include "queue/enqueue.hpp"

#include "batch/display.hpp"
#include "cli/exit_status.hpp"
#include "cli/message.hpp"
#include "cli/signal_thread.hpp"
#include "cli/text.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include <atomic>

namespace httpretry::cli {
namespace {

constexpr const char* kVariable = "HTTPRETRY_QUEUE";

enum class Phase : std::uint8_t { Reading, Adding, Ending };

std::string lines_text(std::uint64_t first, std::uint64_t last) {
  if (first == last) return "line " + grouped(last);
  return "the lines " + grouped(first) + " to " + grouped(last);
}

void print_break(const queue::EnqueueReport& report) {
  const auto line = report.line;
  const bool maybe = report.maybe_line > line;
  auto text = "httpretry: " + report.problem + ": " + number_of(report.added, "job") + " added";
  if (line > 0) text += ", up to line " + grouped(line) + " of the input";
  if (maybe) {
    text += "; those of " + lines_text(line + 1, report.maybe_line) + " may have been added, too";
  }
  print_message(text);
  print_message("httpretry: run the same command again: a line that has an id is added once");
  if (!report.without_id || report.maybe_line == 0) return;
  text = "httpretry: lines without an id would be added a second time: ";
  if (line > 0) text += "remove " + lines_text(1, line) + " before";
  if (line > 0 && maybe) text += "; and ";
  if (maybe) text += "--status shows whether there are more jobs than that";
  print_message(text);
}

}  // namespace

queue::QueueOptions queue_options(const BatchCommand& command) {
  auto url = command.queue;
  std::string source = "option --queue";
  if (url.empty()) {
    url = variable(kVariable);
    source = kVariable;
  }
  if (url.empty()) {
    throw UsageError("--queue URL is missing, and $HTTPRETRY_QUEUE, too: it names the queue");
  }
  const auto address = queue::parse_queue(url);
  if (!address) throw UsageError(source + ": " + address.error().message);
  queue::QueueOptions options;
  options.address = *address;
  options.force = command.force;
  options.tell = [](const std::string& text) { print_message("httpretry: " + text); };
  return options;
}

int enqueue_input(const BatchCommand& command) {
  if (!command.enqueue) throw UsageError("--queue needs --enqueue; `httpretry work` sends a queue");
  const auto options = queue_options(command);
  // Before the first job is added, a signal ends the process at once. After that it ends the
  // adding, so that the report is still printed.
  std::atomic<Phase> phase = Phase::Reading;
  std::atomic<int> received = 0;
  const SignalThread signals(signal_set({SIGINT, SIGTERM}), [&](const auto& info) {
    auto reading = Phase::Reading;
    received = static_cast<int>(info.ssi_signo);
    if (!phase.compare_exchange_strong(reading, Phase::Ending)) return;
    show_status("");
    print_message("httpretry: stopped; nothing was added");
    ::_exit(128 + received);
  });
  const auto input = queue::Enqueue::open(options, command.batch);
  if (!input) return kUsage;
  auto reading = Phase::Reading;
  if (!phase.compare_exchange_strong(reading, Phase::Adding)) {
    for (;;) ::pause();  // the process is ending
  }
  show_status("");
  const auto report = input->add([&] { return received != 0; });
  if (!report.problem.empty()) {
    print_break(report);
    return received != 0 ? 128 + received : kWriteError;
  }
  if (command.progress == ProgressStyle::None) return kOk;
  auto line = "httpretry: " + number_of(report.added, "job") + " added";
  if (report.present > 0) {
    line += ", " + grouped(report.present) + (report.present == 1 ? " was" : " were") +
            " there already";
  }
  print_message(line);
  return kOk;
}

}  // namespace httpretry::cli
